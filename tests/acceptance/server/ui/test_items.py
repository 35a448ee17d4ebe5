"""The pages of items and requests in a real browser: found, filtered, sorted, and read by all."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.acceptance.server.ui.conftest import OpenPage, keep, violations
from tests.acceptance.server.ui.test_snapshots import picture
from tests.support.handwritten_site import Target
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

#: Others are those of other tests.
_projects = itertools.count(4001)
TIME = 1_790_000_000_000
HOSTILE = "<script>window.ran=1</script><img src=x onerror=window.ran=1>\"'</textarea></td>{{7*7}}"
_NAMES = ("Kettle, wide", "Aurora Desk Lamp", "Walnut chair", "Tea set for four", "Copper pan")
#: Elements that make a page wider than its window.
WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("main *")]
    .filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll"))
    .map(e => e.outerHTML.slice(0, 200))"""


def item(number: int, host: str = "shop.example") -> dict[str, Any]:
    made: dict[str, Any] = {
        "url": f"https://{host}/p/{number}",
        "name": f"{_NAMES[number % len(_NAMES)]} {number}",
        "price": f"{number % 300 + 9}.50",
        "currency": "EUR",
        "images": [{"url": f"http://{host}/image/{number % 3}.png"}],
        "offers": [{"seller": {"name": "Harbour Works", "rating": 4.5}, "price": number, "stock": None}] * 2,
        "tags": ["new", "kitchen"],
        "description": "Made by hand, and kept for years. " * (number % 9 + 1),
    }
    return made if number % 4 else {name: value for name, value in made.items() if name != "description"}


def request(number: int) -> dict[str, Any]:
    page = {
        "time": TIME + 400 * number,
        "method": "GET",
        "url": f"https://shop.example/p/{number}",
        "rs": 3_000 + number,
    }
    status = 404 if number % 17 == 5 else 503 if number % 41 == 7 else 301 if number % 29 == 3 else 200
    parent = {} if number < 3 else {"parent": number // 3 - 1}
    return {**page, "status": status, "duration": 40 + number * 379 % 7000, **parent}


async def filled(http: Http, project: int, number: int, host: str = "shop.example") -> str:
    """The path of a job with so many items and requests."""
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "products", "state": "running"}])
    key = str(pushed.lines[0]["key"])
    if number:
        await http.post(f"/items/{key}", b"".join(_line(item(each, host)) for each in range(number)))
        await http.post(f"/requests/{key}", b"".join(_line(request(each)) for each in range(number)))
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": "finished"}])
    return f"/ui/{key}"


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


@pytest_asyncio.fixture(loop_scope="session")
async def http(ui_server: RunningServer) -> AsyncIterator[Http]:
    async with Http(ui_server.url, ui_server.platform_key) as http:
        yield http


PARTS = {
    "items": "/items",
    "cards": "/items?view=cards",
    "json": "/items?view=json",
    "filtered": "/items?where=price+%3E+20+and+name+~+kettle&sort=price&desc=1",
    "nothing": "/items?q=nothing+has+this",
    "wrong": "/items?where=price+%3E+20+or+name+~+x",
    "item": "/items/7",
    "requests": "/requests",
    "slow": "/requests?status=failed&slow=1000",
    "request": "/requests/7",
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("scheme", "width", "number"),
    [
        pytest.param("light", 1280, 10_000, id="light"),
        pytest.param("dark", 400, 10_000, id="dark-phone"),
        pytest.param("dark", 1280, 10, id="dark-few", marks=pytest.mark.full),
        pytest.param("light", 400, 10, id="phone-few"),
        pytest.param("light", 1280, 0, id="empty"),
        pytest.param("dark", 400, 0, id="dark-phone-empty", marks=pytest.mark.full),
    ],
)
async def test_every_page_of_items_and_requests_can_be_read_by_all(
    open_page: OpenPage, http: Http, scheme: str, width: int, number: int
) -> None:
    path = await filled(http, next(_projects), number)
    page = await open_page(path, scheme=scheme, width=width)
    found = {}
    for name, part in PARTS.items():
        if not number and name in ("item", "request"):
            continue
        await page.goto(path + part)
        if name in ("items", "cards"):
            for fold in await page.locator(".fold > summary, :is(tr, li):nth-child(-n + 2) .nested > summary").all():
                if await fold.is_visible():
                    await fold.click()
        found[name] = await violations(page)
        assert await page.evaluate(WIDER) == [], f"what makes {name} wider than the window"
        await keep(page, f"{name}-{number}-{scheme}-{width}")
    assert {name: faults for name, faults in found.items() if faults} == {}


async def test_items_are_found_without_scripts_or_typing(open_page: OpenPage, http: Http) -> None:
    path = await filled(http, next(_projects), 120)
    page = await open_page(f"{path}/items", scripts=False)
    heads = await page.locator("thead th .sort").all_inner_texts()
    assert heads[:3] == ["name", "price", "url"]
    await page.get_by_text("Add a condition").click()
    await page.get_by_label("Field", exact=True).fill("price")
    await page.get_by_label("Condition", exact=True).select_option("is more than")
    await page.get_by_label("Value").fill("120")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_label("Filter", exact=True)).to_have_value("price > 120")
    await expect(page.get_by_role("status")).to_contain_text("9 found. Looked through all 120 items.")
    await page.get_by_label("Search all fields").fill("KETTLE")
    await page.keyboard.press("Enter")
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="Show all").click()
    await page.get_by_role("link", name="price", exact=True).click()
    await page.get_by_role("link", name="price", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("120 items, sorted by price, highest first.")
    await expect(page.locator("tbody tr").first).to_contain_text("128.50")
    await page.get_by_role("link", name="Cards").click()
    await expect(page.get_by_role("heading", name="Copper pan 119")).to_be_visible()
    assert await violations_without_scripts(page) == 0


async def violations_without_scripts(page: Any) -> int:
    """Inputs without a label, which axe could not report here."""
    return await page.locator("main input:not([type=hidden]):not([id]):not([type=checkbox])").count()


@pytest.mark.long
async def test_chosen_columns_stay_and_coverage_leads_to_items_without_a_field(open_page: OpenPage, http: Http) -> None:
    project = next(_projects)
    path, other = await filled(http, project, 40), await filled(http, project, 4)
    page = await open_page(f"{path}/items")
    await page.get_by_text("Columns and coverage").click()
    for name in ("currency", "description", "offers", "tags", "url"):
        await page.get_by_role("checkbox", name=name).uncheck()
    await page.get_by_role("button", name="Show these columns").click()
    await expect(page.locator("thead th .sort")).to_have_text(["name", "price", "images"])
    await page.goto(f"{other}/items")
    await expect(page.locator("thead th .sort")).to_have_text(["name", "price", "images"])
    await page.get_by_text("Columns and coverage").click()
    await page.get_by_role("button", name="Back to the usual ones").click()
    await expect(page.locator("thead th .sort")).to_have_count(8)
    await page.goto(f"{path}/items")
    await page.get_by_text("Columns and coverage").click()
    await page.get_by_role("link", name="10 without description").click()
    await expect(page.get_by_role("status")).to_contain_text("10 found")
    assert await page.locator("tbody tr td:first-child").all_inner_texts() == [str(n) for n in range(0, 40, 4)]


@pytest.mark.long
async def test_nested_values_unfold(open_page: OpenPage, http: Http) -> None:
    path = await filled(http, next(_projects), 3)
    page = await open_page(f"{path}/items")
    offers = page.locator("tbody tr").first.locator("details").filter(has_text="2 values").first
    await expect(offers.get_by_text("Harbour Works").first).to_be_hidden()
    for summary in ("summary", "details summary"):
        await offers.locator(summary).first.focus()
        await page.keyboard.press("Enter")
    await expect(offers.get_by_text("Harbour Works").first).to_be_visible()


async def test_a_request_shows_the_pages_from_its_seed_on(open_page: OpenPage, http: Http) -> None:
    path = await filled(http, next(_projects), 60)
    page = await open_page(f"{path}/requests")
    await page.get_by_role("link", name="Request 43").click()
    way = page.get_by_role("navigation", name="Pages that led to this one").locator("li")
    await expect(way).to_have_text(way_of(43))
    await page.get_by_role("link", name="3", exact=True).click()
    await page.get_by_role("link", name="requests that it led to").click()
    await expect(page.locator("tbody tr td:first-child")).to_have_text(["12", "13", "14"])
    await page.goto(f"{path}/requests?status=404&slow=1000&host=shop.example")
    for status in await page.locator("tbody tr td:nth-child(4)").all_inner_texts():
        assert status == "404"
    await expect(page.get_by_label("Status", exact=True)).to_have_value("404")


def way_of(number: int) -> list[Any]:
    """Patterns of the requests from the seed to a request."""
    way = [number]
    while way[0] >= 3:
        way.insert(0, way[0] // 3 - 1)
    return [re.compile(rf"\s*{each}\s+[0-9]{{3}}\s+https://shop\.example/p/{each}") for each in way]


@pytest.mark.long
async def test_hostile_items_harm_no_view(open_page: OpenPage, http: Http) -> None:
    project = next(_projects)
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "s", "state": "running"}])
    key = str(pushed.lines[0]["key"])
    items = [
        {
            HOSTILE: HOSTILE,
            "name": HOSTILE,
            "url": "javascript:window.ran=1",
            "deep": {HOSTILE: [{HOSTILE: HOSTILE}] * 9},
        },
        {"name": "\u202eright to left\u0000\u001b[31m", "a\u202eb": "مرحبا", "images": ["data:text/html,<script>1"]},
        {f"field {number}": number for number in range(10_000)},
        {"huge": [[{"a": "x" * 100}] * 300] * 30},
    ]
    await http.post(f"/items/{key}", b"".join(_line(each) for each in items))
    await http.post(f"/items/{key}", b'{"name":"deep","nested":' + b"[" * 400 + b"]" * 400 + b"}\n")
    page = await open_page(f"/ui/{key}")
    views = ["/items", "/items?view=cards", "/items?view=json", "/items?all=1", "/items?sort=name"]
    for part in [*views, *(f"/items/{n}" for n in range(5)), "/items?where=%22a%20b%22%20is%20missing&q=%3Cscript%3E"]:
        await page.goto(f"/ui/{key}{part}")
        assert await page.evaluate("window.ran") is None, part
        assert await page.evaluate(WIDER) == [], part
        assert await page.locator("a[href^='javascript:'], a[href^='data:'], main img, main script").count() == 0
        assert len(await page.content()) < 3_000_000, part
    await page.goto(f"/ui/{key}/items")
    await keep(page, "hostile-items")


# ── images ──


@pytest.fixture(scope="module")
def with_images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, Target]]:
    """A server that may show images of items, and the site that has them."""
    site = Target().start()
    for number in range(3):
        site.page(f"/image/{number}.png", picture(240, 120 + 60 * number), Content_Type="image/png")
    data = tmp_path_factory.mktemp("with-images") / "data"
    with ForkedServer(data, allow_hosts=[site.host], options=("--item-images",)) as server:
        yield server, site
    site.stop()


@pytest.mark.long
async def test_images_of_items_are_shown_from_this_server_alone(
    open_page: OpenPage, with_images: tuple[RunningServer, Target]
) -> None:
    server, site = with_images
    async with Http(server.url, server.platform_key) as http:
        path = await filled(http, next(_projects), 12, site.host)
    page = await open_page("/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{server.url}{path}/items")
    await page.get_by_label("API key").fill(server.platform_key)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_role("button", name="Log out").wait_for()
    for view, name in (("", "images-table"), ("?view=cards", "images-cards"), ("/7", "images-item")):
        await page.goto(f"{server.url}{path}/items{view}")
        first = page.locator("main img").first
        await expect(first).to_be_visible()
        await expect(first).to_have_js_property("complete", value=True)
        assert await first.evaluate("image => image.naturalWidth") == 240
        assert await violations(page) == []
        await keep(page, name)
    assert all(url.startswith(server.url) for url in asked)


@pytest.mark.long
async def test_an_image_that_the_site_does_not_have_leaves_no_gap(
    open_page: OpenPage, with_images: tuple[RunningServer, Target]
) -> None:
    server, site = with_images
    async with Http(server.url, server.platform_key) as http:
        project = next(_projects)
        pushed = await http.post(f"/jobq/{project}/push", [{"spider": "products", "state": "running"}])
        key = str(pushed.lines[0]["key"])
        lamp = {"name": "Lamp", "image": f"http://{site.host}/image/none.png"}
        await http.post(f"/items/{key}", _line(lamp))
    page = await open_page("/")
    await page.goto(f"{server.url}/ui/{key}/items?view=cards")
    await page.get_by_label("API key").fill(server.platform_key)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_role("button", name="Log out").wait_for()
    await page.goto(f"{server.url}/ui/{key}/items?view=cards")
    await expect(page.get_by_role("link", name="Lamp")).to_be_visible()
    await expect(page.locator("main img")).to_be_hidden()
