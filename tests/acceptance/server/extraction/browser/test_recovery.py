"""Failures of the browser itself, and requests for more than it has."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import le
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.browser import page as page_module
from scrapy_ext.server.extraction.browser.instance import parent_of
from scrapy_ext.server.metrics import lines
from tests.acceptance.server.extraction.browser.processes import browsers, children, of_this_run, painters, renderers
from tests.support.eventually import TIMEOUT, eventually, eventually_async
from tests.support.extraction_service import Service, head
from tests.support.free_ports import held_port, number_of
from tests.support.handwritten_site import Target
from tests.support.servers import RunningServer

pytestmark = pytest.mark.long


@pytest.fixture
def own(site: Target) -> Any:
    """A service with a browser of its own, to be harmed, of which nothing is left in the end."""
    yield from harmed(site, ServiceLimits(navigate=120, quiet=0.1, settle=1, close=2, look=0.05, ask=0.2))


@pytest.fixture
def hanging(site: Target) -> Any:
    """The same for a browser that hangs, which is found out soon."""
    yield from harmed(site, ServiceLimits(navigate=8, quiet=0.1, settle=1, respond=4, close=2, look=0.05, ask=0.2))


def harmed(site: Target, limits: ServiceLimits) -> Any:
    before = set(of_this_run())
    with Service(allow_hosts=(site.host,), limits=limits) as running:
        running.result(url=site.page("/warm", "<h1>warm</h1>"), browserHtml=True)
        of_this_run()
        yield running, lambda: [pid for pid in browsers() if pid not in before]
    assert running.service.browser.contexts_opened == running.service.browser.contexts_closed
    assert set(of_this_run()) <= before


def test_a_killed_browser_costs_nothing_because_its_pages_are_loaded_once_more(own: Any, site: Target) -> None:
    running, own_browsers = own
    killed = threading.Event()

    async def kill_first(call: object, writer: asyncio.StreamWriter) -> None:
        if not killed.is_set():
            killed.set()
            for pid in own_browsers():
                os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(5)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nagain")

    result = running.result(url=site.handle("/killer", kill_first), browserHtml=True)
    assert "again" in result["browserHtml"]
    assert running.service.browser.launches == 2
    found = list(lines(running.service.metrics()))
    assert 'scrapy_ext_browser_crashes_total{of="browser"} 1' in found
    assert "scrapy_ext_browser_launches_total 2" in found


def test_a_page_whose_process_dies_once_is_loaded_once_more(own: Any, site: Target) -> None:
    running, _ = own
    killed = threading.Event()

    async def kill_first(call: object, writer: asyncio.StreamWriter) -> None:
        if not killed.is_set():
            killed.set()
            for pid in renderers():  # Chromium keeps one ready for the next page as well
                os.kill(pid, signal.SIGKILL)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    url = site.page("/fragile", f"<h1>again</h1><script>fetch('{site.handle('/kill', kill_first)}')</script>")
    assert "again" in running.result(url=url, browserHtml=True)["browserHtml"]
    assert (len(site.calls_of("/fragile")), running.service.browser.launches) == (2, 1)
    assert 'scrapy_ext_browser_crashes_total{of="page"} 1' in list(lines(running.service.metrics()))


def test_a_page_that_ends_the_browser_twice_is_520(own: Any, site: Target) -> None:
    running, own_browsers = own

    async def kill(call: object, writer: asyncio.StreamWriter) -> None:
        for pid in own_browsers():
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(5)

    url = site.handle("/always-kills", kill)
    running.problem(520, "/download/temporary-error", url=url, browserHtml=True)
    assert running.result(url=site.page("/warm", "<h1>warm</h1>"), browserHtml=True)["statusCode"] == 200


def test_a_browser_that_hangs_is_replaced(hanging: Any, site: Target) -> None:
    running, own_browsers = hanging
    (hung,) = own_browsers()
    os.kill(hung, signal.SIGSTOP)
    assert running.result(url=site.page("/warm", "<h1>warm</h1>"), browserHtml=True)["statusCode"] == 200
    assert running.service.browser.launches == 2


def test_a_browser_that_hangs_in_the_middle_of_a_page_costs_nothing(hanging: Any, site: Target) -> None:
    running, own_browsers = hanging
    hung = threading.Event()

    async def hang_first(call: object, writer: asyncio.StreamWriter) -> None:
        if not hung.is_set():
            hung.set()
            for pid in own_browsers():
                os.kill(pid, signal.SIGSTOP)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nagain")

    result = running.result(url=site.handle("/hangs", hang_first), browserHtml=True)
    assert "again" in result["browserHtml"]
    assert 'scrapy_ext_browser_retirements_total{reason="hang"} 1' in list(lines(running.service.metrics()))


def test_a_page_of_which_no_frame_was_drawn_in_time_has_a_screenshot_all_the_same(
    site: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = painters()
    limits = ServiceLimits(quiet=0.1, settle=1, read_page=6)
    with Service(allow_hosts=(site.host,), limits=limits) as running:
        running.result(url=site.page("/warm", "<h1>warm</h1>"), screenshot=True)
        (painter,) = painters() - before
        redraw = page_module._Loading._redraw

        async def drawing_again(loading: page_module._Loading) -> bool:
            os.kill(painter, signal.SIGCONT)
            return await redraw(loading)

        async def draw_nothing(call: object, writer: asyncio.StreamWriter) -> None:
            os.kill(painter, signal.SIGSTOP)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nplain")

        monkeypatch.setattr(page_module._Loading, "_redraw", drawing_again)
        assert running.result(url=site.handle("/undrawn", draw_nothing), screenshot=True)["screenshot"]
        assert len(site.calls_of("/undrawn")) == 1


def test_a_dead_driver_is_replaced(own: Any, site: Target) -> None:
    running, own_browsers = own
    (browser,) = own_browsers()
    driver = int(Path(f"/proc/{browser}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(driver, signal.SIGKILL)
    assert running.result(url=site.page("/warm", "<h1>warm</h1>"), browserHtml=True)["statusCode"] == 200


def test_a_driver_that_dies_in_the_middle_of_a_page_costs_nothing(own: Any, site: Target) -> None:
    running, own_browsers = own
    (browser,) = own_browsers()
    killed = threading.Event()

    async def kill_first(call: object, writer: asyncio.StreamWriter) -> None:
        if not killed.is_set():
            killed.set()
            driver = parent_of(browser)
            assert driver is not None
            os.kill(driver, signal.SIGKILL)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nagain")

    assert "again" in running.result(url=site.handle("/dies", kill_first), browserHtml=True)["browserHtml"]


def test_a_driver_that_hangs_is_replaced(hanging: Any, site: Target) -> None:
    running, own_browsers = hanging
    (browser,) = own_browsers()
    starter = parent_of(browser)  # Debian's shell, or the driver
    driver = starter if b"node" in Path(f"/proc/{starter}/cmdline").read_bytes() else parent_of(starter)
    assert driver is not None
    os.kill(driver, signal.SIGSTOP)
    assert running.result(url=site.page("/warm", "<h1>warm</h1>"), browserHtml=True)["statusCode"] == 200
    assert not Path(f"/proc/{driver}").exists()


def test_a_form_is_sent_once_where_the_site_ends_the_connection(own: Any, site: Target) -> None:
    running, _ = own

    async def nothing(call: object, writer: asyncio.StreamWriter) -> None:
        writer.close()

    site.handle("/order", nothing)
    url = site.page("/shop", "<form action=/order method=post><button>buy</button></form>")
    actions = [{"action": "click", "selector": {"type": "css", "value": "button"}}]
    result = running.result(url=url, browserHtml=True, actions=actions)
    assert "could not be loaded" in result["actions"][0]["error"]
    assert len(site.calls_of("/order")) == 1


def test_what_actions_sent_is_not_sent_again_when_the_browser_dies(own: Any, site: Target) -> None:
    running, own_browsers = own

    async def kill(call: object, writer: asyncio.StreamWriter) -> None:
        for pid in own_browsers():
            os.kill(pid, signal.SIGKILL)

    site.handle("/order", kill)
    url = site.page("/shop", "<form action=/order method=post><button>buy</button></form>")
    actions = [{"action": "click", "selector": {"type": "css", "value": "button"}}]
    answer = running.extract(url=url, browserHtml=True, actions=actions)
    assert (answer.status, answer.json["type"]) == (520, "/download/temporary-error")
    assert "retry-after" in answer.headers
    assert (len(site.calls_of("/shop")), len(site.calls_of("/order"))) == (1, 1)


def test_a_browser_is_replaced_after_its_share_of_pages(site: Target) -> None:
    url = site.page("/share", "<h1>share</h1>")
    with Service(allow_hosts=(site.host,), limits=ServiceLimits(quiet=0, pages_per_browser=2)) as running:
        for _ in range(5):
            running.result(url=url, browserHtml=True)
        assert running.service.browser.launches == 3
        assert running.service.browser.retirements == {"pages": 2}


@pytest.mark.parametrize("why", ["age", "memory"])
def test_a_browser_that_is_old_or_holds_much_memory_is_replaced_and_its_pages_finish(site: Target, why: str) -> None:
    limits = ServiceLimits(quiet=0.1, look=0.02, browser_age=0.001 if why == "age" else 3600)
    if why == "memory":
        with Service(allow_hosts=(site.host,), limits=ServiceLimits(quiet=0.5, look=0.05)) as running:
            running.result(url=site.page("/in-any", "<h1>any</h1>"), browserHtml=True)
            usual = running.service.browser.memory // 2**20
        # Over it with any page, and far from twice as much, which would be its end.
        limits = ServiceLimits(quiet=0.1, look=0.02, browser_memory_mib=round(usual * 0.8))
    entered, release = threading.Event(), threading.Event()

    async def hold(call: object, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.to_thread(release.wait, 60)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nheld")

    with Service(allow_hosts=(site.host,), limits=limits) as running:
        answers: list[Any] = []
        url = site.handle("/in-the-old-one", hold)
        first = threading.Thread(target=lambda: answers.append(running.extract(url=url, browserHtml=True)))
        first.start()
        assert entered.wait(TIMEOUT)
        url = site.page("/in-a-fresh-one", "<h1>fresh</h1>")
        for _ in range(2):
            assert "fresh" in running.result(url=url, browserHtml=True)["browserHtml"]
        release.set()
        first.join()
        assert "held" in answers[0].json["browserHtml"]
        assert running.service.browser.launches >= 2
        assert set(running.service.browser.retirements) == {why}


def test_more_pages_than_may_wait_get_503_with_retry_after(site: Target) -> None:
    entered, release = threading.Event(), threading.Event()

    async def hold(call: object, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.to_thread(release.wait, 60)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    url = site.handle("/held", hold)
    limits = ServiceLimits(pages_waiting=0)
    with Service(allow_hosts=(site.host,), browser_pages=1, limits=limits) as running:
        first = threading.Thread(target=running.result, kwargs={"url": url, "browserHtml": True})
        first.start()
        assert entered.wait(TIMEOUT)
        answer = running.extract(url=url, browserHtml=True)
        release.set()
        first.join()
    assert (answer.status, answer.json["type"]) == (503, "/limits/over-global-limit")
    assert int(answer.headers["retry-after"]) >= 0


def test_a_site_that_hangs_leaves_the_next_place_to_another_site(site: Target) -> None:
    entered, release = threading.Event(), threading.Event()

    async def hold(call: object, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.to_thread(release.wait, 60)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    for number in range(3):
        site.handle(f"/hangs/{number}", hold)
    site.page("/quick", "quick")
    rules = [f"{name}.example:80=127.0.0.1:{site.port}" for name in ("hangs", "quick")]
    with Service(connect_to=rules, browser_pages=1) as running, ThreadPoolExecutor(4) as pool:
        pages = running.service.browser.pages
        answers = []
        try:
            for waiting, name in enumerate(("hangs/0", "hangs/1", "hangs/2", "quick")):
                url = f"http://{name.partition('/')[0]}.example/{name}"
                answers.append(pool.submit(running.extract, url=url, browserHtml=True))
                assert entered.wait(TIMEOUT)
                eventually(lambda: pages.waiting, partial(le, waiting))
        finally:
            release.set()
        assert [answer.result(TIMEOUT).status for answer in answers] == [200] * 4
    order = [call.path for call in site.calls if call.path.startswith(("/hangs/", "/quick"))]
    assert order.index("/quick") < order.index("/hangs/2")


def test_a_caller_who_leaves_closes_its_page(own: Any, site: Target) -> None:
    running, _ = own
    entered = threading.Event()

    async def hold(call: object, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.sleep(120)

    url = site.handle("/left", hold)
    body = json.dumps({"url": url, "browserHtml": True}).encode()
    with socket.create_connection(("127.0.0.1", running.port)) as raw:
        raw.sendall(head(f"Content-Length: {len(body)}") + body)
        assert entered.wait(TIMEOUT)
    browser = running.service.browser
    closed = threading.Event()

    async def wait_closed() -> None:
        await eventually_async(lambda: browser.contexts_opened == browser.contexts_closed)
        closed.set()

    running.run(asyncio.wait_for(wait_closed(), 120))
    assert closed.is_set()


def test_a_server_without_a_browser_says_how_to_get_one(site: Target, caplog: pytest.LogCaptureFixture) -> None:
    with Service(allow_hosts=(site.host,), browser="/nonexistent/chromium") as running:
        detail = running.problem(422, "/request/unprocessable", url=site.page("/b", "b"), browserHtml=True)
    assert "/nonexistent/chromium" in detail
    assert "playwright install chromium" in detail
    assert "playwright install chromium" in caplog.text


def test_the_browser_has_none_of_the_servers_secrets(site: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(of_this_run())
    for name in ("EXTRACT_API_KEY", "PLATFORM_API_KEY", "SERVER_DATABASE", "SERVER_PROXIES", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "very-secret")
    with Service(allow_hosts=(site.host,)) as running:
        running.result(url=site.page("/warm", "<h1>warm</h1>"), browserHtml=True)
        own = set(of_this_run()) - before
        assert len(own) > 3
        for pid in own:
            for name in ("environ", "cmdline"):
                assert b"very-secret" not in Path(f"/proc/{pid}/{name}").read_bytes()


def test_no_process_below_the_server_has_its_keys_not_even_the_browsers_driver(site: Target, tmp_path: Path) -> None:
    with RunningServer(tmp_path / "data", allow_hosts=[site.host]) as server:
        body = json.dumps({"url": site.page("/keys", "<h1>keys</h1>"), "browserHtml": True, "pageContent": True})
        credentials = base64.b64encode(f"{server.extract_key}:".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        sent = urllib.request.Request(f"{server.url}/v1/extract", body.encode(), headers)
        with urllib.request.urlopen(sent, timeout=TIMEOUT) as answer:
            assert answer.status == 200
        below = children(server.process.pid)
        environments = {pid: Path(f"/proc/{pid}/environ").read_bytes() for pid in below}
        assert any(b"PW_LANG_NAME" in environment for environment in environments.values())
        for key in (server.extract_key, server.platform_key):
            assert not [pid for pid, environment in environments.items() if key.encode() in environment]


def test_it_is_said_when_the_browser_runs_without_its_sandbox(site: Target, caplog: pytest.LogCaptureFixture) -> None:
    before = set(of_this_run())
    with Service(allow_hosts=(site.host,)) as running:
        running.result(url=site.page("/warm", "<h1>warm</h1>"), browserHtml=True)
        without = [
            pid for pid, line in of_this_run().items() if pid not in before and b"--no-sandbox" in b" ".join(line)
        ]
    # As root, and where the system does not allow it.
    assert bool(without) == ("without" in caplog.text)
    assert without or os.geteuid()


def test_an_answer_does_not_wait_until_its_page_is_closed_which_has_its_permit_until_then(
    own: Any, site: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, _ = own
    close, may_close = BrowserContext.close, threading.Event()

    async def late(context: BrowserContext) -> None:
        await eventually_async(may_close.is_set)
        await close(context)

    monkeypatch.setattr(BrowserContext, "close", late)
    assert running.result(url=site.page("/closes", "closes"), browserHtml=True)["statusCode"] == 200
    browser = running.service.browser
    assert (browser.contexts_opened - browser.contexts_closed, browser.pages.inside) == (1, 1)
    may_close.set()
    eventually(lambda: browser.pages.inside == 0)
    assert browser.contexts_opened == browser.contexts_closed


def test_contexts_are_balanced_after_pages_that_fail_and_callers_who_leave(own: Any, site: Target) -> None:
    running, own_browsers = own

    async def slow(call: object, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    good, held = site.page("/good", "<h1>good</h1>"), site.handle("/slow", slow)
    download = site.page("/file", "x", Content_Type="application/zip")
    unused = held_port()
    nobody = f"http://localhost:{number_of(unused)}/"

    def leave(number: int) -> None:
        body = json.dumps({"url": held, "browserHtml": True, "screenshot": bool(number % 2)}).encode()
        with socket.create_connection(("127.0.0.1", running.port)) as raw:
            raw.sendall(head(f"Content-Length: {len(body)}") + body)
            time.sleep(number / 20)

    def ask(number: int) -> int:
        if number % 4 == 3:
            leave(number)
        elif number == 6:
            for pid in own_browsers():
                os.kill(pid, signal.SIGKILL)
        return int(running.extract(url=(good, download, held, nobody)[number % 4], browserHtml=True).status)

    with ThreadPoolExecutor(6) as callers:
        statuses = Counter(callers.map(ask, range(16)))
    assert statuses[200] >= 6
    unused.close()
    assert set(statuses) <= {200, 421, 520, 521}
    assert running.result(url=good, browserHtml=True)["statusCode"] == 200
    browser = running.service.browser

    async def balanced() -> None:
        await eventually_async(lambda: browser.contexts_opened == browser.contexts_closed)

    running.run(asyncio.wait_for(balanced(), 120))
    found = dict(line.rsplit(" ", 1) for line in lines(running.service.metrics()) if not line.startswith("#"))
    opened, closed = (found[f"scrapy_ext_browser_contexts_{what}_total"] for what in ("opened", "closed"))
    assert opened == closed
    assert found["scrapy_ext_browser_pages_open"] == "0"


SERVER = """
from tests.support.extraction_service import Service
with Service(allow_hosts=("{host}",)) as running:
    running.result(url="{url}", pageContent=True)
    print("loaded", flush=True)
    input()
"""


def test_nothing_outlives_a_server_that_is_killed(site: Target) -> None:
    code = SERVER.format(host=site.host, url=site.page("/killed", "<h1>killed</h1>"))
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdin is not None
    assert server.stdout.readline() == b"loaded\n"
    below = children(server.pid)
    assert below
    server.kill()
    server.wait()
    eventually(lambda: [pid for pid in below if Path(f"/proc/{pid}").exists()], lambda left: not left)
    server.stdin.close()
    server.stdout.close()
