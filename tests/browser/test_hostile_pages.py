"""Pages that mean harm end in an answer, in bounded time, and the next request is served."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.server.extraction.services import Service
from tests.server.extraction.targets import Target


@pytest.fixture(autouse=True, scope="module")
def _the_next_request_is_served(service: Service, site: Target) -> Any:
    yield
    assert "fine" in service.result(url=site.page("/fine", "<h1>fine</h1>"), browserHtml=True)["browserHtml"]


@pytest.mark.parametrize(("when", "output"), [("at once", "screenshot"), ("after load", "browserHtml")])
def test_a_page_that_computes_for_ever_is_520_and_harms_no_other(
    service: Service, site: Target, when: str, output: str
) -> None:
    loop = (
        "while (true) {}" if when == "at once" else "addEventListener('load', () => setTimeout(() => { while (1); }))"
    )
    hostile = site.page("/spin", f"<h1>spin</h1><script>{loop}</script>")
    calm = site.page("/calm", "<h1>calm</h1>")
    answers: list[Any] = []
    spinning = threading.Thread(target=lambda: answers.append(service.extract(url=hostile, **{output: True})))
    spinning.start()
    assert "calm" in service.result(url=calm, browserHtml=True)["browserHtml"]
    spinning.join()
    assert (answers[0].status, answers[0].json["type"]) == (520, "/download/temporary-error")
    assert "retry-after" in answers[0].headers


def test_alerts_without_end_end(service: Service, site: Target) -> None:
    url = site.page("/alerts", "<h1>a</h1><script>while (true) alert('again')</script>")
    assert service.extract(url=url, browserHtml=True).status in (200, 520)


def test_dialogs_do_not_stop_a_page(service: Service, site: Target) -> None:
    code = "alert('a'); confirm('b'); prompt('c'); onbeforeunload = () => 'stay'; document.body.append('went on')"
    url = site.page("/dialogs", f"<body><script>{code}</script>")
    assert "went on" in service.result(url=url, browserHtml=True)["browserHtml"]


def test_a_page_that_never_ends_is_what_has_arrived_of_it(service: Service, site: Target) -> None:
    async def drip(call: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<h1>beginning</h1>" + b" " * 2000)
        while True:
            writer.write(b"<p>more")
            await writer.drain()
            await asyncio.sleep(0.1)

    result = service.result(url=site.handle("/dripping", drip), browserHtml=True)
    assert "beginning" in result["browserHtml"]


def test_a_page_of_endless_bytes_is_cut_off(service: Service, site: Target) -> None:
    async def flood(call: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            writer.write(b"<p>flood</p>" * 5000)
            await writer.drain()

    answer = service.extract(url=site.handle("/flood", flood), browserHtml=True)
    assert answer.status in (200, 520, 521)
    assert len(answer.body) < 20 * 1024 * 1024


def test_a_page_that_eats_memory_crashes_alone(service: Service, site: Target) -> None:
    service.result(url=site.page("/before", "here before"), browserHtml=True)
    launches = service.service.browser.launches
    url = site.page("/memory", "<script>const a = []; while (true) a.push(new Array(1e6).fill(a.length))</script>")
    service.problem(520, "/download/temporary-error", url=url, browserHtml=True)
    assert service.service.browser.launches == launches


def test_a_page_that_closes_itself_or_opens_others_is_answered(service: Service, site: Target) -> None:
    url = site.page("/windows", "<h1>w</h1><script>for (let i = 0; i < 20; i++) open('/windows'); close()</script>")
    assert service.extract(url=url, browserHtml=True).status in (200, 520)


def test_a_page_that_reloads_for_ever_is_answered(service: Service, site: Target) -> None:
    url = site.page("/reload", "<h1>r</h1><script>setTimeout(() => location.reload(), 10)</script>")
    assert service.extract(url=url, browserHtml=True).status in (200, 520)


def test_a_page_that_breaks_its_own_javascript_is_read_all_the_same(service: Service, site: Target) -> None:
    code = """Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'fake'});
        document.querySelector = null; Array.prototype.map = null; window.Promise = null;"""
    url = site.page("/broken", f"<h1>true</h1><script>{code}</script>")
    assert "true" in service.result(url=url, browserHtml=True)["browserHtml"]
