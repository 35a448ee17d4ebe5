"""Through the pages as people go: log in, find a job, run, stop and delete, read a log while it grows."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.acceptance.server.ui.conftest import OpenPage, keep, violations
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

_projects = itertools.count(1)

#: Everything that a browser could take for more than text.
HOSTILE = (
    "<script>window.ran=1</script><img src=x onerror=window.ran=1><svg onload=window.ran=1>"
    "\"'><a href='javascript:window.ran=1'>x</a></span></td></textarea></pre></title>{{7919*7919}}\u202e\x1b[2J"
)


@pytest.fixture
async def project(ui_server: RunningServer) -> int:
    return next(_projects)


async def job(http: Http, project: int, **fields: Any) -> str:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running", **fields}])
    return str(pushed.lines[0]["key"])


def lines(first: int, number: int, text: str = "Line") -> list[dict[str, Any]]:
    return [
        {"time": 1_800_000_000_000 + n, "level": 20, "message": f"{text} {n}"} for n in range(first, first + number)
    ]


async def filled(server: RunningServer, project: int, state: str = "finished", word: str = "A book") -> str:
    """A job with something of everything."""
    chance, now = random.Random(5), time.time_ns() // 1_000_000
    async with Http(server.url, server.platform_key) as http:
        key = await job(http, project, tags=["nightly", word], spider_args={"category": word, "api_key": "s3cret"})
        items = [
            {"name": f"{word} {n}", "url": f"http://books.example/{n}", "price": n / 4, "authors": ["Ann", word]}
            for n in range(120)
        ]
        await http.post(f"/items/{key}", items)
        requests = [
            {"time": now + n, "method": "GET", "url": f"http://books.example/{n}?{word}", "duration": n, "rs": 9 * n}
            for n in range(120)
        ]
        for n, request in enumerate(requests):
            request["status"] = 503 if n % 17 == 0 else 404 if n % 11 == 0 else 200
        await http.post(f"/requests/{key}", requests)
        levels = [10, 20, 20, 20, 30, 40]
        log = [{"time": now + n, "level": levels[n % 6], "message": f"{word} was read\n  {n}"} for n in range(240)]
        await http.post(f"/logs/{key}", log)
        samples = [
            [now - 600_000 + n * 5000, 20 * n + chance.randint(0, 15), 9 * n, n, 90_000_000 + 500_000 * n]
            for n in range(120)
        ]
        await http.post(f"/samples/{key}", samples)
        await http.post(
            f"/jobq/{project}/update", [{"key": key, "frameworkstats": {"item_scraped_count": 120, word: 1}}]
        )
        if state == "finished":
            await http.post(f"/jobq/{project}/update", [{"key": key, "state": state, "close_reason": "finished"}])
    return key


async def test_log_in_and_out(open_page: OpenPage, ui_server: RunningServer) -> None:
    page = await open_page("/ui/1/jobs?state=finished", stranger=True)
    assert await violations(page) == []
    await keep(page, "login")
    await page.keyboard.type("wrong")  # the field has the focus
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("no access here")
    await page.get_by_label("API key").fill(ui_server.platform_key)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{ui_server.url}/ui/1/jobs?state=finished")
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    await page.goto("/ui/1/jobs")
    await expect(page).to_have_url(f"{ui_server.url}/login?next=%2Fui%2F1%2Fjobs")


async def test_run_stop_run_again_and_delete(open_page: OpenPage, project: int) -> None:
    page = await open_page(f"/ui/{project}/jobs")
    await page.get_by_role("link", name="Run a spider").first.click()
    assert await violations(page) == []
    await page.get_by_label("Spider").fill("books")
    await page.get_by_label("Arguments").fill("no argument")
    await page.get_by_label("Settings of this job").fill("[")
    await page.get_by_role("button", name="Run").click()
    await expect(page.locator("#arguments-hint")).to_contain_text("no name=value")
    await expect(page.locator("#job_settings-hint")).to_contain_text("is not JSON")
    assert await page.get_by_label("Arguments").input_value() == "no argument"
    assert await violations(page) == []
    await keep(page, "run-refused")
    await page.get_by_label("Arguments").fill("category=new")
    await page.get_by_label("Settings of this job").fill("")
    await page.get_by_role("button", name="Run").click()
    await expect(page.get_by_role("status")).to_have_text("The job is scheduled. This is its page.")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("status")).to_have_text("1 job was asked to stop.")
    await expect(page.locator(".heading .state")).to_have_text("cancelled")
    await page.get_by_role("link", name="Run again…").click()
    assert await page.get_by_label("category").input_value() == "new"
    assert await violations(page) == []
    await keep(page, "run-again")
    await page.get_by_role("button", name="Run").click()
    await expect(page.get_by_role("status")).to_have_text("The new job is scheduled. This is its page.")
    await expect(page.get_by_role("navigation", name="You are here")).to_contain_text(f"{project}/1/2")
    await page.get_by_role("navigation", name="You are here").get_by_role("link", name="Jobs").click()
    await page.get_by_label(f"Choose job {project}/1/1").check()
    await expect(page.locator("[data-chosen]")).to_have_text("1 chosen")
    await page.get_by_label(f"Choose job {project}/1/2").check()
    await page.get_by_role("button", name="Delete…").click()
    await expect(page.get_by_role("heading")).to_have_text("Delete 2 jobs?")
    assert await violations(page) == []
    await keep(page, "delete")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("status")).to_have_text("2 jobs were deleted.")
    await expect(page.get_by_text("No jobs yet.")).to_be_visible()


@pytest.mark.long
async def test_the_arguments_of_a_spider_appear_when_it_is_chosen(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    async with Http(ui_server.url, ui_server.platform_key) as http:
        await job(http, project, spider_args={"category": "new"})
        await job(http, project, spider="news", spider_args={"country": "de"})
    page = await open_page(f"/ui/{project}/jobs/run")
    await expect(page.get_by_role("button", name="Show the arguments of this spider")).to_be_hidden()
    await page.get_by_label("Tags", exact=True).fill("kept")
    await page.get_by_label("Spider").fill("news")
    await page.get_by_label("country").fill("fr")
    await expect(page.get_by_label("category")).to_have_count(0)
    assert await violations(page) == []
    await page.get_by_label("Spider").fill("books")
    await expect(page.get_by_label("category")).to_be_visible()
    assert await page.get_by_label("Tags", exact=True).input_value() == "kept"
    plain = await open_page(f"/ui/{project}/jobs/run", scripts=False, width=400)
    await plain.get_by_label("Spider").fill("news")
    await plain.get_by_role("button", name="Show the arguments of this spider").click()
    await expect(plain.get_by_label("country")).to_be_visible()
    assert await violations(await open_page(f"/ui/{project}/jobs/run?spider=news", width=400, scheme="dark")) == []


@pytest.mark.long
async def test_the_list_of_jobs_refreshes_by_itself_but_not_under_ones_hands(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    async with Http(ui_server.url, ui_server.platform_key) as http:
        key = await job(http, project)
        page = await open_page(f"/ui/{project}/jobs")
        await page.evaluate("window.same = true")
        row = page.locator(f"#job-{key.replace('/', '-')}")
        await http.post(f"/items/{key}", [{"a": 1}] * 7)
        await expect(row.locator("td").nth(4)).to_have_text("7")
        await page.get_by_label(f"Choose job {key}").check()
        other = await job(http, project)
        refreshed = page.locator("#live").evaluate("e => new Promise(r => setTimeout(() => r(e.innerText), 3500))")
        assert other not in await refreshed
        assert await page.get_by_label(f"Choose job {key}").is_checked()
        await page.get_by_label(f"Choose job {key}").uncheck()
        await page.locator("h1").click()
        await expect(page.locator(f"#job-{other.replace('/', '-')}")).to_be_visible()
        assert await page.evaluate("window.same"), "the page itself was not loaded again"


@dataclass
class LiveLog:
    """The page of a running job's log, which has 300 lines."""

    page: Page
    key: str
    http: Http

    @property
    def status(self) -> Locator:
        return self.page.locator("[data-live-status]")

    @property
    def log(self) -> Locator:
        return self.page.locator("ol.log")

    async def leave_the_end(self) -> None:
        await self.log.focus()
        # A browser scrolls in steps: lines that arrive between two of them, or a key, end that.
        await eventually_async(self._is_at_the_top_after_home, what="the top of the log")
        await expect(self.status).to_contain_text("Paused while you read")

    async def _is_at_the_top_after_home(self) -> bool:
        await self.page.keyboard.press("Home")
        return bool(await self.log.evaluate("log => log.scrollTop === 0"))


@contextlib.asynccontextmanager
async def live_log(open_page: OpenPage, server: RunningServer, project: int) -> AsyncIterator[LiveLog]:
    async with Http(server.url, server.platform_key) as http:
        key = await job(http, project)
        await http.post(f"/logs/{key}", lines(0, 300))
        live = LiveLog(await open_page(f"/ui/{key}/log"), key, http)
        await expect(live.status).to_have_text("Live: new lines appear as they arrive.")
        yield live


@pytest.mark.long
async def test_a_log_grows_while_it_is_read_pauses_and_shows_its_end(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    async with live_log(open_page, ui_server, project) as live:
        page, key, http = live.page, live.key, live.http
        assert await violations(page) == []
        await http.post(f"/logs/{key}", [*lines(300, 2), *lines(302, 1, HOSTILE)])
        await expect(page.locator("#l302")).to_be_in_viewport()
        await expect(page.locator("#l302")).to_contain_text("<script>window.ran=1</script>")
        await keep(page, "log-live")
        await live.leave_the_end()
        await http.post(f"/logs/{key}", lines(303, 5))
        await expect(live.status).to_have_text("Paused while you read: 5 new lines below.")
        await expect(page.locator("#l307")).not_to_be_in_viewport()
        await page.keyboard.press("End")
        await expect(live.status).to_have_text("Live: new lines appear as they arrive.")
        await http.post(f"/logs/{key}", lines(308, 2500))
        await expect(page.locator("#l2807")).to_be_in_viewport()
        assert await live.log.locator("li").count() <= 2000
        await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
        await expect(live.status).to_contain_text("The job has ended")
        # So does what stands over it: the state, how many lines there are, and what can be done.
        head = page.locator("#head")
        await expect(head).to_contain_text("finished")
        await expect(head).to_contain_text("log 2\u202f808")
        await expect(head.get_by_role("button", name="Stop")).to_have_count(0)
        assert await page.evaluate("window.ran") is None


async def test_the_end_key_leads_to_lines_that_are_not_drawn_yet(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    async with live_log(open_page, ui_server, project) as live:
        log = live.log
        await live.leave_the_end()
        # The browser's own scrolling knows the lines that it has drawn: a key at this moment must not end there.
        left = await log.evaluate("""log => {
            for (let n = 0; n < 50; n++) log.append(log.lastElementChild.cloneNode(true));
            log.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true, cancelable: true}));
            return log.scrollHeight - log.clientHeight - log.scrollTop;
        }""")
        assert left < 30
        await expect(live.status).to_have_text("Live: new lines appear as they arrive.")


@pytest.mark.long
async def test_a_whole_traceback_is_shown_in_the_log_and_without_scripts_on_its_page(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    frames = "".join(f'  File "/env/site-packages/scrapy/{n}.py", line {n}, in f\n    f()\n' for n in range(9))
    message = f'Oh\nTraceback (most recent call last):\n{frames}  File "shop.py", line 3, in g\n    g()\nKeyError: 1'
    async with Http(ui_server.url, ui_server.platform_key) as http:
        key = await job(http, project)
        await http.post(f"/logs/{key}", [{"time": 1, "level": 40, "message": message}])
        await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
    page = await open_page(f"/ui/{key}/log")
    await page.get_by_role("link", name="whole traceback").click()
    await expect(page.locator("ol.log .unfolded")).to_contain_text("scrapy/8.py")
    plain = await open_page(f"/ui/{key}/log", scripts=False)
    await plain.get_by_role("link", name="whole traceback").click()
    await expect(plain.locator("pre")).to_contain_text("scrapy/8.py")


@pytest.mark.long
async def test_values_of_charts_are_shown_on_hover_and_by_keyboard(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    async with Http(ui_server.url, ui_server.platform_key) as http:
        key = await job(http, project)
        start = 1_800_000_000_000
        await http.post(f"/samples/{key}", [[start + n * 5000, 100 * n, 50 * n, 0, 10**8] for n in range(61)])
        await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
    page = await open_page(f"/ui/{key}")
    chart, memory = page.locator(".chart").first, page.locator(".chart").nth(1)
    await page.get_by_role("img", name="Throughput, a minute").focus()
    for pressed, shown in (
        ("Home", "08:00:10"),
        ("ArrowRight", "08:00:30"),
        ("End", "08:04:50"),
        ("ArrowLeft", "08:04:30"),
    ):
        await page.keyboard.press(pressed)
        await expect(chart.locator(".reading")).to_have_text(f"{shown} UTC: requests 1\u202f200, items 600")
    await memory.locator(".values rect").nth(3).hover()
    await expect(memory.locator(".reading")).to_have_text("08:00:15 UTC: 100 MB")


#: Elements that make a page wider than its window.
WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("main *")]
    .filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll"))
    .map(e => e.outerHTML.slice(0, 200))"""

PARTS = {
    "jobs": "/ui/{project}/jobs",
    "job": "/ui/{key}",
    "items": "/ui/{key}/items",
    "item": "/ui/{key}/items/3",
    "requests": "/ui/{key}/requests",
    "log": "/ui/{key}/log",
    "stats": "/ui/{key}/stats",
    "run": "/ui/{project}/jobs/run",
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        pytest.param("light", 1280, id="light"),
        pytest.param("dark", 390, id="dark phone", marks=pytest.mark.long),
        pytest.param("dark", 1280, id="dark", marks=pytest.mark.full),
        pytest.param("light", 390, id="phone", marks=pytest.mark.full),
    ],
)
async def test_every_page_can_be_read_by_all(
    open_page: OpenPage, ui_server: RunningServer, project: int, scheme: str, width: int
) -> None:
    key = await filled(ui_server, project)
    await filled(ui_server, project, "running")
    page = await open_page("/", scheme=scheme, width=width)
    found = {}
    for name, path in PARTS.items():
        await page.goto(path.format(project=project, key=key))
        found[name] = await violations(page)
        assert await page.evaluate(WIDER) == [], f"what makes {name} wider than the window"
        await keep(page, f"{name}-{scheme}-{width}")
    assert found == {name: [] for name in PARTS}


async def test_nothing_hostile_runs_on_any_page(open_page: OpenPage, ui_server: RunningServer, project: int) -> None:
    async with Http(ui_server.url, ui_server.platform_key) as http:
        key = await job(http, project, spider=HOSTILE[:200], tags=[HOSTILE[:200]], close_reason=HOSTILE)
        item = {
            HOSTILE: HOSTILE,
            "url": "javascript:window.ran=1",
            "data": "data:text/html,<script>1",
            "huge": "x" * 500_000,
        }
        await http.post(f"/items/{key}", [item])
        request = {
            "time": 1,
            "method": HOSTILE,
            "url": "javascript:window.ran=1",
            "status": 200,
            "duration": 3,
            "rs": 4,
        }
        await http.post(f"/requests/{key}", [request])
        await http.post(f"/logs/{key}", [{"time": 1, "level": 40, "message": HOSTILE}])
        stats = {"key": key, "frameworkstats": {HOSTILE: HOSTILE}, "spider_args": {HOSTILE: HOSTILE}}
        await http.post(f"/jobq/{project}/update", [stats])
    page = await open_page(f"/ui/{project}/jobs")
    for path in (
        *PARTS.values(),
        f"/ui/{project}/jobs?spider=<script>window.ran=1</script>&tag='%22><img src=x onerror=window.ran=1>",
    ):
        await page.goto(path.format(project=project, key=key).replace("items/3", "items/0"))
        assert await page.evaluate("window.ran") is None
        assert await page.evaluate(WIDER) == []
        assert await page.locator("a[href^='javascript:'], a[href^='data:'], main img, main script").count() == 0
        assert "62710561" not in await page.locator("main").inner_text()
    await page.goto(f"/ui/{key}")
    await keep(page, "hostile")


async def test_pages_work_without_scripts(open_page: OpenPage, ui_server: RunningServer, project: int) -> None:
    key = await filled(ui_server, project, "running")
    page = await open_page(f"/ui/{project}/jobs", scripts=False)
    await page.get_by_role("searchbox", name="Spider").fill("nothing of this name")
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_text("No jobs of a matching spider.")).to_be_visible()
    await page.get_by_role("link", name="Clear the filters").click()
    await page.get_by_label(f"Choose job {key}").check()
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("status")).to_have_text("1 job was asked to stop.")
    await page.goto(f"/ui/{key}/log")
    await expect(page.get_by_role("status")).to_contain_text("Reload the page")
    await expect(page.locator("ol.log li").last).to_contain_text("239")


@pytest.mark.long
async def test_a_link_of_another_site_leads_to_the_page(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    address = f"{ui_server.url}/ui/{project}/jobs?state=running&tag=%22a"
    link = f"<a href='{address}'>a job</a>"
    for stranger, wanted in ((False, address), (True, f"{ui_server.url}/login?next=")):
        page = await open_page("/login", stranger=stranger)
        await page.route("http://chat.example/", lambda route: route.fulfill(body=link, content_type="text/html"))
        await page.goto("http://chat.example/")
        await page.get_by_role("link", name="a job").click()
        await page.wait_for_url(lambda url, wanted=wanted: url.startswith(wanted))
        await expect(page.get_by_role("button", name="Log out" if not stranger else "Log in")).to_be_visible()


async def focused(page: Page) -> str:
    return str(await page.evaluate("document.activeElement.innerText || document.activeElement.name || ''"))


async def test_pages_are_used_by_keyboard(open_page: OpenPage, ui_server: RunningServer, project: int) -> None:
    key = await filled(ui_server, project)
    page = await open_page(f"/ui/{project}/jobs")
    await page.keyboard.press("Tab")
    assert await focused(page) == "Skip to the page"
    await page.keyboard.press("Enter")
    seen = []
    for _ in range(60):
        await page.keyboard.press("Tab")
        seen.append(await focused(page))
        if seen[-1] == key:
            break
    assert seen[:4] == ["Run a spider", "Columns", "spider", "tag"]
    assert seen[-1] == key
    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "one sees where one is"
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("books")
