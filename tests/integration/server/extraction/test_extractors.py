from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.computing.worker import message
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.auto_pool import Extractors
from scrapy_ext.server.extraction.auto_worker import ExtractionOutcome, ExtractionTask
from tests.support.eventually import TIMEOUT
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target
from tests.support.job_pages import PAGES as JOBS
from tests.support.serp_pages import PAGES

PRODUCT = """<html><head><title>Blue shoe</title><script type="application/ld+json">{"@context": "https://schema.org",
"@type": "Product", "name": "Blue shoe", "offers": {"@type": "Offer", "price": "12.50",
"priceCurrency": "EUR"}}</script></head><body><h1>Blue shoe</h1></body></html>"""
TEXT = " ".join(f"Sentence number {n} of a story about the café on the corner, which is long." for n in range(40))
ARTICLE = (
    f"<html><head><title>Café</title></head><body><article><h1>Café news</h1><p>{TEXT}</p></article></body></html>"
)


# ── through the service ──


def test_a_product_by_http(service: Service, target: Target) -> None:
    url = target.page("/shoe", PRODUCT)
    result = service.result(url=url, product=True, extractFrom="httpResponseBody")
    assert set(result) == {"url", "statusCode", "product"}
    product = result["product"]
    assert (product["name"], product["price"], product["currency"]) == ("Blue shoe", "12.50", "EUR")
    assert product["url"] == url


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16"])
def test_an_article_by_http_is_decoded_as_its_headers_say(service: Service, target: Target, encoding: str) -> None:
    url = target.page("/news", ARTICLE.encode(encoding), Content_Type=f"text/html; charset={encoding}")
    article = service.result(url=url, article=True, extractFrom="httpResponseBody")["article"]
    assert "story about the café on the corner" in article["articleBody"]


@pytest.mark.parametrize("name", ["base64", "hex", "rot13", "punycode", "idna", "unicode_escape", "nonsense"])
@pytest.mark.parametrize("where", ["headers", "markup"])
def test_what_is_no_encoding_of_the_web_is_passed_over(service: Service, target: Target, name: str, where: str) -> None:
    """As an encoding, punycode would keep a thread busy for hours."""
    head = f"<meta charset={name}>" if where == "markup" else ""
    kind = f"text/html; charset={name}" if where == "headers" else "text/html"
    text = f"<html><head>{head}<title>Größe</title></head><body><h1>Größe</h1><!--{'9a' * 10_000}--></body></html>"
    url = target.page("/encoding", text, Content_Type=kind)
    result = service.result(url=url, article=True, extractFrom="httpResponseBody")
    assert result["article"]["headline"] == "Größe"


def test_body_headers_and_item_can_be_asked_for_together(service: Service, target: Target) -> None:
    result = service.result(
        url=target.page("/shoe", PRODUCT),
        product=True,
        extractFrom="httpResponseBody",
        httpResponseBody=True,
        httpResponseHeaders=True,
    )
    assert {"product", "httpResponseBody", "httpResponseHeaders"} <= set(result)


@pytest.mark.parametrize(
    ("kind", "html", "found"),
    [
        ("serp", PAGES["links that lead there directly"].html, lambda item: item["organicResults"][0]["name"]),
        ("jobPosting", JOBS["german"].html, lambda item: item["hiringOrganization"]["name"]),
        ("forumThread", "<h1>Lamps</h1><div class=post-body>One</div><div class=post-body>Two</div>",
         lambda item: item["posts"][1]["text"]),
    ],
)  # fmt: skip
def test_every_kind_is_extracted_through_the_service(
    service: Service, target: Target, kind: str, html: str, found: Callable[[dict[str, Any]], str]
) -> None:
    way = {} if kind == "serp" else {"extractFrom": "httpResponseBody"}
    item = service.result(url=target.page(f"/{kind}", html), **{kind: True}, **way)[kind]
    assert found(item) in html


# ── the pool ──


@pytest.fixture
async def odd() -> AsyncIterator[Extractors]:
    pool = Extractors(ServiceLimits(), 1, module="tests.support.odd_extractor")
    yield pool
    await pool.stop()


async def pid_of(pool: Extractors) -> int:
    return int((await pool.extract("product", "", "http://x/"))["pid"])


async def test_a_process_serves_one_page_after_the_other(odd: Extractors) -> None:
    assert await pid_of(odd) == await pid_of(odd)


async def test_a_page_that_takes_too_long_is_500_and_its_process_is_ended() -> None:
    pool = Extractors(ServiceLimits(), 1, module="tests.support.odd_extractor")
    first, usual = await pid_of(pool), pool._limits
    # Short for what hangs alone: a process that starts has as long as in production.
    pool._limits = ServiceLimits(extract=1)
    with pytest.raises(ExtractionError) as caught:
        await pool.extract("product", "hang", "http://x/")
    pool._limits = usual
    assert caught.value.problem.type == "/server/timed-out"
    assert not Path(f"/proc/{first}").exists()
    assert await pid_of(pool) != first
    await pool.stop()


@pytest.mark.parametrize("fault", ["die", "babble"])
async def test_a_process_that_ends_or_babbles_is_500_and_replaced(odd: Extractors, fault: str) -> None:
    first = await pid_of(odd)
    with pytest.raises(ExtractionError) as caught:
        await odd.extract("product", fault, "http://x/")
    assert caught.value.problem.type == "/server/internal"
    assert await pid_of(odd) != first


async def test_a_process_that_died_while_idle_costs_no_page(odd: Extractors) -> None:
    first = await pid_of(odd)
    os.kill(first, 9)
    assert await pid_of(odd) != first


async def test_pages_that_hang_take_the_processes_of_their_key_and_domain_and_not_those_of_others() -> None:
    pool = Extractors(ServiceLimits(), 2, module="tests.support.odd_extractor")

    async def work(html: str, key: str, domain: str) -> ExtractionOutcome:
        return await pool.work(ExtractionTask("product", f"http://{domain}/", html), domain=domain, key=key)

    hanging = [asyncio.create_task(work("hang", "one", "evil.example")) for _ in range(5)]
    await asyncio.sleep(0)  # they have what they get
    async with timeout_after(TIMEOUT):  # and would keep it for an hour
        assert (await work("", "one", "good.example")).item
        assert (await work("", "two", "evil.example")).item
        assert (await work("", "two", "good.example")).item
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)
    await pool.stop()


async def test_a_process_is_confined_to_computing() -> None:
    pool = Extractors(ServiceLimits(), 1)
    assert await pool.extract("product", PRODUCT, "http://x/")
    own = [int(line) for each in Path("/proc/self/task").iterdir() for line in (each / "children").read_text().split()]
    workers = [pid for pid in own if b"auto_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    threads = [task for pid in workers for task in Path(f"/proc/{pid}/task").iterdir()]
    states = [dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines()) for task in threads]
    await pool.stop()
    # That of the work and that of its input; other tests may have more of them.
    assert len(states) >= 2
    for state in states:
        assert (state["NoNewPrivs"], state["Seccomp"]) == ("1", "2")
        assert int(state["CapEff"], 16) == int(state["CapBnd"], 16) == 0


async def test_stopping_ends_the_processes(odd: Extractors) -> None:
    pid = await pid_of(odd)
    await odd.stop()
    assert not Path(f"/proc/{pid}").exists()


async def test_a_kind_that_does_not_exist_is_422() -> None:
    pool = Extractors(ServiceLimits(), 1)
    with pytest.raises(ExtractionError) as caught:
        await pool.extract("poem", "<p>", "http://x/")
    await pool.stop()
    assert caught.value.problem.type == "/request/unprocessable"


async def test_extraction_does_not_keep_the_loop_waiting() -> None:
    pool = Extractors(ServiceLimits(), 1)
    turns = 0
    working = asyncio.ensure_future(pool.extract("product", PRODUCT, "http://x/"))
    while not working.done():
        turns += 1
        await asyncio.sleep(0.005)
    await pool.stop()
    assert turns > 10


def test_the_process_ends_with_its_input_also_while_it_works() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy_ext.server.extraction.auto_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(message(msgspec.json.encode(ExtractionTask("article", "http://x/", ARTICLE))))
    process.stdin.close()
    assert process.wait(TIMEOUT) == 0
    assert process.stdout is not None
    process.stdout.close()
