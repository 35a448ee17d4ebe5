from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import re
import tracemalloc

import msgspec
import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_ext.client.extraction import ExtractClient, ExtractTransport, Limiter
from scrapy_ext.client.extraction.errors import OverMemoryError, UnreachableServiceError
from scrapy_ext.client.extraction.memory import AnswerMemory, decoded_size
from scrapy_ext.client.extraction.retry_policy import RetryPolicy
from scrapy_ext.crawl.extraction.from_settings import memory_of
from scrapy_ext.crawl.extraction.response import to_response
from scrapy_ext.jobprocess.proc import machine_memory
from tests.support.crawls import Project
from tests.support.eventually import eventually_async
from tests.support.played_server import PlayedServer, Reply

MIB = 2**20
KEY = "0123456789abcdef0123456789abcdef"
A = "a.example"
#: Each failure is reported at once.
ONCE = RetryPolicy.merged(dict.fromkeys(("network", "unexpected-answer", "5xx"), 1))


def answer(size: int) -> bytes:
    """A page of so many bytes in the answer of a service."""
    page = base64.b64encode(b"a" * size).decode()
    return msgspec.json.encode({"url": "https://a.example/", "statusCode": 200, "httpResponseBody": page})


def fields(number: int = 0) -> dict:
    return {"url": f"https://{A}/{number}", "httpResponseBody": True}


def client_of(server: PlayedServer, memory: AnswerMemory, timeout: float = 30.0) -> ExtractClient:
    transport = ExtractTransport(f"{server.url}/v1", KEY, timeout)
    return ExtractClient(transport, Limiter(64, 64), ONCE, memory=memory)


# ── what JSON takes ──


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b",".join([b"[]"] * 50_000) + b"]",
        b"[" + b",".join([b"{}"] * 50_000) + b"]",
        b"[" + b",".join([b'{"a":{"b":[1.5]}}'] * 20_000) + b"]",
        b"[" + b",".join(b"%d" % (number + 10**9) for number in range(50_000)) + b"]",
        b"{" + b",".join(b'"%d":"%d"' % (number, number) for number in range(30_000)) + b"}",
        ('["' + "a" * 100_000 + '\N{PILE OF POO}"]').encode(),
        b'["' + b"\\u00e9" * 50_000 + b'"]',
        b'["' + b"a" * 100_000 + b'\\ud83d\\udca9"]',
    ],
)
def test_the_memory_that_json_takes_is_not_underestimated(body):
    # Other threads of the process only add to what is measured.
    assert min(decoded_bytes(body) for _ in range(3)) <= decoded_size(body)


def decoded_bytes(body):
    tracemalloc.start()
    decoded = msgspec.json.decode(body)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoded
    return taken


def test_a_page_is_not_overestimated():
    body = answer(MIB)
    assert len(body) <= decoded_size(body) < 1.01 * len(body)


# ── holds ──


async def test_answers_wait_for_each_other_and_all_come_to_their_end(server):
    size, memory, seen = MIB, AnswerMemory(8 * MIB), []
    server.script = [Reply(body=answer(size))]
    client = client_of(server, memory)

    async def one(number: int) -> int:
        response = to_response(Request(f"https://{A}/{number}"), await client.extract(fields(number), domain=A))
        seen.append(memory.used)
        return len(response.body)

    assert await asyncio.gather(*(one(number) for number in range(40))) == [size] * 40
    assert max(seen) <= memory.limit
    gc.collect()
    assert memory.used == 0
    await client.close()


async def test_the_memory_counts_as_long_as_there_is_a_response(server):
    memory = AnswerMemory(8 * MIB)
    server.script = [Reply(body=answer(MIB))]
    client = client_of(server, memory)
    response = to_response(Request(f"https://{A}/0"), await client.extract(fields(), domain=A))
    other = response.replace(url="https://b.example/")
    del response
    assert memory.used > MIB
    del other
    assert memory.used == 0
    await client.close()


async def test_a_spider_that_keeps_its_responses_goes_on_one_by_one_with_a_warning(server, caplog):
    memory = AnswerMemory(3 * MIB)
    server.script = [Reply(body=answer(MIB))]
    client = client_of(server, memory)
    kept = [await client.extract(fields(number), domain=A) for number in range(4)]
    assert len(kept) == 4
    assert memory.used > memory.limit
    assert caplog.text.count("EXTRACT_API_MEMORY_LIMIT_MB allows 3") == 1
    await client.close()


@pytest.mark.parametrize("body", [answer(3 * MIB), b'{"url":"u","x":[[]' + b",[]" * 100_000 + b"]}"])
async def test_an_answer_over_the_limit_is_an_error_that_names_the_setting(server, body):
    memory = AnswerMemory(4 * MIB)
    server.script = [Reply(body=body, compress=True)]
    client = client_of(server, memory)
    with pytest.raises(OverMemoryError, match=r"over 4 MiB.*Raise EXTRACT_API_MEMORY_LIMIT_MB"):
        await client.extract(fields(), domain=A)
    gc.collect()
    assert memory.used == 0
    await client.close()


async def test_the_time_that_an_answer_waits_for_memory_does_not_count_for_its_timeout(server, monkeypatch):
    memory = AnswerMemory(4 * MIB)
    # Nothing but the timeout of the second answer ends while the first is held.
    server.script = [Reply(body=answer(MIB))]
    other = await memory.hold()
    # There is room for another answer to begin, and not for all of it.
    await other.resize(3 * MIB // 2)
    client = client_of(server, memory, timeout=30)
    waiting = asyncio.create_task(client.extract(fields(), domain=A))
    # The oldest answer under way is the other: this one waits as long as that does.
    await eventually_async(lambda: memory._waiting)
    loop = asyncio.get_running_loop()
    now = loop.time
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: now() + 100)
        done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done
    other.close()
    del other
    assert (await waiting)["statusCode"] == 200
    await client.close()


async def test_identical_requests_count_each(server):
    memory = AnswerMemory(16 * MIB)
    until = asyncio.Event()
    server.script = [Reply(body=answer(MIB), until=until)]
    client = client_of(server, memory)
    tasks = [asyncio.create_task(client.extract(fields(), domain=A)) for _ in range(3)]
    await asyncio.sleep(0)
    until.set()
    results = await asyncio.gather(*tasks)
    assert len(server.requests) == 1
    assert memory.used > 3 * MIB
    del results, tasks
    await asyncio.sleep(0)
    gc.collect()
    assert memory.used == 0
    await client.close()


async def test_only_gzip_is_asked_for_and_undone(server):
    server.script = [
        Reply(body=gzip.compress(answer(10)), headers={"Content-Encoding": "gzip"}),
        Reply(body=b"x", headers={"Content-Encoding": "br"}),
        Reply(body=gzip.compress(answer(10))[:-9], headers={"Content-Encoding": "gzip"}),
        Reply(body=b"no gzip", headers={"Content-Encoding": "gzip"}),
    ]
    client = client_of(server, AnswerMemory(MIB))
    assert await client.extract(fields(), domain=A)
    assert server.requests[0].headers["accept-encoding"] == "gzip"
    for message in ("'br', which was not requested", "broke off", "damaged"):
        with pytest.raises(UnreachableServiceError, match=message):
            await client.extract(fields(), domain=A)
    await client.close()


def test_the_limit_is_a_share_of_the_memory_that_there_is():
    assert memory_of(Settings({"EXTRACT_API_MEMORY_LIMIT_MB": 7})).limit == 7 * MIB
    share = memory_of(Settings()).limit
    assert share == min(max(machine_memory() // 8, 64 * MIB), 1024 * MIB)
    assert memory_of(Settings({"MEMUSAGE_LIMIT_MB": 100})).limit == 25 * MIB


# ── a crawl ──

SPIDERS = """
import resource

import scrapy


class Spider(scrapy.Spider):
    name = "spider"

    async def start(self):
        for number in range(24):
            yield scrapy.Request(f"http://a.example/{number}", errback=self.failed)

    def parse(self, response):
        self.crawler.stats.inc_value("pages")

    def failed(self, failure):
        self.crawler.stats.inc_value(f"failed/{type(failure.value).__name__}")

    def closed(self, reason):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.crawler.stats.set_value("peak_mib", peak // 1024)
"""
SETTINGS = """
PLATFORM_ENABLED = FRONTIER_ENABLED = False
CONCURRENT_REQUESTS = CONCURRENT_REQUESTS_PER_DOMAIN = 24
EXTRACT_API_MEMORY_LIMIT_MB = 64
LOG_LEVEL = "INFO"
"""


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        # 24 pages of 12 MiB each, compressed to some kilobytes: each fits, all at once do not.
        (answer(12 * MIB), "pages"),
        # Lists that take over 30 times their bytes.
        (b'{"url":"u","httpResponseBody":"QQ==","x":[[]' + b",[]" * (4 * MIB) + b"]}", "failed/OverMemoryError"),
    ],
    ids=["pages", "lists"],
)
@pytest.mark.long
async def test_a_service_that_answers_with_bombs_does_not_fill_the_memory(server, tmp_path, body, outcome):
    server.script = [Reply(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})]
    project = Project(tmp_path / "crawl", SPIDERS, SETTINGS, is_forked=False)
    environment = {"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": KEY}
    crawl = await asyncio.to_thread(project.crawl, "spider", environment=environment)
    assert crawl.stat(outcome) == 24, crawl.log[-3000:]
    empty = int(re.search(r"'memusage/startup': (\d+)", crawl.log)[1]) // MIB
    assert crawl.stat("peak_mib") < empty + 4 * 64
