"""Pages that mean harm end in an answer, in bounded time, and the next request is served."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from scrapy_ext.server.config.extraction_limits import MIB
from tests.acceptance.server.extraction.browser.conftest import SHORT_LIMITS, serving
from tests.acceptance.server.extraction.browser.hostile import GROWING, HARMFUL, READABLE
from tests.support.eventually import eventually
from tests.support.extraction_service import Answer, Service
from tests.support.handwritten_site import Target


@pytest.fixture(scope="module")
def service(site: Target) -> Iterator[Service]:
    """A service that gives up soon, with a Chromium of its own."""
    with serving(site, SHORT_LIMITS) as running:
        yield running


@pytest.fixture(autouse=True, scope="module")
def _the_next_request_is_served(service: Service, site: Target) -> Any:
    yield
    assert "fine" in service.result(url=site.page("/fine", "<h1>fine</h1>"), browserHtml=True)["browserHtml"]


@pytest.mark.parametrize(("when", "output"), [("at once", "screenshot"), ("after load", "browserHtml")])
@pytest.mark.long
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


@pytest.mark.long
def test_a_target_that_never_answers_is_520(service: Service, site: Target) -> None:
    service.problem(520, "/download/temporary-error", url=site.handle("/silent", _says_nothing), browserHtml=True)


@pytest.mark.long
def test_the_time_for_all_actions_is_bounded(service: Service, site: Target) -> None:
    waits = [{"action": "waitForTimeout", "timeout": seconds} for seconds in (0.1, 30, 30)]
    result = service.result(url=site.page("/waits", "<h1>waits</h1>"), browserHtml=True, actions=waits)
    assert [entry["status"] for entry in result["actions"]] == ["success", "returned", "skipped"]


@pytest.mark.long
def test_a_page_of_endless_bytes_is_cut_off(service: Service, site: Target) -> None:
    async def flood(call: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            writer.write(b"<p>flood</p>" * 5000)
            await writer.drain()

    answer = service.extract(url=site.handle("/flood", flood), browserHtml=True)
    assert answer.status in (200, 520, 521)
    assert len(answer.body) < 20 * 1024 * 1024


def test_a_page_that_breaks_its_own_javascript_is_read_all_the_same(service: Service, site: Target) -> None:
    code = """Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'fake'});
        document.querySelector = null; Array.prototype.map = null; window.Promise = null;"""
    url = site.page("/broken", f"<h1>true</h1><script>{code}</script>")
    assert "true" in service.result(url=url, browserHtml=True)["browserHtml"]


async def _says_nothing(call: object, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


def answers_to(service: Service, site: Target, pages: dict[str, str], **fields: Any) -> dict[str, Answer]:
    """Answers for these pages, several at once."""
    site.handle("/silent", _says_nothing)

    def answer(name: str) -> Answer:
        url = site.page("/" + name.replace(" ", "-"), f"<!doctype html><body>{pages[name]}")
        return service.extract(url=url, browserHtml=True, **fields)

    with ThreadPoolExecutor(4) as callers:
        return dict(zip(pages, callers.map(answer, pages), strict=True))


def some_and_all(names: Iterable[str], *some: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "names",
        [
            pytest.param(some, id="some", marks=pytest.mark.long),
            pytest.param(tuple(names), id="all", marks=pytest.mark.full),
        ],
    )


@pytest.mark.long
def test_pages_that_never_rest_ask_for_much_or_lead_elsewhere_are_read(service: Service, site: Target) -> None:
    answers = answers_to(service, site, READABLE, includeIframes=True)
    html = {name: str(answer.json.get("browserHtml")) for name, answer in answers.items()}
    assert {name: answer.body for name, answer in answers.items() if "<h1>here" not in html[name]} == {}
    assert not [name for name in html if "root:" in html[name] or "elsewhere</" in html[name]]
    assert "refused" in html["permissions"]
    assert "notifications granted" not in html["permissions"]
    assert "QuotaExceededError" in html["fills storage"]


@some_and_all(HARMFUL, "leaving", "moves", "moves to a blob", "history", "windows", "many frames", "downloads")
def test_pages_that_mean_harm_get_a_clear_answer(service: Service, site: Target, names: tuple[str, ...]) -> None:
    answers = answers_to(service, site, {name: HARMFUL[name] for name in names})
    for name, answer in answers.items():
        assert answer.status in (200, 520, 521), (name, answer.body)
        assert answer.status == 200 or answer.json["detail"], name
        assert answer.status != 520 or "retry-after" in answer.headers, name
    assert "fine" in service.result(url=site.page("/fine", "<h1>fine</h1>"), browserHtml=True)["browserHtml"]


@some_and_all(GROWING, "document", "canvas", "blobs", "caches")
def test_pages_that_grow_are_bounded(service: Service, site: Target, names: tuple[str, ...]) -> None:
    pages = {name: f"<script>fetch('/silent')</script>{GROWING[name]}" for name in names}
    for name, answer in answers_to(service, site, pages).items():
        assert answer.status in (200, 520), (name, answer.body)
    assert "fine" in service.result(url=site.page("/fine", "<h1>fine</h1>"), browserHtml=True)["browserHtml"]
    assert service.service.browser.memory < 2 * SHORT_LIMITS.browser_memory_mib * MIB


@pytest.mark.parametrize("kind", ["heap", "buffers"])
@pytest.mark.long
def test_a_page_that_eats_memory_crashes_alone(service: Service, site: Target, kind: str) -> None:
    service.result(url=site.page("/before", "here before"), browserHtml=True)
    launches = service.service.browser.launches
    url = site.page("/memory", f"<script>fetch('/silent')</script>{GROWING[kind]}")
    site.handle("/silent", _says_nothing)
    assert "memory" in service.problem(520, "/download/temporary-error", url=url, browserHtml=True)
    assert service.service.browser.launches == launches


@pytest.mark.long
def test_a_small_body_of_a_gigabyte_is_bounded(service: Service, site: Target) -> None:
    packer = zlib.compressobj(9)
    # A block that stands for itself can come any number of times.
    first, block = (packer.compress(b"<p>more</p>" * 100_000) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    body = first + 1000 * block
    assert len(body) < SHORT_LIMITS.page_bytes
    url = site.page("/packed", body, Content_Encoding="deflate")
    answer = service.extract(url=url, browserHtml=True)
    # Read as far as it came, or given up: either is bounded.
    assert answer.status in (200, 520, 521), answer.body[:200]
    assert len(answer.body) < SHORT_LIMITS.html_bytes * 1.1
    assert "fine" in service.result(url=site.page("/fine", "<h1>fine</h1>"), browserHtml=True)["browserHtml"]


SHARED = "onconnect = event => { self.seen = (self.seen || 0) + 1; event.ports[0].postMessage(self.seen) }"
LEAVES = """<h1>leaves</h1><script src=/kept.js></script><script>
    document.cookie = 'trace=1'; localStorage.trace = 1; sessionStorage.trace = 1; name = 'trace';
    indexedDB.open('trace', 7); caches.open('trace'); navigator.serviceWorker.register('/worker.js').catch(() => 0);
    const channel = new BroadcastChannel('trace'); setInterval(() => channel.postMessage('trace'), 20);
    new SharedWorker('/shared.js', 'trace').port.onmessage = message =>
        document.body.append('connections: ' + message.data); fetch('/left-open')</script>"""
FINDS = """<body><script src=/kept.js></script><script>(async () => {
    const channel = new BroadcastChannel('trace'); let received = false; channel.onmessage = () => received = true;
    const worker = new SharedWorker('/shared.js', 'trace');
    const seen = await new Promise(done => worker.port.onmessage = message => done(message.data));
    await new Promise(done => setTimeout(done, 100));
    const found = {cookies: document.cookie, local: localStorage.length, session: sessionStorage.length, name: name,
        databases: (await indexedDB.databases()).length, caches: (await caches.keys()).length, received, seen,
        workers: (await navigator.serviceWorker.getRegistrations()).length};
    const shown = document.createElement('p'); shown.id = 'found'; shown.append(JSON.stringify(found));
    document.body.append(shown); })(); fetch('/silent')</script>"""
FOUND = [{"action": "waitForSelector", "selector": {"type": "css", "value": "#found"}}]


def test_nothing_of_one_request_reaches_another(service: Service, site: Target) -> None:
    site.handle("/silent", _says_nothing)
    site.handle("/left-open", _says_nothing)
    site.page("/kept.js", "", Cache_Control="max-age=3600", ETag='"trace"', Content_Type="text/javascript")
    site.page("/shared.js", SHARED, Content_Type="text/javascript")
    leaves, finds = site.page("/leaves", LEAVES, Set_Cookie="from=server"), site.page("/finds", FINDS)
    with ThreadPoolExecutor(1) as other:
        beside = other.submit(service.result, url=leaves, browserHtml=True)
        eventually(lambda: site.calls_of("/left-open"))
        # While the first one is open, and after it.
        results = [service.result(url=finds, browserHtml=True, actions=FOUND)]
        beside.result()
        results.append(service.result(url=finds, browserHtml=True, actions=FOUND))
    for result in results:
        found = json.loads(re.search(r"\{.*\}", result["browserHtml"].rpartition("</script>")[2])[0])  # type: ignore[index]
        nothing = {"cookies": "", "local": 0, "session": 0, "name": "", "databases": 0, "caches": 0, "workers": 0}
        assert found == {**nothing, "received": False, "seen": 1}
    fetched = site.calls_of("/kept.js")
    assert (len(fetched), {call.header("if-none-match") for call in fetched}) == (3, {None})
    assert not any(call.header("cookie") for call in site.calls_of("/finds"))


def _huge_png(side: int = 50_000) -> bytes:
    """A picture of a few hundred kilobytes that is gigabytes when it is decoded."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    packer = zlib.compressobj(1)
    row = bytes(1 + side // 8)
    data = b"".join(packer.compress(row * 100) for _ in range(side // 100)) + packer.flush()
    head = side.to_bytes(4, "big") * 2 + bytes([1, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _svg(body: str, before: str = "") -> str:
    return f'{before}<svg xmlns="http://www.w3.org/2000/svg" width="500" height="500">{body}</svg>'


def _nested_uses() -> str:
    levels = "".join('<g id="l%d">%s</g>' % (n, f'<use href="#l{n - 1}"/>' * 10) for n in range(1, 10))  # noqa: UP031
    return _svg(f'<defs><g id="l0"><rect width="9" height="9"/></g>{levels}</defs><use href="#l9"/>')


def _entities() -> str:
    lines = "".join('<!ENTITY l%d "%s">' % (n, f"&l{n - 1};" * 10) for n in range(1, 10))  # noqa: UP031
    return _svg("<text>&l9;</text>", f'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY l0 "lol">{lines}]>')


IMAGE_BOMBS = {
    "a PNG of 50,000 by 50,000": ("image/png", _huge_png),
    "an SVG of uses in uses": ("image/svg+xml", _nested_uses),
    "an SVG of entities in entities": ("image/svg+xml", _entities),
    "an SVG with a large filter": (
        "image/svg+xml",
        lambda: _svg(
            '<filter id="f" width="1000" height="1000"><feTurbulence numOctaves="99999"/>'
            '<feGaussianBlur stdDeviation="9999"/></filter><rect width="40000" height="40000" filter="url(#f)"/>'
        ),
    ),
}


#: Those that keep a browser busy until its time is up.
SLOW_BOMBS = ("an SVG of uses in uses", "an SVG with a large filter")


@pytest.mark.parametrize(
    "bomb", [pytest.param(name, marks=[pytest.mark.full] if name in SLOW_BOMBS else []) for name in IMAGE_BOMBS]
)
@pytest.mark.long
def test_a_picture_that_becomes_huge_ends_in_an_answer_and_harms_no_other(
    service: Service, site: Target, bomb: str
) -> None:
    kind, make = IMAGE_BOMBS[bomb]
    picture = site.page("/bomb", make(), Content_Type=kind)  # type: ignore[operator]
    url = site.page("/shows", f"<h1>shows</h1><img src='{picture}'><style>body {{background: url({picture})}}</style>")
    for where in (url, picture):
        answer = service.extract(url=where, screenshot=True)
        assert answer.status in (200, 520, 521), answer.body
    assert "calm" in service.result(url=site.page("/calm", "<h1>calm</h1>"), browserHtml=True)["browserHtml"]
