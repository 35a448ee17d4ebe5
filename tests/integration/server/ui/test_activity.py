"""The activity feed, over HTTP."""

from __future__ import annotations

import itertools

from tests.support.http import Http
from tests.support.page_forms import HOSTILE, page, rows, submit, texts


async def post(http: Http, project: int, *messages: object) -> None:
    assert (await http.post(f"/activity/{project}/", list(messages))).status == 200


async def test_messages_are_shown_newest_first_and_lead_to_their_jobs(http: Http, project: int) -> None:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])
    key = pushed.lines[0]["key"]
    await post(http, project, {"event": "deploy:done", "user": "anna", "version": "1.2"})
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": "no_items"}])
    document = page(await http.get(f"/ui/{project}/activity"))
    assert [row[1] for row in rows(document)] == [
        f"books {key} ended: no_items",
        "deploy:done, by anna: version 1.2",
        f"api started books {key}",
    ]
    assert document.xpath(f"//tbody//a[@href='/ui/{key}']")


async def test_changes_are_sentences_with_the_spider_named(http: Http, project: int) -> None:
    key = str((await http.post(f"/jobq/{project}/push", [{"spider": "books"}])).lines[0]["key"])
    schedule = f"/api/projects/{project}/periodicjobs"
    made = (await http.call("POST", schedule, b'{"cron": "0 0 1 1 *", "tasks": [{"name": "books"}]}')).json["id"]
    await submit(http, f"/ui/{project}/periodic/{made}", {"action": "pause"})
    await submit(http, f"/ui/{key}/tags", {"add": "a, b"}, shown_at=f"/ui/{key}")
    await http.delete(f"/jobs/{key}")
    await http.delete(f"{schedule}/{made}")
    assert [row[1] for row in rows(page(await http.get(f"/ui/{project}/activity")))] == [
        f"api removed periodic job {made}",
        f"api deleted books {key}",
        f"api added tags a, b to books {key}",
        f"api paused periodic job {made}",
        f"api created periodic job {made}",
        f"api scheduled books {key}",
    ]


async def test_messages_are_paged(http: Http, project: int) -> None:
    await post(http, project, *({"event": "n", "n": n} for n in range(120)))
    found: list[str] = []
    address = f"/ui/{project}/activity"
    while address:
        document = page(await http.get(address))
        found += [row[1] for row in rows(document)]
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='older']/@href")), "")
    assert found == [f"n: n {n}" for n in reversed(range(120))]


async def test_messages_are_filtered_by_event(http: Http, project: int) -> None:
    kinds = itertools.cycle(["job:completed", "job:scheduled", "other"])
    await post(http, project, *({"event": kind, "n": n} for n, kind in zip(range(300), kinds, strict=False)))
    found: list[str] = []
    address = f"/ui/{project}/activity?event=job:completed"
    while address:
        document = page(await http.get(address))
        assert texts(document, "//option[@selected]") == ["ended"]
        found += [row[1] for row in rows(document)]
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='older']/@href")), "")
    assert found == [f"job:completed: n {n}" for n in reversed(range(0, 300, 3))]


async def test_a_filtered_page_reads_a_bounded_number_of_messages_and_leads_to_the_older_ones(
    http: Http, project: int
) -> None:
    await post(http, project, {"event": "rare"}, *({"event": "n"} for _ in range(2100)))
    address = f"/ui/{project}/activity?event=rare"
    first = page(await http.get(address))
    assert rows(first) == [], "the newest 2,000 messages have none"
    (older,) = first.xpath("//nav[@class='pager']/a[text()='older']/@href")
    assert [row[1] for row in rows(page(await http.get(older)))] == ["rare"]


async def test_messages_of_an_event_of_ones_own_are_found(http: Http, project: int) -> None:
    await post(http, project, {"event": "deploy:done"}, {"event": "other"})
    document = page(await http.get(f"/ui/{project}/activity?event=deploy:done"))
    assert [row[1] for row in rows(document)] == ["deploy:done"]
    assert texts(document, "//option[@selected]") == ["deploy:done"]
    assert texts(page(await http.get(f"/ui/{project}/activity")), "//optgroup[@label='Events of clients']/option") == [
        "deploy:done",
        "other",
    ]


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
