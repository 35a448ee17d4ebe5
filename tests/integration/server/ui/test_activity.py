"""The activity feed, over HTTP."""

from __future__ import annotations

import itertools

from tests.support.http import Http
from tests.support.page_forms import HOSTILE, page, rows


async def post(http: Http, project: int, *messages: object) -> None:
    assert (await http.post(f"/activity/{project}/", list(messages))).status == 200


async def test_messages_are_shown_newest_first_and_lead_to_their_jobs(http: Http, project: int) -> None:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])
    key = pushed.lines[0]["key"]
    await post(http, project, {"event": "deploy:done", "user": "anna", "version": "1.2"})
    document = page(await http.get(f"/ui/{project}/activity"))
    assert [row[1:] for row in rows(document)] == [
        ["deploy:done", "", "anna", '{"version":"1.2"}'],
        ["job:started", key, "api", ""],
    ]
    assert document.xpath(f"//tbody//a[@href='/ui/{key}']")


async def test_messages_are_paged(http: Http, project: int) -> None:
    await post(http, project, *({"event": "n", "n": n} for n in range(120)))
    found: list[str] = []
    address = f"/ui/{project}/activity"
    while address:
        document = page(await http.get(address))
        found += [row[4] for row in rows(document)]
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='older']/@href")), "")
    assert found == [f'{{"n":{n}}}' for n in reversed(range(120))]


async def test_messages_are_filtered_by_event(http: Http, project: int) -> None:
    kinds = itertools.cycle(["job:completed", "job:scheduled", "other"])
    await post(http, project, *({"event": kind, "n": n} for n, kind in zip(range(300), kinds, strict=False)))
    found: list[str] = []
    address = f"/ui/{project}/activity?event=job:completed"
    while address:
        document = page(await http.get(address))
        assert {row[1] for row in rows(document)} <= {"job:completed"}
        found += [row[4] for row in rows(document)]
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='older']/@href")), "")
    assert found == [f'{{"n":{n}}}' for n in reversed(range(0, 300, 3))]


async def test_messages_of_an_event_of_ones_own_are_found(http: Http, project: int) -> None:
    await post(http, project, {"event": "deploy:done"}, {"event": "other"})
    document = page(await http.get(f"/ui/{project}/activity?event=deploy:done"))
    assert [row[1] for row in rows(document)] == ["deploy:done"]
    assert document.xpath("//input[@name='event']/@value") == ["deploy:done"]


async def test_the_messages_of_all_projects_stand_together(http: Http, project: int) -> None:
    others = [project + 10_000_000, project + 20_000_000]
    for number in others:
        await http.post(f"/jobq/{number}/push", [{"spider": "books"}])
    shown = rows(page(await http.get("/ui/activity")))
    assert {str(number) for number in others} <= {row[1] for row in shown}


async def test_nothing_that_was_posted_becomes_markup(http: Http, project: int) -> None:
    await post(
        http,
        project,
        {"event": HOSTILE, "user": HOSTILE, "job": HOSTILE, HOSTILE: HOSTILE},
        {"event": ["no text"], "job": f"{project + 1}/1/1", "user": None},
        {"job": f"{project}/1/1"},
    )
    document = page(await http.get(f"/ui/{project}/activity"))
    assert "alert(1)" in document.text_content()
    assert document.xpath("//tbody//a/@href") == [f"/ui/{project}/1/1"]
