"""Parts of pages that refresh: they keep what the user does there, and the page says when live updates are off."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.acceptance.server.ui.conftest import OpenPage, keep, violations
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def job(http: Http, project: int, spider: str = "books") -> str:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": spider, "state": "running"}])
    return str(pushed.lines[0]["key"])


def row(page: Page, key: str) -> Locator:
    return page.locator(f"#job-{key.replace('/', '-')}")


def live_status(page: Page) -> Locator:
    return page.locator("[data-refresh-status]")


async def logged_in(open_page: OpenPage, server: RunningServer, path: str, *, interrupted: bool = False) -> Page:
    """A page of a server that has no session yet."""
    page = await open_page(f"{server.url}{path}", stranger=True, interrupted=interrupted)
    await page.get_by_label("API key").fill(server.platform_key)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{server.url}{path}")
    return page


async def test_a_part_that_refreshes_keeps_focus_scroll_position_and_elements(
    open_page: OpenPage, http: Http, project: int
) -> None:
    keys = [await job(http, project, f"a spider with a long name, {n}" * 3) for n in range(4)]
    page = await open_page(f"/ui/{project}/jobs", width=720)
    table = page.get_by_role("region", name="Jobs")
    await row(page, keys[0]).get_by_role("link").first.focus()
    await table.evaluate("table => { table.scrollLeft = 100; window.rows = [...table.querySelectorAll('tbody tr')] }")
    new = await job(http, project)
    # A job that changes moves to the top, with the link that has the focus.
    await http.post(f"/jobq/{project}/update", [{"key": keys[0], "state": "finished"}])
    await expect(row(page, new)).to_be_visible()
    await expect(row(page, keys[0]).locator(".state")).to_have_text("finished")
    assert await page.evaluate("document.activeElement.innerText") == keys[0]
    assert await table.evaluate("table => table.scrollLeft") == 100
    assert await page.evaluate("window.rows.every(row => row.isConnected)")
    await expect(live_status(page)).to_be_empty()


async def test_an_open_menu_stays_open_while_its_part_refreshes(open_page: OpenPage, http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"a": 1}] * 3)
    page = await open_page(f"/ui/{key}")
    await page.locator("#job").get_by_text("Download").click()
    await http.post(f"/items/{key}", [{"b": 1}] * 4)
    await expect(page.locator(".figures dd").first).to_have_text("7")
    await expect(page.locator("#job").get_by_role("link", name="Parquet")).to_be_visible()


@pytest.mark.long
async def test_selected_text_stays_selected_and_the_part_goes_on_afterwards(
    open_page: OpenPage, http: Http, project: int
) -> None:
    key = await job(http, project)
    page = await open_page(f"/ui/{project}/jobs")
    await row(page, key).locator(".name").evaluate("cell => getSelection().selectAllChildren(cell)")
    await http.post(f"/items/{key}", [{"a": 1}] * 7)
    counted = row(page, key).locator("td").nth(4)
    assert await counted.evaluate("e => new Promise(r => setTimeout(() => r(e.innerText), 3500))") == "0"
    assert await page.evaluate("getSelection().toString()") == "books"
    await page.evaluate("getSelection().removeAllRanges()")
    await expect(counted).to_have_text("7")


@pytest.mark.long
async def test_a_page_says_that_the_server_does_not_answer_and_goes_on_when_it_does(
    open_page: OpenPage, tmp_path: Path
) -> None:
    server = ForkedServer(tmp_path)
    page = await logged_in(open_page, server, "/ui/1/jobs", interrupted=True)
    await page.evaluate("window.same = true")
    await asyncio.to_thread(server.kill)
    await expect(live_status(page)).to_contain_text("the server does not answer")
    assert await violations(page) == []
    await keep(page, "refresh-interrupted")
    port = server.url.rpartition(":")[2]
    options = ["--port", port, "--platform-key", server.platform_key, "--extract-key", server.extract_key]
    again = await asyncio.to_thread(ForkedServer, tmp_path, options=options, keys=False)
    try:
        async with Http(again.url, server.platform_key) as http:
            key = await job(http, 1)
            await expect(row(page, key)).to_be_visible()
            await expect(live_status(page)).to_be_empty()
            assert await page.evaluate("window.same"), "the page itself was not loaded again"
            await page.close()
    finally:
        await asyncio.to_thread(again.kill)


async def test_a_page_that_is_open_when_the_session_ends_leads_to_the_login_and_back(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    page = await open_page(f"/ui/{project}/jobs?state=running")
    await page.context.clear_cookies()
    await expect(live_status(page)).to_contain_text("your session has ended")
    assert await violations(page) == []
    await keep(page, "refresh-session-ended")
    await live_status(page).get_by_role("link", name="Log in").click()
    await page.get_by_label("API key").fill(ui_server.platform_key)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{ui_server.url}/ui/{project}/jobs?state=running")


@pytest.mark.long
async def test_a_page_waits_while_the_server_fails_and_gives_up_where_it_has_no_such_page(
    open_page: OpenPage, ui_server: RunningServer, http: Http, project: int
) -> None:
    """The answers are made here: the server gives them to a page that it has just sent in rare moments only."""
    page = await open_page(f"/ui/{project}/jobs", interrupted=True)
    statuses = [503, 429]
    path = "**/ui/*/jobs"

    async def fail(route: Route) -> None:
        await (route.fulfill(status=statuses.pop(0)) if statuses else route.continue_())

    await page.route(path, fail)
    await expect(live_status(page)).to_contain_text("the server answers with an error (503)")
    await expect(live_status(page)).to_contain_text("the server answers with an error (429)")
    await expect(live_status(page)).to_be_empty()
    await page.unroute(path)
    await page.route(path, lambda route: route.fulfill(status=404))
    await expect(live_status(page).get_by_role("link", name="Reload the page")).to_be_visible()
    assert await page.locator("[data-refresh]").count() == 0


@pytest.mark.long
@pytest.mark.parametrize("scripts", [pytest.param(False, id="off"), pytest.param(True, id="failed")])
async def test_a_page_without_its_script_says_that_live_updates_are_off(
    open_page: OpenPage, http: Http, project: int, scripts: bool
) -> None:
    key = await job(http, project)
    page = await open_page("/login", scripts=scripts)
    await page.route("**/refresh.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
    for path in (f"/ui/{project}/jobs", f"/ui/{key}", f"/ui/{key}/log", f"/ui/{project}/activity", "/ui/nodes"):
        await page.goto(path)
        await expect(live_status(page)).to_have_text(
            "Live updates are off: they need JavaScript. Reload the page for newer data."
        )
        await expect(live_status(page)).to_have_css("visibility", "visible")
    await keep(page, f"refresh-without-script-{scripts}")
