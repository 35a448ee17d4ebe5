"""Frontiers and their slots, over HTTP."""

from __future__ import annotations

import pytest

from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts


async def queue(http: Http, project: int, slot: str, requests: list[dict[str, object]], frontier: str = "shop") -> str:
    assert (await http.post(f"/hcf/{project}/{frontier}/s/{slot}", requests)).status == 200
    return f"/ui/{project}/frontiers/{frontier}"


def dead(slot: int, fp: str, error: str = "ValueError: no price") -> dict[str, object]:
    form = {"url": f"http://shop.example/{fp}", "method": "GET", "priority": 3}
    return {"fp": f"{slot}/{fp}", "qdata": {"slot": slot, "fp": fp, "request": form, "error": error}}


async def test_frontiers_and_slots_are_shown_with_their_counts(http: Http, project: int) -> None:
    path = await queue(http, project, "0", [{"fp": f"{n:03}"} for n in range(130)])
    await queue(http, project, "1", [{"fp": "x"}])
    await queue(http, project, "dead-letters", [dead(0, "abc")])
    assert rows(page(await http.get(f"/ui/{project}/frontiers"))) == [["shop", "", "131", "1", "2"]]
    document = page(await http.get(path))
    assert rows(document) == [["0", "130", "2", "1", "130"], ["1", "1", "1", "0", "1"]]
    assert "1 request is a dead letter" in document.text_content()


async def test_frontiers_have_their_crawls_and_those_of_ended_jobs_are_folded(http: Http, project: int) -> None:
    jobs = [{"spider": "books", "state": "running"}] * 3
    running, ended, waiting = [row["key"] for row in (await http.post(f"/jobq/{project}/push", jobs)).lines]
    await http.post(f"/jobs/{waiting}", b'{"frontier": "feed", "waits_since": 1700000000000}')
    own = [f"job-{key.split('/', 1)[1].replace('/', '-')}" for key in (running, ended)]
    for frontier in (*own, "feed", "named"):
        for slot in ("0", "assignment", f"commits-{own[0].removeprefix('job-')}"):
            path = await queue(http, project, slot, [{"fp": "a"}], frontier)
    await queue(http, project, "dead-letters", [dead(0, "abc")], own[1])
    await http.post(f"/jobq/{project}/update", [{"key": ended, "state": "finished"}])
    document = page(await http.get(f"/ui/{project}/frontiers"))
    (folded,) = document.xpath("//details[@class='finished']")
    assert texts(folded, ".//tbody/tr/td[1]") == [own[1]]
    assert texts(folded, "./summary") == ["1 frontier of jobs that have ended"]
    folded.drop_tree()
    shown = {row[0]: row[1:] for row in rows(document)}
    assert shown[own[0]] == [f"books {running} running", "1", "0", "1"]
    assert f"books {waiting} running A crawl is waiting for requests, since" in shown["feed"][0]
    assert shown["named"] == [f"books {running} running", "1", "0", "1"], "its journal names the job"
    assert shown["feed"][1:] == ["1", "0", "1"]
    one = page(await http.get(path))
    assert [row[0] for row in rows(one)] == ["0"]
    assert texts(one, "//details/summary") == [*texts(one, "//details/summary")[:-1], "2 slots with records of crawls"]


async def test_a_page_of_frontiers_has_a_bounded_number_of_them_and_of_the_jobs_of_each(
    http: Http, project: int
) -> None:
    jobs = [{"spider": "books", "state": "running"}] * 25
    keys = [row["key"] for row in (await http.post(f"/jobq/{project}/push", jobs)).lines]
    await queue(http, project, "0", [{"fp": "a"}], "f00")
    for key in keys:
        await queue(http, project, f"commits-{key.split('/', 1)[1].replace('/', '-')}", [{"fp": "a"}], "f00")
    for number in range(1, 53):
        await queue(http, project, "0", [{"fp": "a"}], f"f{number:02}")
    address = f"/ui/{project}/frontiers"
    first = page(await http.get(address))
    assert [row[0] for row in rows(first)] == [f"f{number:02}" for number in range(50)]
    assert "and at least 15 more" in rows(first)[0][1], "20 jobs of the 25 are read, and 5 shown"
    (following,) = first.xpath("//nav[@class='pager']/a[text()='next']/@href")
    assert [row[0] for row in rows(page(await http.get(following)))] == ["f50", "f51", "f52"]


async def test_the_head_of_a_queue_is_shown_as_requests(http: Http, project: int) -> None:
    request = {"url": "http://shop.example/1", "method": "POST"}
    path = await queue(
        http, project, "0", [{"fp": "a", "qdata": request, "p": 5}, {"fp": "b", "qdata": [1, 2], "p": -1}]
    )
    document = page(await http.get(f"{path}/0"))
    assert [row[:2] for row in rows(document)] == [["b", "[1,2]"], ["a", "POST http://shop.example/1"]]
    # Nothing was marked by that: a batch that no crawl has read takes more.
    await queue(http, project, "0", [{"fp": "c", "p": 5}])
    assert rows(page(await http.get(path)))[0][2] == "2"


async def test_what_a_slot_has_seen_is_paged(http: Http, project: int) -> None:
    path = await queue(http, project, "0", [{"fp": f"{n:04}"} for n in range(250)])
    document = page(await http.get(f"{path}/0?show=seen"))
    seen = texts(document, "//main//ul/li")
    (following,) = document.xpath("//nav[@class='pager']/a[text()='next']/@href")
    seen += texts(page(await http.get(following)), "//main//ul/li")
    assert seen == [f"{n:04}" for n in range(250)]


async def test_dead_letters_are_shown_with_their_errors_and_queued_again(http: Http, project: int) -> None:
    letters = [dead(0, "abc"), dead(1, "abc~1", HOSTILE)]
    path = await queue(http, project, "dead-letters", letters)
    document = page(await http.get(f"{path}/dead-letters"))
    assert "http://shop.example/abc" in rows(document)[0][1]
    assert "ValueError: no price" in rows(document)[0][2]
    answer = await submit(http, path, {"action": "put back"})
    assert done(answer) == "Requests queued again: 2."
    for slot, fp in ((0, "abc~1"), (1, "abc~2")):
        (batch,) = (await http.get(f"/hcf/{project}/shop/s/{slot}/q")).lines
        ((name, form),) = batch["requests"]
        assert name == fp
        assert form["url"].startswith("http://shop.example/abc")
    assert (await http.get(f"/hcf/{project}/shop/s/dead-letters/q")).lines == []


async def test_what_is_no_dead_letter_is_reported_and_stays(http: Http, project: int) -> None:
    path = await queue(http, project, "dead-letters", [{"fp": "odd", "qdata": 5}])
    answer = await submit(http, path, {"action": "put back"})
    assert "is not a dead letter" in page(answer, 400).text_content()
    assert len((await http.get(f"/hcf/{project}/shop/s/dead-letters/q")).lines) == 1


async def test_a_slot_and_a_frontier_are_deleted(http: Http, project: int) -> None:
    path = await queue(http, project, "0", [{"fp": "a"}])
    for slot in ("1", "2"):
        await queue(http, project, slot, [{"fp": "a"}])
    assert done(await submit(http, f"{path}/0", {"action": "delete"})) == "Deleted."
    assert [row[0] for row in rows(page(await http.get(path)))] == ["1", "2"]
    assert done(await submit(http, path, {"action": "delete"})) == "Deleted."
    assert (await http.get(f"/hcf/{project}/list")).json == []


async def test_nothing_that_is_queued_becomes_markup(http: Http, project: int) -> None:
    form = {"url": "javascript:alert(1)", "method": HOSTILE}
    path = await queue(http, project, "0", [{"fp": HOSTILE, "qdata": form}, {"fp": "b", "qdata": {HOSTILE: HOSTILE}}])
    await queue(http, project, "dead-letters", [{"fp": HOSTILE, "qdata": {"error": HOSTILE, "request": HOSTILE}}])
    for address in (path, f"{path}/0", f"{path}/0?show=seen", f"{path}/dead-letters"):
        document = page(await http.get(address))
        assert address == path or "alert(1)" in document.text_content()


@pytest.mark.parametrize("where", ["none", "no%20name", "shop/none"])
async def test_what_is_not_there_is_not_found(http: Http, project: int, where: str) -> None:
    await queue(http, project, "0", [{"fp": "a"}])
    page(await http.get(f"/ui/{project}/frontiers/{where}"), 404)
