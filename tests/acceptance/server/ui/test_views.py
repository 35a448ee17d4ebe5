"""Through the pages beside jobs as people go: periodic jobs, collections, frontiers, keys, extraction, activity."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import expect

from tests.acceptance.server.ui.conftest import ARCHIVE, OpenPage, keep, violations
from tests.support.eventually import eventually_async
from tests.support.handwritten_site import Target
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<script>window.ran=1</script><img src=x onerror=window.ran=1>\"'</textarea></td>{{7*7}}"
_SHOP = """<html><head><title>Lamps</title><style>body { font: 16px sans-serif; margin: 2rem }</style></head>
<body><h1>Aurora Desk Lamp</h1><p>A lamp for desks.</p><p><b>$59.90</b></p>
<script>window.ran=1</script></body></html>"""


@pytest.fixture(scope="module")
def extracting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, Target]]:
    """A server that may fetch a site, and the site."""
    site = Target().start()
    site.page("/lamp", _SHOP)
    with ForkedServer(tmp_path_factory.mktemp("extracting") / "data", allow_hosts=[site.host]) as server:
        yield server, site
    site.stop()


async def filled(http: Http, project: int, word: str = "A book") -> dict[str, str]:
    """Something on every page; returns their paths by name."""
    ui = f"/ui/{project}"
    key = (await http.post(f"/jobq/{project}/push", [{"spider": word[:200], "state": "finished"}])).lines[0]["key"]
    await http.post(f"/items/{key}", [{"a": 1}] * 50)
    made = await http.call(
        "POST",
        f"/api/projects/{project}/periodicjobs",
        _json(
            cron="30 4 * * 1",
            tasks=[{"name": word, "spider_args": {"category": word}}, {"name": "books", "priority": 4}],
            addtags=["nightly", word[:100]],
            description=f"Every Monday: {word}",
        ),
    )
    number = made.json["id"]
    await http.call(
        "POST", f"/api/projects/{project}/periodicjobs", _json(cron="0 0 1 * *", tasks=[{"name": "s"}], disabled=True)
    )
    records = [{"_key": f"{word}/{n}", "name": word, "price": n, "tags": ["a", word]} for n in range(60)]
    await http.post(f"/collections/{project}/vs/pages", records)
    await http.post(f"/collections/{project}/s/seen_pages", records[:3])
    for slot in range(3):
        form = {"url": f"http://books.example/{slot}?{word}", "method": "GET"}
        requests = [{"fp": f"{slot}{n:05x}{word}", "qdata": form} for n in range(150 * (slot + 1))]
        await http.post(f"/hcf/{project}/books/s/{slot}", requests)
    letter = {"slot": 0, "fp": "ab", "request": {"url": f"http://books.example/{word}"}, "error": f"ValueError: {word}"}
    await http.post(f"/hcf/{project}/books/s/dead-letters", [{"fp": "0/ab", "qdata": letter}])
    await http.post(f"/activity/{project}/", [{"event": "deploy", "user": word, "version": word}])
    rule = {"spider": word[:200], "what": ["items"], "enabled": True}
    for name, fields in (("retention", {"older_than": 30}), ("deliveries", {"target": ARCHIVE})):
        assert (await http.post(f"/api/projects/{project}/{name}", _json(**rule, **fields))).status == 201
    await _monitored(http, project, word)
    return {
        "monitors": f"{ui}/monitors",
        "monitor": f"{ui}/monitors/1",
        "monitor-new": f"{ui}/monitors/new",
        "periodic": f"{ui}/periodic",
        "schedule": f"{ui}/periodic/{number}",
        "schedule-new": f"{ui}/periodic/new",
        "collections": f"{ui}/collections",
        "collection": f"{ui}/collections/vs/pages",
        "record-new": f"{ui}/collections/vs/pages/record",
        "frontiers": f"{ui}/frontiers",
        "frontier": f"{ui}/frontiers/books",
        "slot": f"{ui}/frontiers/books/1",
        "slot-seen": f"{ui}/frontiers/books/1?show=seen",
        "dead-letters": f"{ui}/frontiers/books/dead-letters",
        "activity": f"{ui}/activity",
        "activity-all": "/ui/activity",
        "retention": f"{ui}/retention",
        "deliveries": f"{ui}/deliveries",
        "projects": "/ui/projects",
        "keys": "/ui/keys",
        "nodes": "/ui/nodes",
        "usage": f"{ui}/usage",
        "usage-all": "/ui/usage",
        "extract": "/ui/extract",
        "extraction": "/ui/extract/statistics",
    }


async def _monitored(http: Http, project: int, word: str) -> None:
    """Add a monitor that fails for a job, and a target of alerts that cannot be reached."""
    schema = {"required": [word], "title": word}
    monitor = _json(name=word[:200], checks=["items >= 100", "errors == 0"], schema=schema, enabled=True)
    assert (await http.post(f"/api/projects/{project}/monitors", monitor)).status == 201
    target = _json(name=word[:200], url="json://127.0.0.1:9/secret")
    assert (await http.post(f"/api/projects/{project}/alerts", target)).status == 201
    key = (await http.post(f"/jobq/{project}/push", [{"spider": word[:200], "state": "running"}])).lines[0]["key"]
    await http.post(f"/items/{key}", [{"a": 1}] * 50)
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
    results = f"/api/projects/{project}/monitors/results"
    await eventually_async(lambda: http.get(results), lambda answer: answer.json)


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.long
@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        pytest.param("light", 1280, id="light"),
        pytest.param("dark", 390, id="dark-phone", marks=pytest.mark.long),
    ],
)
async def test_every_page_beside_jobs_can_be_read_by_all(
    open_page: OpenPage, http: Http, project: int, scheme: str, width: int
) -> None:
    paths = await filled(http, project)
    page = await open_page("/", scheme=scheme, width=width)
    found = {}
    for name, path in paths.items():
        await page.goto(path)
        found[name] = await violations(page)
        wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{name} is {wider} pixels wider than the window"
        await keep(page, f"views-{name}-{scheme}-{width}")
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.long
async def test_nothing_hostile_runs_on_the_pages_beside_jobs(open_page: OpenPage, http: Http, project: int) -> None:
    paths = await filled(http, project, HOSTILE)
    page = await open_page(paths["periodic"])
    await page.goto(paths["collection"])
    for link in await page.locator("tbody a").evaluate_all("links => links.slice(0, 2).map(link => link.href)"):
        await page.goto(link)
        assert await page.evaluate("window.ran") is None
        await expect(page.locator("h1")).to_contain_text("<script>window.ran=1</script>")
        await keep(page, "views-hostile-record")
    for name, path in paths.items():
        await page.goto(path)
        assert await page.evaluate("window.ran") is None, name
        assert await page.locator("main script, main img, a[href^='javascript:']").count() == 0, name
    for path in ("periodic?q=", "collections?q=", "collections/vs/pages?prefix=", "activity?event="):
        await page.goto(f"/ui/{project}/{path}%22><img src=x onerror=window.ran=1>")
        assert await page.evaluate("window.ran") is None


async def test_a_periodic_job_from_its_making_to_its_end(open_page: OpenPage, project: int) -> None:
    page = await open_page(f"/ui/{project}/periodic")
    await page.get_by_role("link", name="New periodic job").click()
    await page.get_by_label("Cron (UTC)").fill("*/5 4 * * *")
    await page.get_by_label("Spider, or py: followed by a script").first.fill("books")
    await page.get_by_label("Arguments").first.fill("category=new")
    await page.get_by_label("Description").fill("every night")
    await page.get_by_role("button", name="Create").click()
    await expect(page.locator("#cron-wrong")).to_contain_text("ranges, steps and lists are not supported")
    assert await violations(page) == []
    await keep(page, "views-schedule-wrong")
    await page.get_by_label("Cron (UTC)").fill("30 4 * * *")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("status")).to_have_text("The periodic job was created.")
    assert await page.locator("ol.times li").count() == 5
    await page.get_by_role("button", name="Pause").click()
    await expect(page.get_by_role("status")).to_contain_text("is paused")
    await page.get_by_role("navigation", name="You are here").get_by_role("link", name="Periodic jobs").click()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("status")).to_contain_text("runs on schedule again")
    await page.get_by_role("button", name="Run now").click()
    await expect(page.get_by_role("status")).to_have_text("1 job was scheduled.")
    await page.get_by_label("Spider, tag, cron or description").fill("every night")
    await page.get_by_role("button", name="Search").click()
    await page.locator("tbody tr").get_by_role("link", name="books").click()
    await page.get_by_text("Delete…").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No periodic jobs yet.")).to_be_visible()
    await page.goto(f"/ui/{project}/jobs")
    await expect(page.locator("tbody tr")).to_have_count(1)


@pytest.mark.long
async def test_a_monitor_from_its_preview_to_the_result_on_a_job(open_page: OpenPage, http: Http, project: int) -> None:
    async def crawl() -> str:
        key: str = (await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])).json["key"]
        await http.post(f"/items/{key}", [{"name": "A"}] * 5)
        await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
        return key

    first = await crawl()
    page = await open_page(f"/ui/{project}/monitors")
    await page.get_by_role("link", name="New monitor").click()
    await page.get_by_label("Name in results and messages").fill("enough items")
    await page.get_by_label("Checks, one per line").fill("pages >= 10")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("#checks-wrong")).to_contain_text("has no measure 'pages'")
    await page.get_by_label("Checks, one per line").fill("items >= 10")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("status")).to_contain_text("1 failed")
    await expect(page.get_by_role("status").get_by_role("link", name=first)).to_be_visible()
    assert await violations(page) == []
    await keep(page, "views-monitor-preview")
    await page.get_by_role("button", name="Add and enable").click()
    await expect(page.locator("h1")).to_have_text("enough items")
    key = await crawl()
    results = f"/api/projects/{project}/monitors/results?job={key}"
    await eventually_async(lambda: http.get(results), lambda answer: answer.json)
    await page.goto(f"/ui/{key}")
    await expect(page.locator(".job-monitors")).to_contain_text("items is 5, expected at least 10")
    assert await violations(page) == []
    await keep(page, "views-monitor-job")
    await page.get_by_role("link", name="enough items").click()
    await page.get_by_role("button", name="Disable").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    await keep(page, "views-monitors-list")


@pytest.mark.long
async def test_a_record_with_a_hostile_key_is_edited_and_its_collection_renamed(
    open_page: OpenPage, http: Http, project: int
) -> None:
    await http.post(f"/collections/{project}/s/pages", [{"_key": HOSTILE + "\nline", "a": 1}])
    page = await open_page(f"/ui/{project}/collections")
    await page.get_by_role("link", name="pages", exact=True).click()
    await page.locator("tbody a").click()
    await page.get_by_label("Record, as a JSON object").fill('{"a": ')
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#record-wrong")).to_contain_text("is not JSON")
    await page.get_by_label("Record, as a JSON object").fill('{"a": 2}')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    (kept,) = (await http.get(f"/collections/{project}/s/pages?meta=_key")).lines
    assert kept == {"_key": HOSTILE + "\nline", "a": 2}
    await page.get_by_role("link", name="pages", exact=True).click()
    await page.get_by_text("Rename…").click()
    await page.get_by_label("New name").fill("sites")
    await page.get_by_role("button", name="Rename").click()
    await expect(page.get_by_role("status")).to_have_text("Renamed.")
    await page.get_by_text("Delete…").click()
    await keep(page, "views-collection-delete")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No collections yet")).to_be_visible()


@pytest.mark.long
async def test_the_rules_are_shown_with_what_is_next_and_why_one_waits(
    open_page: OpenPage, http: Http, project: int
) -> None:
    await filled(http, project)
    page = await open_page(f"/ui/{project}/retention")
    await expect(page.get_by_role("region", name="Rules")).to_contain_text("items of jobs of spider A book")
    await expect(page.get_by_role("region", name="Next jobs")).to_contain_text(f"{project}/1/1")

    async def waits() -> str:
        return (await http.get(f"/api/projects/{project}/deliveries")).json[0]["failure"] or ""

    await eventually_async(waits)
    await page.get_by_role("link", name="Deliveries").click()
    rules = page.get_by_role("region", name="Rules")
    await expect(rules).to_contain_text(f"items of jobs of spider A book to {ARCHIVE}")
    await expect(rules).to_contain_text(f"enabled, but waits: {ARCHIVE}")
    await expect(page.get_by_role("region", name="Next jobs")).to_contain_text(f"{project}/1/1")
    assert await violations(page) == []
    await keep(page, "views-deliveries")


@pytest.mark.long
async def test_dead_letters_are_queued_again_and_a_slot_is_deleted(
    open_page: OpenPage, http: Http, project: int
) -> None:
    paths = await filled(http, project)
    page = await open_page(paths["frontiers"])
    await page.get_by_role("link", name="books").click()
    await page.get_by_role("link", name="Show them").click()
    await page.get_by_text("ValueError: A book").first.click()
    await page.get_by_role("button", name="Queue them again").click()
    await expect(page.get_by_role("status")).to_have_text("Requests queued again: 1.")
    await expect(page.get_by_text("dead letter:")).to_have_count(0)
    await page.get_by_role("link", name="2", exact=True).click()
    await page.get_by_role("link", name=re.compile("^seen")).click()
    await expect(page.get_by_text("00000A book")).to_be_visible()
    await page.get_by_text("Delete slot…").click()
    await page.get_by_role("button", name="Delete slot").click()
    await expect(page.locator("tbody tr")).to_have_count(2)


async def test_a_key_is_shown_once_suspended_and_removed(open_page: OpenPage, project: int) -> None:
    name = f"key-{project}"
    page = await open_page("/ui/keys")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("read only").check()
    await page.get_by_role("button", name="Create key").click()
    key = await page.locator("code.secret").inner_text()
    assert re.fullmatch("[0-9a-f]{32}", key)
    assert await violations(page) == []
    await page.locator("code.secret").evaluate("element => { element.textContent = '•'.repeat(32) }")
    await keep(page, "views-key-made")
    await page.goto("/ui/keys")
    assert key not in await page.content()
    row = page.locator("tbody tr", has_text=name)
    await row.get_by_role("button", name="Suspend").click()
    await expect(row).to_contain_text("none: suspended")
    await row.get_by_text("Remove…").click()
    await keep(page, "views-key-remove")
    await row.get_by_role("button", name="Remove").click()
    await expect(row).to_have_count(0)


@pytest.mark.long
async def test_the_activity_grows_by_itself(open_page: OpenPage, http: Http, project: int) -> None:
    await http.post(f"/activity/{project}/", [{"event": "first"}])
    page = await open_page(f"/ui/{project}/activity")
    await page.evaluate("window.same = true")
    await http.post(f"/activity/{project}/", [{"event": "second", "user": HOSTILE}])
    await expect(page.locator("tbody tr").first).to_contain_text("second")
    assert await page.evaluate("window.same"), "the page itself was not loaded again"
    assert await page.evaluate("window.ran") is None
    await page.get_by_label("Events", exact=True).select_option("scheduled")
    await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_text("No such events yet.")).to_be_visible()


@pytest.mark.long
async def test_a_page_is_extracted_and_its_script_runs_in_nobodys_browser(
    open_page: OpenPage, extracting: tuple[RunningServer, Target]
) -> None:
    server, site = extracting
    page = await open_page(f"{server.url}/login", stranger=True)
    await page.get_by_label("API key").fill(server.platform_key)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_role("link", name="Extract").click()
    await page.get_by_label("URL").fill(f"http://{site.host}/lamp")
    await page.get_by_label("Extracted fields").select_option("product")
    await page.get_by_role("button", name="Extract").click()
    await expect(page.get_by_role("heading", name="Result")).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("^name"))).to_contain_text("Aurora Desk Lamp")
    await expect(page.get_by_role("row", name=re.compile("^price"))).to_contain_text("59.90")
    picture = page.get_by_alt_text("The page as the browser shows it")
    assert await picture.evaluate("async picture => { await picture.decode(); return picture.naturalWidth }") > 100
    await expect(page.get_by_role("region", name="HTML of the browser")).to_contain_text(
        "<script>window.ran=1</script>"
    )
    assert await page.evaluate("window.ran") is None
    assert await violations(page) == []
    await keep(page, "views-extract-result")
    await page.get_by_role("link", name="statistics").click()
    await expect(page.get_by_role("cell", name="product")).to_be_visible()
    await keep(page, "views-extraction-statistics")
    await page.set_viewport_size({"width": 390, "height": 900})
    for part in ("proxies", "statistics"):
        await page.get_by_role("link", name=part).click()
        await expect(page.get_by_role("link", name=part)).to_have_attribute("aria-current", "page")
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert await violations(page) == []
        await keep(page, f"views-extraction-{part}-phone")
