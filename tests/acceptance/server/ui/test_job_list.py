"""The list of jobs in a real browser: chosen jobs, its head, a phone, and times in the zone of the browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.acceptance.server.ui.conftest import OpenPage, keep, violations
from tests.acceptance.server.ui.test_looks import fill, too_wide
from tests.support.http import Http

pytestmark = pytest.mark.asyncio(loop_scope="session")


#: Elements that a finger has to hit, and that are lower than 24 pixels. Links within sentences are not among them.
SMALL = """() => [...document.querySelectorAll("a, button, input, select, summary")]
    .filter(e => e.checkVisibility() && !e.closest("p, .note, .wrap, .skip, .unseen, svg"))
    .filter(e => (e.closest("label") ?? e).getBoundingClientRect().height < 24)
    .map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.long
async def test_a_phone_shows_a_job_in_two_lines_and_the_first_one_near_the_top(
    open_page: OpenPage, http: Http, project: int
) -> None:
    await fill(http, project, 60)
    page = await open_page(f"/ui/{project}/jobs", width=400)
    rows = page.locator("table.jobs tbody tr")
    first = await rows.first.bounding_box()
    assert first
    assert first["y"] < 300
    heights = await rows.evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert len(heights) == 50
    assert max(heights) <= 73
    assert await page.evaluate(SMALL) == []
    assert await too_wide(page) == []
    spider = page.get_by_role("searchbox", name="Spider")
    await expect(spider).to_be_hidden()
    await page.get_by_label("Filters").check()
    await spider.fill("lamps")
    await page.get_by_role("button", name="Filter", exact=True).click()
    # Filters that are in use stay in sight.
    await expect(spider).to_have_value("lamps")
    await expect(rows).to_have_count(20)
    assert await violations(page) == []
    await keep(page, "job-list-phone")


@pytest.mark.long
async def test_all_jobs_of_a_page_are_chosen_at_once_and_the_head_stays_in_sight(
    open_page: OpenPage, http: Http, project: int
) -> None:
    await fill(http, project, 60)
    page = await open_page(f"/ui/{project}/jobs")
    await expect(page.get_by_role("link", name="Choose this page")).to_be_hidden()
    await page.get_by_label("Choose this page").check()
    await expect(page.locator("[data-chosen]")).to_have_text("50 chosen")
    await page.locator("input[name=job]").first.uncheck()
    await expect(page.locator("[data-chosen]")).to_have_text("49 chosen")
    assert await page.get_by_label("Choose this page").evaluate("box => box.indeterminate")
    await page.get_by_label("Choose all 60 found").check()
    await expect(page.locator("[data-chosen]")).to_contain_text("All that are found.")
    await page.locator("input[name=job]").last.scroll_into_view_if_needed()
    await expect(page.locator("table.jobs thead th").nth(1)).to_be_in_viewport()
    assert await violations(page) == []
    await page.get_by_role("button", name="Run again").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Run 60 jobs again?")
    assert await violations(page) == []
    await page.get_by_role("button", name="Run again").click()
    await expect(page.get_by_role("status").first).to_have_text("60 jobs were scheduled again.")
    await expect(page.locator(".tabs")).to_contain_text("pending 60")


async def test_times_are_those_of_the_browser_with_utc_as_their_title(
    open_page: OpenPage, http: Http, project: int
) -> None:
    (key,) = await fill(http, project, 1)
    path = f"/ui/{key}/requests/0"
    page = await open_page(path, zone="Asia/Kathmandu")
    time = page.locator("main table time").first
    await expect(time).to_have_text("2027-01-15 13:45:00")
    await expect(time).to_have_attribute("title", "2027-01-15 08:00:00 UTC")
    page = await open_page(path, zone="Asia/Kathmandu", scripts=False)
    await expect(page.locator("main table time").first).to_have_text("2027-01-15 08:00:00 UTC")


@pytest.mark.long
async def test_a_search_is_sent_from_any_page(open_page: OpenPage, http: Http, project: int) -> None:
    keys = await fill(http, project, 4)
    for scripts, width in ((True, 1280), (False, 400)):
        page = await open_page(f"/ui/{project}/monitors", scripts=scripts, width=width)
        field = page.get_by_label(f"Look up in project {project}")
        await field.fill("lamps.example/7")
        await field.press("Enter")
        answers = page.locator(".answers li")
        await expect(answers.first).to_contain_text("http://lamps.example/7")
        if scripts:
            assert await violations(page) == []
        assert await too_wide(page) == []
        await keep(page, f"search-{width}")
        await page.get_by_label(f"Look up in project {project}").fill(keys[0])
        await page.get_by_role("button", name="Look up").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("books")
