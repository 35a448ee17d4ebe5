"""The pages of items and requests: conditions, order, columns, bounds, images, and the way to a request."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import pytest
from yarl import URL

from scrapy_ext.server import record_search
from tests.acceptance.server.ui.test_snapshots import picture
from tests.integration.server.ui.test_pages import HOSTILE, job, page, texts
from tests.support.handwritten_site import Target
from tests.support.http import Answer, Http
from tests.support.servers import ForkedServer, RunningServer

ITEMS = [
    {"colour": n % 3, "url": f"http://a.example/{n}", "price": f"{n % 100}.50", "name": f"Kettle {n}"}
    | ({"stock": n} if n % 10 else {})
    for n in range(300)
]


def numbers(document: Any) -> list[int]:
    return [int(text) for text in texts(document, "//tbody/tr/td[1]")]


def processor_seconds(server: RunningServer) -> float:
    """Processor time of a server: unlike the clock's, it does not grow with what else the machine does."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def items(http: Http, key: str, **query: Any) -> Any:
    return page(await http.get(f"/ui/{key}/items?{urlencode(query)}"))


async def test_items_are_chosen_by_typed_conditions_and_sorted(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS)
    assert numbers(await items(http, key, where="price > 98 and name ~ KETTLE 1")) == [198, 199]
    document = await items(http, key, where="price > 98", q="kettle 2")
    assert numbers(document) == [298, 299]
    assert texts(document, "//p[@role='status']") == ["2 found. Looked through all 300 items."]
    highest = await items(http, key, sort="price", desc=1)
    assert numbers(highest)[:4] == [99, 199, 299, 98]
    assert highest.xpath("//th[@aria-sort='descending']/a/text()") == ["price"]
    assert numbers(await items(http, key, sort="price"))[:4] == [0, 100, 200, 1]
    # Those without the field are last, in either direction.
    for desc in ("", "1"):
        assert numbers(await items(http, key, sort="stock", desc=desc, at=250))[-30:] == list(range(0, 300, 10))
    few = await items(http, key, where="stock is missing and price < 20", sort="name", desc=1)
    assert numbers(few) == [210, 200, 110, 100, 10, 0]


async def test_the_sorted_items_are_paged(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS)
    address, found = f"/ui/{key}/items?sort=url", list[int]()
    while address:
        document = page(await http.get(address))
        found += numbers(document)
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='next']/@href")), "")
    assert found == sorted(range(300), key=lambda n: f"http://a.example/{n}")


async def test_a_wrong_condition_is_explained_and_kept_for_correction(
    http: Http, server: RunningServer, project: int
) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS[:5])
    answer = await http.get(f"/ui/{key}/items?{urlencode({'where': 'price > 20 or name ~ x'})}")
    assert answer.status == 400
    document = page(answer)
    assert document.xpath("//input[@id='where']/@value") == ["price > 20 or name ~ x"]
    assert 'has "or", which does not exist (at character 12)' in texts(document, "//p[@role='alert']")[0]
    await http.post(f"/items/{key}", [{"name": "a" * 5000 + "b"}])
    for wrong in ("name matches (a|aa)+$", f"name matches {'(' * 20}a+{')+' * 20}$"):
        before = processor_seconds(server)
        answer = await http.get(f"/ui/{key}/items?{urlencode({'where': wrong})}")
        # Without a bound, the first would take years, and the second 18 seconds.
        assert processor_seconds(server) - before < 10
        assert (answer.status, 'role="alert"' in answer.text) in ((400, True), (200, False))
    for where in ("a\0b >", "x" * 3000, '"', "* > 2"):
        assert (await http.get(f"/ui/{key}/items?{urlencode({'where': where, 'sort': 'name'})}")).status == 400, where


@pytest.mark.parametrize("name", ["where", "q", "sort", "anything", "x" * 20_000])
async def test_a_long_query_is_refused_on_a_short_page(http: Http, project: int, name: str) -> None:
    """The links of a page repeat it."""
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS)
    for part in ("items", "requests", "log"):
        answer = await http.get(f"/ui/{key}/{part}?{urlencode({name: 'x' * 20_000})}")
        assert answer.status == 400
        assert "of this page is over 4096 bytes" in answer.text
        assert len(answer.body) < 20_000


async def test_a_condition_is_put_together_in_a_form(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS)
    query = {"field": "name", "operator": "~", "value": "kettle, 1", "where": "price > 3", "view": "cards"}
    document = await items(http, key, **query)
    assert document.xpath("//input[@id='where']/@value") == ['price > 3 and name ~ "kettle, 1"']
    assert texts(document, "//ul[@class='chips']/li/code") == ["price > 3", 'name ~ "kettle, 1"']
    (first, _) = document.xpath("//ul[@class='chips']/li/a/@href")
    assert first == f"/ui/{key}/items?" + urlencode({"where": 'name ~ "kettle, 1"', "view": "cards"})
    for wrong in ({"field": ""}, {"value": ""}, {"operator": "like"}):
        assert (await http.get(f"/ui/{key}/items?{urlencode({**query, **wrong})}")).status == 400


async def test_fields_that_identify_come_first_then_by_coverage(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"rare": 1}, *ITEMS])
    names = (await items(http, key)).xpath("//thead/tr/th/a/text()")
    assert names == ["name", "price", "url", "colour", "stock", "rare"]


async def test_the_coverage_on_each_page_leads_to_the_items_without_a_field(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"a b": 1, "c": 1}, {"c": 2}, {"c": 3}])
    for part in ("", "/items", "/items?view=cards"):
        (link, *_) = page(await http.get(f"/ui/{key}{part}")).xpath("//a[contains(@href, 'where=')]/@href")
        assert numbers(page(await http.get(link))) == [1, 2], part


async def test_chosen_columns_are_remembered_for_the_spider(http: Http, project: int, server: RunningServer) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS)

    async def chosen(query: str) -> tuple[int, str, str]:
        credentials = {"Authorization": "Basic " + b64encode(f"{server.platform_key}:".encode()).decode()}
        address = URL(f"{server.url}/ui/{key}/items?{query}", encoded=True)
        async with (
            aiohttp.ClientSession(headers=credentials) as session,
            session.get(address, allow_redirects=False) as answer,
        ):
            return answer.status, answer.headers["Location"], answer.headers["Set-Cookie"]

    names = [("columns", "stock"), ("columns", "na,me"), ("columns", HOSTILE), ("view", "table")]
    status, where, cookie = await chosen(urlencode(names))
    assert (status, where) == (303, f"/ui/{key}/items?view=table")
    assert f"Path=/ui/{'/'.join(key.split('/')[:2])};" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    shown = page(await http.get(f"/ui/{key}/items", Cookie=cookie.partition(";")[0]))
    assert shown.xpath("//thead/tr/th/a/text()") == ["stock", "na,me", HOSTILE]
    for damaged in ("item_columns=%5B1%5D", "item_columns=x", "item_columns=%ff", "item_columns=%5B%22a%00b%22%5D"):
        assert (await http.get(f"/ui/{key}/items", Cookie=damaged)).status == 200
    _, _, cookie = await chosen(urlencode([("columns", f"{n:x>300}") for n in range(100)]))
    assert len(cookie) < 4000
    _, where, cookie = await chosen("reset=1&columns=name&where=price+%3E+3")
    assert where == f"/ui/{key}/items?where=price+%3E+3"
    assert "Max-Age=0" in cookie


async def test_the_download_has_the_items_of_the_page(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS)
    document = await items(http, key, where="price > 98", q="kettle 2")
    links = document.xpath("//details[contains(@class, 'downloads')]//a/@href")
    found = {link.partition("?")[0].rpartition(".")[2]: await http.get(link) for link in links}
    assert [item["name"] for item in found["json"].json] == ["Kettle 298", "Kettle 299"]
    assert len(found["csv"].text.splitlines()) == 3
    assert {answer.status for answer in found.values()} == {200}


async def test_the_api_takes_the_same_conditions(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", ITEMS)

    async def names(*query: tuple[str, str]) -> list[str]:
        return [item["name"] for item in (await http.get(f"/items/{key}?{urlencode(query)}")).lines]

    assert await names(("where", "price > 98 and stock is present")) == ["Kettle 98", "Kettle 99"] + [
        f"Kettle {n}" for n in (198, 199, 298, 299)
    ]
    assert await names(("where", "price > 98"), ("where", "name ~ 9"), ("count", "1")) == ["Kettle 98"]
    assert await names(("filter", '["price","num>",[98]]'), ("filter", '["*","hastext",["KETTLE 2"]]')) == [
        "Kettle 298",
        "Kettle 299",
    ]
    # As before, > compares numbers with numbers alone.
    assert await names(("filter", '["price",">",[98]]')) == []
    # Where conditions are not supported, they are refused: ignoring them would delete more.
    assert (await http.delete(f"/collections/{project}/s/pages?prefix=a&where=n")).status == 400
    wrong = await http.get(f"/items/{key}?where={quote('price >')}")
    assert (wrong.status, "must have a value after >" in wrong.text) == (400, True)


async def test_a_search_ends_in_time_and_says_how_far_it_looked(http: Http, project: int) -> None:
    key = await job(http, project)
    # Each match of this expression takes long, and none more than it may.
    text = "a" * 300
    await http.post(f"/items/{key}", b"".join(json.dumps({"t": f"{text}{n}"}).encode() + b"\n" for n in range(20_000)))
    began = asyncio.get_running_loop().time()
    answer = await http.get(f"/ui/{key}/items?{urlencode({'where': 't matches a*a*a*b'})}")
    assert asyncio.get_running_loop().time() - began < 20 * record_search.MOST_SECONDS
    if answer.status == 200:
        (report,) = texts(page(answer), "//p[@role='status']")
        assert report.startswith("0 found. Looked through ")


async def test_other_requests_are_answered_while_items_are_searched(http: Http, project: int) -> None:
    key = await job(http, project)
    lines = b"".join(b'{"n":%d,"text":"%s"}\n' % (n, b"x" * 200) for n in range(60_000))
    await http.post(f"/items/{key}", lines)
    searches = [asyncio.ensure_future(http.get(f"/ui/{key}/items?sort=text&where=n+%3E+5")) for _ in range(4)]
    answered = 0
    while not all(search.done() for search in searches):
        assert (await http.get(f"/jobs/{key}/state")).status == 200
        answered += 1
    # They take many chunks each, and the loop is free between any two of them.
    assert answered > 1
    assert {(await search).status for search in searches} == {200}


# ── requests ──


def _request(number: int, **fields: Any) -> dict[str, Any]:
    url = f"http://shop{number % 2}.example/{number}"
    return {"time": number, "method": "GET", "url": url, "status": 200, "duration": number * 10, "rs": 4, **fields}


async def test_requests_are_chosen_by_status_host_and_duration(http: Http, project: int) -> None:
    key = await job(http, project)
    statuses = {5: 404, 8: 503, 9: 301}
    await http.post(f"/requests/{key}", [_request(n, status=statuses.get(n, 200)) for n in range(300)])

    async def chosen(**query: Any) -> list[int]:
        return numbers(page(await http.get(f"/ui/{key}/requests?{urlencode(query)}")))

    assert await chosen(status="404") == [5]
    assert await chosen(status="failed") == [5, 8]
    assert await chosen(status="3xx") == [9]
    assert await chosen(host="shop1.example", slow=2960) == [297, 299]
    assert await chosen(host="EXAMPLE", status="5xx") == [8]
    assert await chosen(host="hop1.example") == []
    assert await chosen(q="example/29", status="2xx") == [29, *range(290, 300)]
    assert await chosen(status="odd", slow="x", parent="-1") == list(range(50))


async def test_a_request_shows_the_pages_that_led_to_it(http: Http, project: int) -> None:
    key = await job(http, project)
    chain = [_request(n, **({"parent": n - 1} if n else {})) for n in range(60)]
    await http.post(
        f"/requests/{key}", [*chain, _request(60, parent=3), _request(61, parent=62), _request(62, parent=61)]
    )

    async def way(number: int) -> list[str]:
        return texts(page(await http.get(f"/ui/{key}/requests/{number}")), "//ol[@class='ancestors']/li")

    assert [each.split()[0] for each in await way(60)] == ["0", "1", "2", "3", "60"]
    assert [each.endswith("seed") for each in await way(2)] == [True, False, False]
    assert (await way(0))[0].endswith("seed")
    assert [each.split()[0] for each in await way(59)] == [str(n) for n in range(9, 60)]
    # Records of a harmful writer may name each other, or none.
    assert [each.split()[0] for each in await way(61)] == ["62", "61"]
    made = page(await http.get(f"/ui/{key}/requests?parent=3"))
    assert numbers(made) == [4, 60]
    assert (await http.get(f"/ui/{key}/requests/99")).status == 404


async def test_the_charts_of_requests_say_how_long_responses_took(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/requests/{key}", [_request(n) for n in range(100)])
    document = page(await http.get(f"/ui/{key}/requests"))
    assert document.xpath("//svg/title/text()")[1] == "Time in the downloader and its queue"
    assert texts(document, "//figcaption/ul")[0] == "median 500 ms, 95 % within 950 ms"
    assert document.xpath("//svg")[1].xpath("string(./desc)") == "≤ 100 ms: 11; ≤ 250 ms: 15; ≤ 500 ms: 25; ≤ 1.0 s: 49"


# ── images ──


@pytest.fixture
def site() -> Any:
    site = Target().start()
    site.page("/a.png", picture(20, 20), Content_Type="image/png")
    site.page("/page", "<script>1</script>")
    site.page("/svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", Content_Type="image/png")
    site.page("/large", picture(20, 20) + bytes(3_000_000), Content_Type="image/png")
    site.page("/moved", "", 302, Location="/a.png")
    site.page("/inside", "", 302, Location="http://127.0.0.1:9/a.png")
    site.page("/round", "", 302, Location="/round")
    yield site
    site.stop()


async def test_images_come_by_the_guard_and_only_as_images(
    tmp_path_factory: pytest.TempPathFactory, site: Target
) -> None:
    data = tmp_path_factory.mktemp("images") / "data"
    with ForkedServer(data, allow_hosts=[site.host], options=("--item-images",)) as server:
        async with Http(server.url, server.platform_key) as http:
            key = await job(http, 1)
            where = f"http://{site.host}"
            images = [
                *(f"{where}/{name}" for name in ("a.png", "moved", "page", "svg", "large", "inside", "round", "none")),
                "http://127.0.0.1:1/a.png",
                "http://169.254.169.254/latest",
                "file:///etc/passwd",
                "http://[",
                f"http://user:pass@{site.host}/a.png",
            ]
            await http.post(f"/items/{key}", [{"name": "x", "image": each} for each in images] + [{"name": "none"}])
            answers: list[Answer] = [
                await http.get(f"/ui/{key}/items/{number}/image") for number in range(len(images) + 2)
            ]
            assert [answer.status for answer in answers[:-3]] == [200, 200] + [404] * (len(images) - 3)
            assert answers[-1].status == answers[-2].status == 404
            first = answers[0]
            assert first.headers["Content-Type"] == "image/png"
            assert "sandbox" in first.headers["Content-Security-Policy"]
            assert first.headers["X-Content-Type-Options"] == "nosniff"
            assert first.headers["Cache-Control"] == "private, max-age=86400"
            assert all(call.header("Cookie") is call.header("Referer") is None for call in site.calls)
            listed = await http.get(f"/ui/{key}/items")
            assert f"/ui/{key}/items/0/image" in page(listed).xpath("//img/@src")
            assert "img-src 'self' data:;" in listed.headers["Content-Security-Policy"]


async def test_no_image_is_shown_or_fetched_unless_the_operator_allows_it(
    http: Http, project: int, site: Target
) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"name": "x", "image": f"http://{site.host}/a.png"}])
    for part in ("/items", "/items?view=cards", "/items/0"):
        assert page(await http.get(f"/ui/{key}{part}")).xpath("//img") == []
    assert (await http.get(f"/ui/{key}/items/0/image")).status == 404
    assert site.calls == []
