"""Pushes of requests into frontiers over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from scrapy_ext.api.platform.feeding import parsed
from scrapy_ext.api.platform.frontier import slot_of_url, spread_slot
from tests.support.http import Answer, Http


@pytest.fixture
def feed(project: int) -> str:
    return f"/hcf/{project}/news/feed"


def lines(*values: Any) -> bytes:
    return b"\n".join(value if isinstance(value, bytes) else json.dumps(value).encode() for value in values)


async def queued(http: Http, project: int, frontier: str = "news") -> dict[str, list[tuple[str, Any]]]:
    """Requests of all slots."""
    slots = (await http.get(f"/hcf/{project}/{frontier}/list")).json
    found = {}
    for slot in slots:
        batches = (await http.get(f"/hcf/{project}/{frontier}/s/{slot}/q?mincount=100000")).lines
        found[slot] = [(fp, form) for batch in batches for fp, form in batch["requests"]]
    return found


async def running_job(http: Http, project: int) -> tuple[str, str]:
    """Key and frontier of a new running job."""
    body = [{"spider": "news", "state": "running"}]
    (pushed,) = (await http.post(f"/jobq/{project}/push", body)).lines
    _, spider, job = pushed["key"].split("/")
    return pushed["key"], f"job-{spider}-{job}"


async def declare(http: Http, feed: str, fields: dict[str, Any]) -> Answer:
    return await http.call("PUT", feed, json.dumps(fields).encode())


def refused(answer: Answer, status: int) -> str:
    assert answer.status == status, answer.text
    return answer.text


async def test_urls_and_objects_are_queued_in_the_slots_of_a_crawl(http: Http, feed: str, project: int) -> None:
    body = lines(b"https://a.example/", b"", {"url": "https://b.example/x", "callback": "parse_x", "priority": 2})
    assert (await http.post(feed, body)).json == {"new": 2, "known": 0}
    first = parsed("https://a.example/", "")
    second = parsed('{"url": "https://b.example/x", "callback": "parse_x", "priority": 2}', "")
    expected: dict[str, list[tuple[str, Any]]] = {}
    for request in (second, first):
        slot = str(slot_of_url(request.form["url"], None, 8))
        expected.setdefault(slot, []).append((request.fp, request.form))
    assert await queued(http, project) == expected


async def test_requests_of_a_spread_host_are_queued_in_the_slots_of_their_pages(
    http: Http, feed: str, project: int
) -> None:
    await declare(http, feed, {"slots": 16, "spread": True})
    assert (await http.get(feed)).json["spread"] is True
    body = [f"https://a.example/{number}" for number in range(20)]
    body.append('{"url": "https://a.example/jar", "meta": {"cookiejar": 7}}')
    await http.post(feed, lines(*map(str.encode, body)))
    slots = {}
    for line in body:
        request = parsed(line, "")
        jar = request.form.get("meta", {}).get("cookiejar")
        slots[request.fp] = str(spread_slot("a.example", request.fp, 16, jar))
    found = {fp: slot for slot, requests in (await queued(http, project)).items() for fp, _ in requests}
    assert found == slots
    assert len(set(slots.values())) > 4


async def test_known_requests_are_counted_and_not_queued_again(http: Http, feed: str, project: int) -> None:
    await http.post(feed, b"https://a.example/?a=1&b=2")
    body = lines(b"https://a.example/?b=2&a=1", b"https://a.example/new", b"https://a.example/new")
    assert (await http.post(feed, body)).json == {"new": 1, "known": 2}


async def test_a_bad_line_queues_nothing_of_its_body(http: Http, feed: str, project: int) -> None:
    body = lines(b"https://a.example/", {"url": "https://a.example/2", "prio": 1}, b"nowhere")
    text = refused(await http.post(feed, body), 400)
    assert "line 2: has an unknown member 'prio'" in text
    assert "line 3.url: cannot be requested" in text
    assert await queued(http, project) == {}


async def test_a_repeated_push_adds_requests_with_dont_filter_once(http: Http, feed: str, project: int) -> None:
    body = lines(*[{"url": "https://a.example/", "dont_filter": True}] * 3)
    answers = [(await http.post(f"{feed}?push=monday&start={start}", body)).json for start in (0, 0, 3, 2)]
    assert answers == [{"new": 3, "known": 0}, {"new": 0, "known": 3}, {"new": 3, "known": 0}, {"new": 0, "known": 3}]
    assert (await http.post(f"{feed}?push=tuesday", body)).json == {"new": 3, "known": 0}
    assert (await http.post(feed, body)).json == {"new": 3, "known": 0}


async def test_a_body_without_lines_changes_nothing(http: Http, feed: str) -> None:
    assert (await http.post(feed, b"\n \n")).json == {"new": 0, "known": 0}
    refused(await http.get(feed), 404)


async def test_a_body_may_be_compressed(http: Http, feed: str) -> None:
    body = gzip.compress(b"https://a.example/\nhttps://b.example/")
    assert (await http.post(feed, body, Content_Encoding="gzip")).json == {"new": 2, "known": 0}


async def test_the_first_push_or_the_crawl_sets_the_number_of_slots(http: Http, feed: str, project: int) -> None:
    urls = lines(*(f"https://{n}.example/".encode() for n in range(30)))
    assert (await http.post(f"{feed}?slots=2", urls)).json["new"] == 30
    assert set(await queued(http, project)) == {"0", "1"}
    assert "slots: is 3, but frontier news has 2. Leave it out" in refused(
        await http.post(f"{feed}?slots=3", b"https://a/"), 400
    )
    assert (await http.post(feed, urls)).json == {"new": 0, "known": 30}
    assert (await declare(http, feed, {"slots": 4})).status == 200
    assert (await http.get(feed)).json["slots"] == 4


async def test_more_slots_than_a_push_expects_are_an_error(http: Http, feed: str, project: int) -> None:
    await http.post(f"/hcf/{project}/news/s/11", [{"fp": "a"}])
    assert "frontier news has slot 11. Name the FRONTIER_SLOTS" in refused(await http.post(feed, b"https://a/"), 400)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?push=a/b", "push: must be 1 to 64 letters"),
        ("?slots=0", "slots: must be 1 to 1024"),
        ("?start=-1", "start"),
    ],
)
async def test_a_bad_parameter_is_named(http: Http, feed: str, query: str, message: str) -> None:
    assert message in refused(await http.post(feed + query, b"https://a/"), 400)


@pytest.mark.parametrize(
    "body", [{}, {"slots": 0}, {"slots": 8, "open": 1}, {"slots": 8, "oben": True}, {"slots": True}]
)
async def test_a_bad_declaration_is_refused(http: Http, feed: str, body: dict[str, Any]) -> None:
    refused(await declare(http, feed, body), 400)


async def test_too_many_lines_are_refused_before_one_is_queued(http: Http, feed: str, project: int) -> None:
    body = b"\n".join(b"https://a.example/%d" % n for n in range(10_001))
    assert "has over 10000 lines" in refused(await http.post(feed, body), 400)
    assert await queued(http, project) == {}


async def test_a_frontier_shows_what_a_push_needs_and_when_slots_change(http: Http, feed: str, project: int) -> None:
    refused(await http.get(feed), 404)
    await http.post(feed, b"https://a.example/")
    before = (await http.get(feed)).json
    assert before.keys() == {"slots", "stamps"}
    ((slot, _),) = before["stamps"].items()
    await http.post(f"/hcf/{project}/news/s/{slot}", [{"fp": "another"}])
    await http.post(f"/hcf/{project}/news/s/dead-letters", [{"fp": "dead"}])
    after = (await http.get(feed)).json
    assert after["stamps"].keys() == {slot}
    assert after["stamps"] != before["stamps"]


async def test_fingerprints_of_a_crawls_own_must_come_with_the_requests(http: Http, feed: str) -> None:
    await declare(http, feed, {"slots": 8, "own_fingerprints": True})
    assert "fingerprints of its own" in refused(await http.post(feed, b"https://a/"), 409)
    assert (await http.post(feed, lines({"url": "https://a/", "fp": "00ff"}))).json == {"new": 1, "known": 0}
    extracted = {"url": "https://a/", "meta": {"extract_api": {"browserHtml": True}}}
    assert "line 1.meta: has extract_api fields" in refused(await http.post(feed, lines(extracted)), 400)


# ── frontiers of jobs ──


async def test_a_job_that_waits_for_requests_takes_them_until_it_closes_its_frontier(http: Http, project: int) -> None:
    _, frontier = await running_job(http, project)
    feed = f"/hcf/{project}/{frontier}/feed"
    await declare(http, feed, {"slots": 8, "open": True})
    assert (await http.post(feed, b"https://a/")).json == {"new": 1, "known": 0}
    await declare(http, feed, {"slots": 8, "open": False})
    assert "is ending" in refused(await http.post(feed, b"https://b/"), 409)
    assert "open" in (await http.get(feed)).json


async def test_a_job_that_does_not_wait_refuses_requests_with_the_remedy(http: Http, project: int) -> None:
    key, frontier = await running_job(http, project)
    feed = f"/hcf/{project}/{frontier}/feed"
    text = refused(await http.post(feed, b"https://a/"), 409)
    assert f"the frontier of job {key}: takes no requests" in text
    assert "FRONTIER_KEEP_ALIVE" in text
    assert "FRONTIER_NAME" in text


async def test_a_job_that_has_ended_refuses_requests_even_if_it_was_killed(http: Http, project: int) -> None:
    key, frontier = await running_job(http, project)
    feed = f"/hcf/{project}/{frontier}/feed"
    await declare(http, feed, {"slots": 8})
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": "killed"}])
    assert "since the job has ended" in refused(await http.post(feed, b"https://a/"), 409)


async def test_a_job_that_does_not_exist_or_has_not_begun_refuses_requests(http: Http, project: int) -> None:
    assert "does not exist" in refused(await http.post(f"/hcf/{project}/job-9-9/feed", b"https://a/"), 404)
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "news"}])).lines
    _, spider, job = pushed["key"].split("/")
    text = refused(await http.post(f"/hcf/{project}/job-{spider}-{job}/feed", b"https://a/"), 409)
    assert "has not begun" in text


async def test_a_deleted_frontier_forgets_what_was_declared(http: Http, feed: str, project: int) -> None:
    await http.post(f"{feed}?slots=1", b"https://a/")
    await http.delete(f"/hcf/{project}/news/s/0")
    refused(await http.get(feed), 404)
    assert (await http.post(f"{feed}?slots=3", b"https://a/")).json["new"] == 1


async def test_pushes_at_once_count_each_request_as_new_in_one_of_them(http: Http, feed: str) -> None:
    bodies = [b"\n".join(b"https://%d.example/%d" % (n % 20, n) for n in range(k, k + 200)) for k in range(0, 400, 50)]
    answers = await asyncio.gather(*(http.post(f"{feed}?slots=8", body) for body in bodies))
    assert sum(answer.json["new"] for answer in answers) == 550
    assert sum(answer.json["known"] for answer in answers) == 200 * len(bodies) - 550


async def test_workers_of_one_crawl_keep_what_the_first_of_them_declares(http: Http, feed: str) -> None:
    await declare(http, feed, {"slots": 12, "open": False, "keep": True})
    await declare(http, feed, {"slots": 8, "spread": True, "keep": True})
    found = (await http.get(feed)).json
    assert (found["slots"], found["open"], found.get("spread", False)) == (12, False, False)
    await declare(http, feed, {"slots": 8, "spread": True})
    assert (await http.get(feed)).json["slots"] == 8
