"""The pages of a job whose callbacks raised: what they show, and that nothing of them is a document of the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.api.platform import JobKey, snapshots
from scrapy_ext.api.platform.snapshots import Content, Part, Snapshot
from tests.integration.server.ui.test_pages import HOSTILE, job, page, texts
from tests.support.http import Http
from tests.support.servers import RunningServer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
HTML = f"<html><body onload=alert(1)>{HOSTILE}</pre><h1>Lämp</h1></body></html>".encode()


def new_id(number: int) -> str:
    return f"{1_700_000_000_000 + number}-0a1b2c3d"


async def keep(http: Http, key: str, number: int = 0, **fields: Any) -> str:
    """Store a snapshot with a page and a screenshot; returns the path of its page."""
    given = {"url": "https://shop.example/lamp", "error": "KeyError", "message": "'price'", "callback": "parse_lamp"}
    content: dict[str, Any] = {"page": Content(len(HTML)), "screenshot": Content(len(PNG)), "format": "html"}
    snapshot = Snapshot(time=1_700_000_000_000 + number, status=200, **{**given, **content, **fields})
    parts = {Part.PAGE: HTML, Part.SCREENSHOT: PNG}
    lines = snapshots.lines_of(JobKey.parse(key), new_id(number), snapshot, parts)
    assert (await http.post(collection(key), b"".join(lines))).status == 200
    return f"/ui/{key}/snapshots/{new_id(number)}"


def collection(key: str) -> str:
    return f"/collections/{key.partition('/')[0]}/cs/scrapy_snapshots"


async def test_snapshots_are_listed_and_each_is_shown(http: Http, project: int) -> None:
    key, other = await job(http, project), await job(http, project)
    assert "snapshots" not in page(await http.get(f"/ui/{key}")).text_content()
    path = await keep(http, key)
    await keep(http, other, 7)
    tabs = texts(page(await http.get(f"/ui/{key}")), "//nav[contains(@class, 'tabs')]/a")
    assert tabs[-1] == "snapshots 1"
    listed = page(await http.get(f"/ui/{key}/snapshots"))
    (row,) = [texts(row, "./td") for row in listed.xpath("//tbody/tr")]
    assert row == [
        *("2023-11-14 22:13:20 UTC", "KeyError'price'", "parse_lamp", "https://shop.example/lamp", "200"),
        *(f"{len(HTML)} B", "108 B"),
    ]
    assert path in listed.xpath("//tbody//a/@href")
    one = page(await http.get(path))
    assert one.xpath("//pre[@aria-label='Source of the page']")[0].text_content() == HTML.decode()
    assert one.xpath("//img/@src") == [f"{path}/screenshot"]


async def test_the_source_is_plain_text_in_a_sandbox_and_the_screenshot_an_image(http: Http, project: int) -> None:
    path = await keep(http, await job(http, project))
    for part, media_type, data in (("page", "text/plain; charset=UTF-8", HTML), ("screenshot", "image/png", PNG)):
        answer = await http.get(f"{path}/{part}")
        assert (answer.status, answer.body) == (200, data)
        assert answer.headers["Content-Type"] == media_type
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
        assert answer.headers["Cache-Control"] == "no-store"


async def test_nothing_of_a_hostile_page_or_crawl_becomes_markup(http: Http, project: int) -> None:
    key = await job(http, project)
    names = dict.fromkeys(("error", "message", "callback", "format", "no_page", "no_screenshot"), HOSTILE)
    path = await keep(http, key, url="javascript:alert(1)", **names)
    missing = await keep(http, key, 1, page=None, screenshot=None, **names)
    for address in (f"/ui/{key}/snapshots", path, missing):
        answer = await http.get(address)
        document = page(answer)
        assert document.xpath("//script[not(starts-with(@src, '/ui/static/'))] | //@onerror | //@onload") == []
        assert [each for each in document.xpath("//img/@src") if each != f"{path}/screenshot"] == []
        assert not [link for link in document.xpath("//@href") if link.startswith("javascript")]
        assert "<script>alert(1)" in document.text_content()
        assert "unsafe" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("image", [b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", b"<script>", b""])
async def test_a_screenshot_that_is_no_picture_is_not_sent(http: Http, project: int, image: bytes) -> None:
    key = await job(http, project)
    path = await keep(http, key)
    piece = {"data": snapshots.pybase64.b64encode_as_string(image)}
    record = f"{collection(key)}/{path_of_part(path, 'screenshot')}"
    assert (await http.post(record, json.dumps(piece).encode())).status == 200
    assert (await http.get(f"{path}/screenshot")).status == 404
    assert (await http.get(path)).status == 200


def path_of_part(path: str, part: str) -> str:
    *_, spider, number, _, name = path.split("/")
    return f"job-{spider}-{number}%2Fparts%2F{name}%2F{part}.0"


async def test_records_of_other_clients_in_the_collection_harm_no_page(http: Http, project: int) -> None:
    key = await job(http, project)
    _, spider, number = key.split("/")
    prefix = f"job-{spider}-{number}/snapshots/"
    whole = {"time": 1_700_000_000_000, "url": 5 * "x", "status": 0, "error": "e"}
    records = [
        {"_key": prefix + new_id(1)},
        {"_key": prefix + new_id(2), **whole},
        {"_key": prefix + new_id(3), **whole, "page": {"bytes": -7, "pieces": 10**9}},
        {"_key": prefix + new_id(4), **whole, "page": {"bytes": 7, "pieces": 3}},
        {"_key": prefix + new_id(5), **whole, "time": 10**18},
        {"_key": prefix + new_id(6), **whole, "status": -1},
        {"_key": prefix + "../../x", **whole},
        {"_key": prefix, **whole},
    ]
    assert (await http.post(collection(key), records)).status == 200
    listed = page(await http.get(f"/ui/{key}/snapshots"))
    assert len(listed.xpath("//tbody/tr")) == 2
    statuses = {name: (await http.get(f"/ui/{key}/snapshots/{name}")).status for name in (*map(new_id, range(7)), "x")}
    assert list(statuses.values()) == [404, 404, 200, 404, 200, 404, 404, 404]
    assert (await http.get(f"/ui/{key}/snapshots/{new_id(4)}/page")).status == 404


async def test_many_snapshots_are_paged(http: Http, project: int) -> None:
    key = await job(http, project)
    for number in range(53):
        await keep(http, key, number)
    first = page(await http.get(f"/ui/{key}/snapshots"))
    (onward,) = [link.get("href") for link in first.xpath("//nav[@class='pager']/a") if link.text == "next"]
    second = page(await http.get(onward))
    assert [len(each.xpath("//tbody/tr")) for each in (first, second)] == [50, 3]
    assert not [link for link in second.xpath("//nav[@class='pager']/a") if link.text == "next"]


async def test_only_who_may_read_the_project_sees_them(server: RunningServer, http: Http, project: int) -> None:
    path = await keep(http, await job(http, project))
    async with Http(server.url, None) as stranger:
        for part in ("", "/page", "/screenshot"):
            assert (await stranger.get(path + part)).status == 401


async def test_of_a_deleted_job_no_snapshot_is_left(http: Http, project: int) -> None:
    key = await job(http, project, state="finished")
    path = await keep(http, key)
    assert (await http.delete(f"/jobs/{key}")).status == 200
    for part in ("", "/page", "/screenshot"):
        answer = await http.get(path + part)
        assert answer.status == 410
        assert b"parse_lamp" not in answer.body
    assert page(await http.get(f"/ui/{key}/snapshots")).xpath("//tbody/tr") == []
