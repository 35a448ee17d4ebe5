"""The pages, as a browser without scripts gets them."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import lxml.html
import pytest

from tests.support.http import Answer, Http
from tests.support.servers import RunningServer

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"


def page(answer: Answer) -> Any:
    assert answer.headers["Content-Type"] == "text/html; charset=UTF-8"
    return lxml.html.document_fromstring(answer.text)


def texts(document: Any, path: str) -> list[str]:
    return [" ".join(element.text_content().split()) for element in document.xpath(path)]


async def job(http: Http, project: int, **fields: Any) -> str:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running", **fields}])
    return str(pushed.lines[0]["key"])


async def test_jobs_are_listed_with_what_they_stored(http: Http, project: int) -> None:
    key = await job(http, project, tags=["nightly"])
    await http.post(f"/items/{key}", [{"a": 1}] * 3)
    await http.post(f"/logs/{key}", [{"time": 1, "level": 40, "message": "m"}])
    other = await job(http, project)
    await http.post(f"/jobq/{project}/update", [{"key": other, "state": "finished", "close_reason": "cancelled"}])
    document = page(await http.get(f"/ui/{project}/jobs"))
    rows = {row[0]: row for row in (texts(row, "./td")[1:] for row in document.xpath("//tbody/tr"))}
    assert rows[key][1:7] == ["books", "running", "3", "0", "1", "1"]
    assert rows[key][9:11] == ["", "nightly"]
    assert rows[other][2] == "cancelled"
    assert f"/ui/{key}" in document.xpath("//tbody//a/@href")
    assert texts(document, "//nav[contains(@class, 'tabs')]/a") == [
        *("all 2", "needs attention 0", "pending 0", "running 1", "finished 1"),
    ]
    finished = page(await http.get(f"/ui/{project}/jobs?state=finished"))
    assert texts(finished, "//tbody/tr/td[2]") == [other]


async def test_many_jobs_are_paged(http: Http, project: int) -> None:
    await http.post(f"/jobq/{project}/push", [{"spider": "s"}] * 60)
    first = page(await http.get(f"/ui/{project}/jobs"))
    (older,) = [a.get("href") for a in first.xpath("//nav[@class='pager']/a") if a.text == "older"]
    second = page(await http.get(older))
    keys = texts(first, "//tbody/tr/td[2]") + texts(second, "//tbody/tr/td[2]")
    assert len(keys) == len(set(keys)) == 60


async def test_a_job_shows_its_metadata_stats_and_fields(http: Http, project: int) -> None:
    key = await job(http, project, spider_args={"category": "new"})
    await http.post(f"/items/{key}", [{"name": "a", "price": 1}, {"name": "b"}])
    await http.post(f"/jobs/{key}", json.dumps({"frameworkstats": {"item_scraped_count": 2}}).encode())
    document = page(await http.get(f"/ui/{key}"))
    assert texts(document, "//h1") == ["books"]
    text = document.text_content()
    for shown in ("Arguments", "category", "Started"):
        assert shown in text
    stats = page(await http.get(f"/ui/{key}/stats"))
    assert [texts(row, "./*") for row in stats.xpath("//tbody/tr")] == [["item_scraped_count", "2"]]
    assert "No stat has this" in page(await http.get(f"/ui/{key}/stats?q=pages")).text_content()
    fields = document.xpath("//table[.//th='Field']")[0]
    assert [texts(row, "./td")[:3] for row in fields.xpath("./tbody/tr")] == [
        ["name", "2", "100 %"],
        ["price", "1", "50 %"],
    ]
    links = document.xpath("//details[contains(@class, 'downloads')]//a/@href")
    assert len(links) == 6
    for link in links:
        assert (await http.get(link)).status == 200


async def test_items_requests_and_log_are_paged(http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/items/{key}", [{"n": n, "name": f"item {n}"} for n in range(120)])
    request = {"time": 1, "method": "GET", "url": "http://a.example/", "status": 404, "duration": 3, "rs": 4}
    await http.post(f"/requests/{key}", [request] * 3)
    await http.post(f"/logs/{key}", [{"time": n, "level": 20, "message": f"line {n}"} for n in range(450)])
    for part, number in (("items", 120), ("requests", 3), ("log", 450)):
        found, address = [], f"/ui/{key}/{part}?start=0"
        while address:
            document = page(await http.get(address))
            found += texts(document, "//tbody/tr/td[1]" if part != "log" else "//ol/li/@id/..")
            onward = [a.get("href") for a in document.xpath("(//nav[@class='pager'])[1]/a") if a.text == "next"]
            address = onward[0] if onward else ""
        assert len(found) == len(set(found)) == number
    one = page(await http.get(f"/ui/{key}/items/7"))
    assert json.loads(one.xpath("//pre")[0].text_content()) == {"n": 7, "name": "item 7"}


async def test_nothing_that_was_stored_becomes_markup(http: Http, project: int) -> None:
    key = await job(http, project, spider=HOSTILE, tags=[HOSTILE], close_reason=HOSTILE)
    item = {HOSTILE: HOSTILE, "url": "javascript:alert(1)", "deep": {HOSTILE: [HOSTILE]}}
    await http.post(f"/items/{key}", [item])
    await http.post(f"/jobs/{key}", json.dumps({HOSTILE: HOSTILE, "frameworkstats": {HOSTILE: HOSTILE}}).encode())
    request = {"time": 1, "method": HOSTILE, "url": f"http://a/{HOSTILE}", "status": 200, "duration": 3, "rs": 4}
    await http.post(f"/requests/{key}", [request, {**request, "url": "javascript:alert(1)"}])
    await http.post(f"/logs/{key}", [{"time": 1, "level": 20, "message": HOSTILE}])
    parts = ["", "/items", "/items?all=1", "/items/0", "/requests", "/log", "/log?start=0", "/stats"]
    for address in [f"/ui/{project}/jobs", *(f"/ui/{key}{part}" for part in parts)]:
        answer = await http.get(address)
        document = page(answer)
        assert document.xpath("//script[not(starts-with(@src, '/ui/static/'))] | //img | //@onerror | //@style") == []
        assert not [link for link in document.xpath("//@href") if link.startswith("javascript")]
        assert "<script>alert(1)" in document.text_content()
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_values_that_no_page_expects_are_shown_all_the_same(http: Http, project: int) -> None:
    key = await job(http, project, priority="high", running_time="never", tags=[])
    await http.post(f"/jobs/{key}", b'{"running_time":99999999999999999,"tags":7,"close_reason":[],"finished_time":-1}')
    await http.post(f"/logs/{key}", [{"time": 10**18, "level": -3, "message": ""}])
    for part in ("", "/log"):
        assert (await http.get(f"/ui/{key}{part}")).status == 200
    assert (await http.get(f"/ui/{project}/jobs")).status == 200
    assert (await http.get(f"/api/jobs/list.json?project={project}")).status == 200


@pytest.mark.parametrize(
    "address", ["/ui/424242/1/1", "/ui/424242/1/1/items", "/ui/424242/1/1/items/3", "/ui/no", "/ui/1/jobs/"]
)
async def test_a_page_of_nothing_is_not_found(http: Http, address: str) -> None:
    answer = await http.get(address)
    assert answer.status == 404
    assert "no page at this address" in answer.text
    assert page(answer).xpath("//nav[@class='sections']/a")


@pytest.mark.parametrize("number", ["9" * 19, "1" * 20, "7" * 5000], ids=["over 63 bits", "20 digits", "5000 digits"])
async def test_a_number_that_the_store_cannot_hold_is_not_found(http: Http, number: str) -> None:
    for address in (f"/ui/{number}/1/1", f"/ui/1/1/1/items/{number}", f"/p/1/{number}/1"):
        assert (await http.get(address)).status == 404


async def test_data_without_a_job_can_be_looked_at(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/5/6", [{"a": 1}])
    assert "no job record" in page(await http.get(f"/ui/{project}/5/6")).text_content()


@pytest.mark.parametrize(
    ("part", "where"),
    [("", ""), ("/items", "/items"), ("/requests", "/requests"), ("/log", "/log"), ("/stats", "/stats"), ("/x", "")],
)
async def test_addresses_that_clients_print_lead_to_the_page(server: RunningServer, part: str, where: str) -> None:
    url = f"{server.url}/p/7/8/9{part}"
    async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (307, f"/ui/7/8/9{where}")


@pytest.mark.parametrize("project", ["abc", "-1", "1.5", "9" * 30])
async def test_a_project_that_is_no_number_is_reported(http: Http, project: str) -> None:
    answer = await http.get(f"/?project={project}")
    assert answer.status == 400
    assert "project: must be a number" in page(answer).text_content()
