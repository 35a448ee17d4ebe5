"""Metrics of the extraction service."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.measures import LONGEST, PAIRS, Tags
from scrapy_ext.server.metrics import lines
from tests.support.eventually import eventually
from tests.support.extraction_service import Service, head
from tests.support.handwritten_site import Call, Target
from tests.support.http import Http
from tests.support.servers import RunningServer

COUNT = "scrapy_ext_extraction_duration_seconds_count"


async def told_of(running: Service) -> dict[str, float]:
    found = [line for line in lines(running.service.metrics()) if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in found)}


def counted(by: str, kind: str, status: str) -> str:
    return f'{COUNT}{{by="{by}",kind="{kind}",status="{status}"}}'


def test_requests_are_counted_by_kind_and_status_as_they_were_answered(target: Target) -> None:
    page = target.page("/counted", "<h1>one</h1>")
    gone = "http://nowhere.invalid/"
    with Service(allow_hosts=(target.host,)) as running:
        for _ in range(2):
            running.result(url=page, httpResponseBody=True)
        running.problem(421, "/website/domain-unreachable", url=gone, article=True, extractFrom="httpResponseBody")
        running.problem(421, "/website/domain-unreachable", url=gone, product=True)
        running.problem(422, "/request/unprocessable", url=page, browserHtml=True, ipType="residential")
        running.problem(400, "/request/invalid", url="x", httpResponseBody=True)
        seen = running.run(told_of(running))
    assert {name: value for name, value in seen.items() if name.startswith(COUNT)} == {
        counted("http", "none", "200"): 2,
        counted("http", "article", "421"): 1,
        counted("browser", "product", "421"): 1,
        # What broke a rule of the contract is not counted here; what this server does not do is.
        counted("browser", "none", "422"): 1,
    }
    assert seen["scrapy_ext_extraction_requests_under_way"] == 0


def test_keys_and_tags_are_counted_and_tags_are_escaped(target: Target) -> None:
    page = target.page("/tagged", "ok")
    tag = {"run": 'a"b\n\\c', "empty": None}
    with Service(allow_hosts=(target.host,)) as running:
        for key in ("second", "second", "stranger"):
            assert running.extract(key=key, url=page, httpResponseBody=True, tags=tag).status == 200
        running.problem(400, "/request/invalid", url="x", httpResponseBody=True, tags={"never": "1"})
        seen = running.run(told_of(running))
        counts = running.service.measures.tags.most(10)
    by_key = "scrapy_ext_extraction_requests_by_key_total"
    assert (seen[f'{by_key}{{key="second"}}'], seen[f'{by_key}{{key="stranger"}}']) == (2, 1)
    tagged = "scrapy_ext_extraction_tagged_requests_total"
    assert seen[tagged + '{tag="run",value="a\\"b\\n\\\\c"}'] == 3
    assert seen[tagged + '{tag="empty",value=""}'] == 3
    assert [tuple(count) for count in counts] == [("empty", None, 3, 0), ("run", 'a"b\n\\c', 3, 0)]


def test_tags_are_bounded_and_those_that_are_sent_often_stay() -> None:
    tags = Tags()
    for number in range(3 * PAIRS):
        tags.count({"crawl": "nightly", "nonce": str(number), "long": "x" * 1000}, failed=number % 2 == 0)
    assert len(tags) <= PAIRS
    first, second = tags.most(2)
    assert first == ("crawl", "nightly", 3 * PAIRS, 3 * PAIRS // 2)
    assert second == ("long", "x" * LONGEST, 3 * PAIRS, 3 * PAIRS // 2)


def test_a_request_that_is_out_of_time_is_counted_with_its_time(target: Target) -> None:
    async def never(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    with Service(allow_hosts=(target.host,), limits=ServiceLimits(request=0.5)) as running:
        running.problem(500, "/server/timed-out", url=target.handle("/slow", never), httpResponseBody=True)
        seen = running.run(told_of(running))
    assert seen[counted("http", "none", "500")] == 1
    assert seen[counted("http", "none", "500").replace("_count", "_sum")] >= 0.4


def test_a_request_that_is_under_way_is_counted_and_one_whose_caller_left_is_broken(target: Target) -> None:
    entered = threading.Event()

    async def hold(call: Call, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.sleep(60)

    url = target.handle("/held", hold)
    with Service(allow_hosts=(target.host,)) as running:
        body = json.dumps({"url": url, "httpResponseBody": True}).encode()
        with socket.create_connection(("127.0.0.1", running.port)) as raw:
            raw.sendall(head(f"Content-Length: {len(body)}") + body)
            assert entered.wait(60)
            assert running.run(told_of(running))["scrapy_ext_extraction_requests_under_way"] == 1
        seen = eventually(lambda: running.run(told_of(running)), lambda seen: counted("http", "none", "broken") in seen)
    assert seen[counted("http", "none", "broken")] == 1


async def test_they_are_in_the_metrics_of_a_server(server: RunningServer, http: Http) -> None:
    async with Http(server.url, server.extract_key) as caller:
        body = b'{"url": "http://nowhere.invalid/", "httpResponseBody": true}'
        assert (await caller.post("/v1/extract", body)).status == 421
    lines = (await http.get("/metrics")).text.splitlines()
    assert any(line.startswith(counted("http", "none", "421")) for line in lines)
    assert "scrapy_ext_browser_pages_open 0" in lines
    for name in ("contexts_opened", "contexts_closed", "launches", "crashes", "retirements"):
        assert f"# TYPE scrapy_ext_browser_{name}_total counter" in lines
