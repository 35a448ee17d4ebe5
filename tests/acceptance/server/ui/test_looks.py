"""Pages with no rows, ten and ten thousand, at 1280 and 400 pixels, light and dark: axe finds nothing in them, no page
is wider than its window, and a picture of each is kept for people to look at."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.acceptance.server.ui.conftest import OpenPage, keep, violations
from tests.support import packed_projects
from tests.support.eventually import eventually_async
from tests.support.group_reports import joined, reported
from tests.support.http import Http
from tests.support.servers import RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

_REASONS = (
    "finished",
    "finished",
    "finished",
    "finished",
    "failed",
    "cancelled",
    "closespider_timeout",
    "no_more_pages",
)
_SPIDERS = ("books", "lamps.example", "a-spider-with-a-very-long-name-that-somebody-chose")
#: Width and colour scheme of the pictures.
_LOOKS = ((1280, "light"), (400, "light"), (1280, "dark"), (400, "dark"))


async def fill(http: Http, project: int, number: int) -> list[str]:
    """Finished jobs of three spiders; ten of them have items, requests and a log. Returns their keys."""
    chance = random.Random(3)
    keys: list[str] = []
    for first in range(0, number, 500):
        jobs = [
            {
                "spider": _SPIDERS[n % 3],
                "state": "running",
                "spider_args": {"category": "lamps"},
                **({"tags": ["nightly", "eu"]} if n % 4 == 0 else {}),
            }
            for n in range(first, min(first + 500, number))
        ]
        some = [line["key"] for line in (await http.post(f"/jobq/{project}/push", jobs)).lines]
        for key in some[:10] if first == 0 else []:
            await fill_one(http, key, chance.randint(80, 120))
        ends = [
            {"key": key, "state": "finished", "close_reason": _REASONS[n % len(_REASONS)]} for n, key in enumerate(some)
        ]
        await http.post(f"/jobq/{project}/update", ends)
        keys += some
    return keys


async def fill_one(http: Http, key: str, number: int) -> None:
    items = [
        {"url": f"http://lamps.example/{n}", "name": f"Lamp {n}", "price": n % 7 + number % 3, "in_stock": n % 3 > 0}
        for n in range(number)
    ]
    await http.post(f"/items/{key}", items)
    requests = [
        {
            "time": 1_800_000_000_000 + 900 * n,
            "method": "GET",
            "url": f"http://lamps.example/{n}",
            "duration": 40 + n % 9,
        }
        | {"rs": 9000 + n, "status": 404 if n % 19 == 0 else 200}
        for n in range(number)
    ]
    await http.post(f"/requests/{key}", requests)
    log = [
        {
            "time": 1_800_000_000_000 + n,
            "level": 40 if n % 29 == 0 else 20,
            "message": f"Scraped from <200 http://lamps.example/{n}>",
        }
        for n in range(number)
    ]
    await http.post(f"/logs/{key}", log)


async def look(open_page: OpenPage, paths: dict[str, str], looks: Sequence[tuple[int, str]] = _LOOKS) -> None:
    """Check and keep each page at each width and in each scheme."""
    found = []
    for width, scheme in looks:
        page = await open_page("/ui/projects", width=width, scheme=scheme)
        for name, path in paths.items():
            await page.goto(path)
            found += [f"{name} {width} {scheme}: {each}" for each in await violations(page)]
            found += [f"{name} {width}: {each}" for each in await too_wide(page)]
            await keep(page, f"{name}-{width}-{scheme}")
    assert found == []


async def too_wide(page: Page) -> list[str]:
    """The window scrolls sideways."""
    wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"the page is {wide} px wider than the window"] if wide > 0 else []


def paths_of(project: int, keys: list[str], rows: int) -> dict[str, str]:
    ui = f"/ui/{project}"
    found = {
        "overview": ui,
        "jobs": f"{ui}/jobs",
        "jobs-sorted": f"{ui}/jobs?sort=-items&outcome=ok",
        "periodic": f"{ui}/periodic",
        "projects": f"/ui/projects?project={project}",
        "compare": f"{ui}/compare",
    }
    if keys:
        found |= {
            "job": f"/ui/{keys[9]}",
            "spider": f"{ui}/spiders/1",
            "compare": f"{ui}/compare?a={keys[0]}&b={keys[3]}",
        }
    return {f"{name}-{rows}-rows": path for name, path in found.items()}


@pytest.mark.long
async def test_pages_without_rows_say_what_to_do_next(open_page: OpenPage, project: int) -> None:
    page = await open_page(f"/ui/{project}/jobs")
    await expect(page.locator("div.empty").get_by_role("link", name="Run a spider")).to_be_visible()
    paths = paths_of(project, [], 0)
    paths |= {
        "run": f"/ui/{project}/jobs/run",
        "schedule-new": f"/ui/{project}/periodic/new",
        "settings": f"/ui/{project}/settings",
        "webhooks": f"/ui/{project}/webhooks",
        "versions": f"/ui/{project}/versions",
        "retention": f"/ui/{project}/retention",
        "retention-new": f"/ui/{project}/retention/new",
        "deliveries-new": f"/ui/{project}/deliveries/new",
    }
    await look(open_page, paths)


@pytest.mark.long
async def test_the_pages_of_a_job_fit_a_phone(open_page: OpenPage, http: Http, project: int) -> None:
    keys = await fill(http, project, 10)
    paths = paths_of(project, keys, 10)
    some = ("jobs-10-rows", "spider-10-rows", "job-10-rows", "compare-10-rows")
    await look(open_page, {name: paths[name] for name in some}, [(400, "light")])


@pytest.mark.long
async def test_a_job_with_200_workers_fits_a_phone(open_page: OpenPage, http: Http, project: int) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": _SPIDERS[2], "state": "running"}])).lines
    key = str(pushed["key"])
    queue = {"memory": 30, "active": 8, "idle": 0.01}
    for place in range(200):
        await joined(http, key, place, "4..200")
        if place % 3:
            counts = {"items": 11 * place, "responses": 17 * place, "errors": place % 7 // 6}
            stats = {"memusage/max": ["max", 90_000_000 + place]}
            await reported(http, key, place + 1, 2, queue=queue, counts=counts, stats=stats)
    lines = [{"time": 1_800_000_000_000 + n, "level": 20, "message": f"[{n % 200}] Crawled {n}"} for n in range(2000)]
    await http.post(f"/logs/{key}", lines)
    samples = [[1_800_000_000_000 + 5000 * n, 90 * n, 60 * n, n, 90_000_000, 4 + n] for n in range(196)]
    await http.post(f"/samples/{key}", samples)
    paths = {"job": f"/ui/{key}", "jobs": f"/ui/{project}/jobs", "log": f"/ui/{key}/log?worker=7&start=0"}
    paths |= {"run": f"/ui/{project}/jobs/run?again={key}", "periodic": f"/ui/{project}/periodic/new"}
    await look(open_page, {f"workers-{name}": path for name, path in paths.items()})
    page = await open_page(f"/ui/{key}", width=400, scripts=False)
    await page.get_by_role("region", name="Workers").get_by_role("link", name="7", exact=True).click()
    await expect(page.get_by_role("spinbutton", name="Worker")).to_have_value("7")
    await expect(page.get_by_role("list", name="Log").locator("li")).to_have_count(10)


@pytest.mark.long
async def test_monitors_and_targets_fit_a_phone(open_page: OpenPage, http: Http, project: int) -> None:
    monitors = f"/api/projects/{project}/monitors"
    checks = ["items >= 100", "coverage a_field_with_a_very_long_name_that_somebody_chose >= 95%"]
    monitor = {"name": "enough items of everything", "checks": checks, "enabled": True}
    target = {"name": "on-call", "url": "json://127.0.0.1:9/token"}
    for path, fields in ((monitors, monitor), (f"/api/projects/{project}/alerts", target)):
        assert (await http.post(path, json.dumps(fields).encode())).status == 201
    await fill(http, project, 10)
    await eventually_async(lambda: http.get(f"{monitors}/results"), lambda answer: len(answer.json) == 10)
    ui = f"/ui/{project}/monitors"
    await look(open_page, {"monitors-10-rows": ui, "monitor-10-rows": f"{ui}/1"}, [(400, "light")])
    page = await open_page(ui, width=400)
    await expect(page.get_by_role("region", name="Results of jobs").locator("thead")).to_be_hidden()


@pytest.mark.long
async def test_the_pages_of_the_settings_fit_a_phone(open_page: OpenPage, http: Http, project: int) -> None:
    api = f"/api/projects/{project}"
    url = "https://hooks.example/a/long/path/of/a/hook/that/somebody/chose/for/the/jobs/of/the/project?token=abcdef0123"
    rule = {"what": ["items"], "older_than": 3000, "spider": "a_spider_with_a_very_long_name_that_somebody_chose"}
    for path, fields in (
        (f"{api}/webhooks", {"url": url, "events": ["job:completed", "*"]}),
        (f"{api}/retention", rule),
    ):
        assert (await http.post(path, json.dumps(fields).encode())).status == 201
    await http.post(f"{api}/webhooks/1/test")
    settings = {"job_settings": {"A_SETTING": "x" * 200, "API_KEY": "secret"}, "mine": [1, 2]}
    assert (await http.post(f"/projects/{project}/settings", json.dumps(settings).encode())).status == 200
    archive = packed_projects.folder()
    assert (await http.post(f"{api}/versions?version=1.0-a-name-of-a-version-that-is-long", archive)).status == 201
    ready = f"{api}/versions/1.0-a-name-of-a-version-that-is-long"
    await eventually_async(lambda: http.get(ready), lambda answer: answer.json["state"] == "ready")
    ui = f"/ui/{project}"
    pages = (
        "settings",
        "settings?setting=job_settings",
        "webhooks",
        "webhooks/1",
        "versions",
        "versions/1",
        "retention",
    )
    pages += ("retention/1", "deliveries/job?job=" + f"{project}/1/1")
    await look(open_page, {f"settings-{place}": f"{ui}/{path}" for place, path in enumerate(pages)})


@pytest.mark.long
async def test_a_webhook_is_added_and_tested_by_clicks(open_page: OpenPage, http: Http, project: int) -> None:
    page = await open_page(f"/ui/{project}/jobs", scripts=False)
    bar = page.get_by_role("navigation", name="Project")
    await bar.get_by_role("link", name="Settings").click()
    await page.get_by_role("navigation", name="Pages of the settings").get_by_role("link", name="Webhooks").click()
    await page.get_by_label("URL").fill("http://127.0.0.1:9/hook")
    await page.get_by_role("button", name="Add webhook").click()
    await expect(page.locator("code.secret")).to_contain_text("whsec_")
    await page.get_by_role("link", name="1", exact=True).click()
    await page.get_by_role("button", name="Test").click()
    await expect(page.get_by_role("status").first).to_contain_text("The test is sent.")
    await eventually_async(lambda: http.get(f"/ui/{project}/webhooks/1"), lambda answer: "given up" in answer.text)
    await page.reload()
    await expect(page.get_by_role("region", name="Deliveries")).to_contain_text("127.0.0.1")
    await page.get_by_text("Remove…").click()
    await page.get_by_role("button", name="Remove", exact=True).click()
    await expect(page.get_by_text("No webhooks yet")).to_be_visible()


@pytest.mark.long
async def test_pages_with_ten_rows(open_page: OpenPage, http: Http, project: int) -> None:
    await http.call("PATCH", f"/api/projects/{project}", json.dumps({"name": f"lamps {project}"}).encode())
    keys = await fill(http, project, 10)
    body: dict[str, Any] = {"cron": "30 4 * * 1", "tasks": [{"name": "books"}], "description": "Every Monday"}
    await http.call("POST", f"/api/projects/{project}/periodicjobs", json.dumps(body).encode())
    pending = await http.post(f"/jobq/{project}/push", [{"spider": "books"}, {"spider": "books", "state": "running"}])
    paths = paths_of(project, keys, 10)
    paths |= {
        name: f"/ui/{line['key']}" for name, line in zip(("job-pending", "job-running"), pending.lines, strict=True)
    }
    await look(open_page, paths)


@pytest.mark.long
async def test_pages_with_ten_thousand_rows(open_page: OpenPage, http: Http, project: int) -> None:
    keys = await fill(http, project, 10_050)
    page = await open_page(f"/ui/{project}/jobs?sort=-took")
    await expect(page.locator("main .note").first).to_contain_text("Sorted among the newest 10\u202f000 jobs, back to")
    await page.get_by_role("link", name="Look at older jobs").click()
    await expect(page.locator("tbody tr")).not_to_have_count(0)
    await expect(page.get_by_role("link", name="Look at older jobs")).to_have_count(0)
    await look(open_page, paths_of(project, keys, 10_000))


@pytest.mark.long
async def test_the_menu_of_a_narrow_window_leads_everywhere_without_a_script(open_page: OpenPage, project: int) -> None:
    page = await open_page(f"/ui/{project}/jobs", width=400, scripts=False)
    await expect(page.get_by_role("navigation", name="Server")).to_be_hidden()
    await page.get_by_text("Menu", exact=True).click()
    await page.get_by_role("navigation", name="Menu").get_by_role("link", name="Periodic jobs").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Periodic jobs")
    await page.get_by_text("Menu", exact=True).click()
    await keep(page, "menu-400")
    await page.get_by_role("navigation", name="Menu").get_by_role("link", name="Projects").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Projects")


@pytest.mark.long
async def test_columns_are_chosen_and_jobs_sorted_by_clicks(open_page: OpenPage, http: Http, project: int) -> None:
    await fill(http, project, 10)
    page = await open_page(f"/ui/{project}/jobs", scripts=False)
    await page.get_by_text("Columns", exact=True).click()
    await keep(page, "jobs-columns")
    await page.get_by_label("Requests").uncheck()
    await page.get_by_label("Version").check()
    await page.get_by_role("button", name="Show these").click()
    await expect(page.get_by_role("status")).to_have_text("The columns were changed, for this browser.")
    heads = page.locator("thead th")
    await expect(heads.filter(has_text="Version")).to_be_visible()
    await expect(heads.filter(has_text="Requests")).to_have_count(0)
    await heads.get_by_role("link", name="Items").click()
    sorted_by = page.locator("th[aria-sort=descending] .sort")
    await expect(sorted_by).to_have_text("Items")
    assert "↓" in await sorted_by.evaluate("link => getComputedStyle(link, '::after').content")
    await page.goto(f"/ui/{project}/jobs")
    await expect(heads.filter(has_text="Version")).to_be_visible()


@pytest.mark.long
async def test_times_of_schedules_are_shown_in_the_time_zone_of_the_browser_too(
    open_page: OpenPage, ui_server: RunningServer, project: int
) -> None:
    async with Http(ui_server.url, ui_server.platform_key) as http:
        for cron, name in (("30 4 * * *", "books"), ("30 20 * * *", "news")):
            body = json.dumps({"cron": cron, "tasks": [{"name": name}]}).encode()
            assert (await http.post(f"/api/projects/{project}/periodicjobs", body)).status == 201
    page = await open_page(f"/ui/{project}/periodic/1", zone="Asia/Tokyo")
    runs = page.locator(".times li")
    await expect(runs).to_have_count(5)
    await expect(runs.first).to_contain_text(re.compile(r"^... \d{4}-\d\d-\d\d 04:30 13:30 local$"))
    await page.goto(f"/ui/{project}/periodic/2")
    # The day is another one there.
    await expect(runs.first).to_contain_text(re.compile(r" 20:30 ...,? 05:30 local$"))
    await page.goto(f"/ui/{project}/periodic/new")
    await page.locator("#cron").fill("0 12 24 12 *")
    await expect(page.locator("[data-next-runs] li").first).to_contain_text("12:00 21:00 local")
    await page.goto(f"/ui/{project}/periodic/week")
    await expect(page.get_by_text("Point at a time for that of Asia/Tokyo.")).to_be_visible()
    assert await page.locator("tbody time").first.get_attribute("title") == "13:30 local"
    for width, scheme in ((1280, "dark"), (400, "light")):
        page = await open_page(f"/ui/{project}/periodic/week", width=width, scheme=scheme)
        assert await violations(page) == []
        await keep(page, f"week-{width}")
    without = await open_page(f"/ui/{project}/periodic/1", zone="Asia/Tokyo", scripts=False)
    await expect(without.locator(".times li").first).to_contain_text("04:30")
    await expect(without.locator(".local")).to_have_count(0)


@pytest.mark.long
async def test_the_next_runs_of_a_schedule_are_shown_while_it_is_typed(open_page: OpenPage, project: int) -> None:
    page = await open_page(f"/ui/{project}/periodic/new")
    runs = page.locator("[data-next-runs] li")
    await expect(runs).to_have_count(5)
    await expect(page.get_by_role("button", name="Show the next runs")).to_be_hidden()
    cron = page.locator("#cron")
    await cron.fill("0 12 24 12 *")
    await expect(runs.first).to_contain_text("-12-24 12:00")
    await cron.fill("*/5 * * * *")
    await expect(page.locator("[data-next-error]")).to_contain_text("ranges, steps and lists are not supported")
    await expect(runs).to_have_count(0)
    await page.get_by_label("When it runs").select_option("weekdays")
    await expect(page.locator("input[name=cron]")).to_have_count(5)
    await page.get_by_label("at (UTC)").fill("06:15")
    await expect(page.locator("#cron-5")).to_have_value("15 6 * * 5")
    assert await violations(page) == []
    await keep(page, "schedule-weekdays")
    await page.locator("#task-1").fill("books")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("5 periodic jobs were created, one for each cron expression.")
