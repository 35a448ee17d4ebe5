"""The search in the head of the pages: jobs, spiders, items and requests by one text."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.integration.server.ui.test_keys import make, until
from tests.integration.server.ui.test_pages import job, page, texts
from tests.support.http import Answer, Http
from tests.support.servers import RunningServer


async def look_up(http: Http, project: int, text: str) -> Answer:
    return await http.get(f"/ui/{project}/search?q={quote(text, safe='')}")


def requests(*urls: str) -> list[dict[str, Any]]:
    return [{"time": 1, "method": "GET", "url": url, "status": 200, "duration": 3, "rs": 4} for url in urls]


async def test_a_single_answer_is_opened_at_once(http: Http, project: int) -> None:
    key = await job(http, project, spider="lamps.example")
    await job(http, project, spider="cookbooks")
    await http.post(f"/items/{key}", [{"name": "a lamp"}, {"name": "another lamp"}])
    await http.post(f"/requests/{key}", requests("http://shop.example/list", "http://shop.example/lamps/7?page=2"))
    _, spider, number = key.split("/")
    for text, heading in (
        (key, "lamps.example"),
        (f" /{key}/ ", "lamps.example"),
        (f"{spider}/{number}", "lamps.example"),
        ("COOK", "cookbooks"),
        ("lamps.example", "lamps.example"),
    ):
        assert texts(page(await look_up(http, project, text)), "//h1") == [heading], text
    item = page(await look_up(http, project, f"{key}/1"))
    assert "another lamp" in item.text_content()
    request = page(await look_up(http, project, "/Lamps/7"))
    assert texts(request, "//ol[@class='ancestors']/li[@aria-current]")[0].startswith(
        "1 200 http://shop.example/lamps/7"
    )
    # The text stays in the field of the page of answers, and only there.
    assert page(await look_up(http, project, "shop.example")).xpath("//header//input[@name='q']/@value") == [
        "shop.example"
    ]
    assert page(await http.get(f"/ui/{key}/items?q=lamp")).xpath("//header//input[@name='q']/@value") == [""]


async def test_several_answers_are_listed_with_what_was_searched(http: Http, project: int) -> None:
    first, second = await job(http, project, spider="books"), await job(http, project, spider="cookbooks")
    await http.post(f"/requests/{first}", requests("http://shop.example/1", "http://shop.example/2"))
    await http.post(f"/requests/{second}", requests("http://other.example/1"))
    by_name = page(await look_up(http, project, "ook"))
    assert [text.split()[0] for text in texts(by_name, "//ul[@class='answers']/li")] == ["books", "cookbooks"]
    by_number = page(await look_up(http, project, "1"))
    assert {text.split()[0] for text in texts(by_number, "//ul[@class='answers']/li")} == {first, second}
    by_url = page(await look_up(http, project, "shop.example/"))
    assert [text.split()[0] for text in texts(by_url, "//ul[@class='answers']/li")] == [f"{first}/0", f"{first}/1"]
    assert texts(by_url, "//main/p")[-1] == "Searched: Names of 2 spiders. URLs of 3 requests of 2 jobs."
    nothing = page(await look_up(http, project, "nowhere.example"))
    assert "Nothing found." in nothing.text_content()
    missing = page(await look_up(http, project, f"{first}/77"))
    assert "There is no item" in missing.text_content()
    assert first in texts(missing, "//ul[@class='answers']/li")[0]


async def test_a_search_is_bounded_and_says_so(http: Http, project: int) -> None:
    oldest = await job(http, project)
    await http.post(f"/requests/{oldest}", requests("http://shop.example/1"))
    await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}] * 50)
    bounded = page(await look_up(http, project, "shop.example/"))
    assert "Nothing found." in bounded.text_content()
    assert "URLs of 0 requests of 50 newest jobs. Older jobs" in texts(bounded, "//main/p")[-1]
    for wrong in ("a" * 2001, "a\0"):
        assert (await look_up(http, project, wrong)).status == 400
    assert (await look_up(http, project, "a" * 2000)).status == 200


async def test_one_visitor_searches_urls_at_a_bounded_rate(server: RunningServer, http: Http, project: int) -> None:
    await job(http, project)
    key = await make(http, f"searcher-{project}", projects=str(project), read_only="on")
    async with Http(server.url, key) as reader:
        await until(reader, f"/ui/{project}/jobs", 200)
        answers = [await look_up(reader, project, "a.example")]
        while answers[-1].status == 200 and len(answers) < 200:
            answers.append(await look_up(reader, project, "a.example"))
        assert (answers[-1].status, answers[-1].headers["Retry-After"]) == (429, "1")
        # What an index finds is not limited.
        assert (await look_up(reader, project, "books")).status == 200


async def test_what_a_key_may_not_read_is_not_found(server: RunningServer, http: Http, project: int) -> None:
    own, other = await job(http, project), await job(http, project + 50_000)
    await http.post(f"/items/{other}", [{"name": "hidden"}])
    key = await make(http, f"outsider-{project}", projects=str(project), read_only="on")
    async with Http(server.url, key) as reader:
        await until(reader, f"/ui/{project}/jobs", 200)
        assert texts(page(await look_up(reader, project, own)), "//h1") == ["books"]
        for text in (other, f"{other}/0"):
            document = page(await look_up(reader, project, text))
            assert f"There is no job {other}." in texts(document, "//main/p")[-1]
        assert (await look_up(reader, project + 50_000, "books")).status == 404
