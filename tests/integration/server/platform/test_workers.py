"""Workers of one job: their joins, reports and ends, over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from scrapy_ext.api.platform.jobs import ATTEMPT_OVER
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.stat_kinds import Stat, StatKind
from scrapy_ext.api.platform.workers import LiveWorker, Queue, Report
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import AttemptOver, NotFound
from scrapy_ext.client.platform.transport import PlatformUrls
from tests.support.http import Answer, Http
from tests.support.servers import RunningServer


class Group:
    """A running job of a spider, whose workers report."""

    def __init__(self, http: Http, project: int, key: str) -> None:
        self.http = http
        self.project = project
        self.key = key
        self._nonces = 0
        #: Number of the last report by attempt.
        self.numbers: dict[int, int] = {}

    async def send(self, **fields: Any) -> Answer:
        body = json.dumps({"job": self.key, **fields}).encode()
        return await self.http.call("POST", f"/jobq/{self.project}/report", body)

    def nonce(self) -> str:
        self._nonces += 1
        return f"{self._nonces:032x}"

    async def join(self, **fields: Any) -> dict[str, Any]:
        answer = await self.send(**{"nonce": self.nonce(), "number": 1, **fields})
        assert answer.status == 200, answer.text
        joined: dict[str, Any] = answer.json
        self.numbers[joined["attempt"]] = 1
        return joined

    async def report(self, attempt: int, **fields: Any) -> dict[str, Any]:
        self.numbers[attempt] += 1
        answer = await self.send(**{"attempt": attempt, "number": self.numbers[attempt], **fields})
        assert answer.status == 200, answer.text
        reported: dict[str, Any] = answer.json
        return reported

    async def end(self, attempt: int, outcome: str = "finished", **fields: Any) -> dict[str, Any]:
        return await self.report(attempt, last=True, outcome=outcome, **fields)

    async def listed(self) -> list[dict[str, Any]]:
        return (await self.http.get(f"/jobq/{self.project}/workers?job={self.key}")).lines

    async def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.http.get(f"/jobs/{self.key}")).json
        return found


@pytest.fixture
async def group(http: Http, project: int) -> Group:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "s", "state": "running"}])).lines
    return Group(http, project, pushed["key"])


IDLE = {"memory": 0, "idle": 2.0}
BUSY = {"memory": 3, "active": 1}


def over(answer: Answer) -> bool:
    return answer.status == 403 and ATTEMPT_OVER in answer.text


async def test_workers_join_with_numbers_and_tokens_of_their_own(group: Group) -> None:
    first = await group.join(workers="2")
    second = await group.join()
    assert [(each["attempt"], each["worker"]) for each in (first, second)] == [(1, 0), (2, 1)]
    assert first["token"] != second["token"]
    assert [each["attempt"] for each in second["workers"]] == [1, 2]


async def test_a_repeated_join_is_the_same_attempt(group: Group) -> None:
    first = await group.join(workers="4..32")
    again = await group.join(workers="2", nonce=f"{1:032x}")
    assert [again[name] for name in ("attempt", "worker", "token")] == [
        first[name] for name in ("attempt", "worker", "token")
    ]
    assert len(await group.listed()) == 1


async def test_the_next_worker_gets_the_lowest_free_number_and_a_new_attempt(group: Group) -> None:
    await group.join(workers="3")
    await group.join()
    await group.join()
    await group.end(2, "shutdown")
    fourth = await group.join()
    assert (fourth["attempt"], fourth["worker"]) == (4, 1)


async def test_a_job_without_a_group_takes_no_report(group: Group) -> None:
    answer = await group.send(nonce=group.nonce(), number=1)
    assert (answer.status, "has no group of workers" in answer.text) == (404, True)
    answer = await group.send(attempt=1, number=1)
    assert (answer.status, "has no group of workers" in answer.text) == (404, True)
    assert await group.listed() == []


async def test_a_report_that_is_not_new_changes_nothing(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    await group.report(1, number=7, queue=BUSY, counts={"items": 3})
    for number in (7, 6, 1):
        await group.report(1, number=number, queue=IDLE, counts={"items": 9}, closing="late", silent=[[2, 1]])
    (row, other) = await group.listed()
    assert (row["number"], row["queue"], row["counts"]) == (7, BUSY, {"items": 3})
    assert other["attempt"] == 2
    answer = await group.report(2)
    assert "closing" not in answer
    assert answer["totals"]["items"] == 3


async def test_one_worker_at_a_time_runs_start(group: Group) -> None:
    assert (await group.join(workers="2"))["run_start"]
    assert "run_start" not in await group.join()
    assert "run_start" not in await group.report(2)
    assert (await group.report(1, start="running"))["run_start"]
    refused = await group.send(attempt=2, number=9, start="done")
    assert (refused.status, "another runs start()" in refused.text) == (409, True)
    assert "run_start" not in await group.report(1, start="done")
    await group.end(1, "shutdown")
    assert "run_start" not in await group.report(2)


async def test_start_is_run_by_another_when_its_worker_is_lost(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    await group.report(1, start="running")
    assert (await group.report(2, silent=[[1, 2]]))["run_start"]
    assert over(await group.send(attempt=1, number=3, start="done"))


async def test_a_silent_worker_is_removed_and_its_token_writes_nothing(
    group: Group, server: RunningServer, project: int
) -> None:
    await group.join(workers="2")
    second = await group.join()
    async with Http(server.url, second["token"]) as worker:
        own = Group(worker, project, group.key)
        own.numbers[2] = 1
        assert (await own.report(2, counts={"items": 2}))["totals"]["items"] == 2
        stored = await worker.post(f"/items/{group.key}?start=0", [{"n": 1}])
        assert stored.status == 200, stored.text
        assert len((await group.report(1, silent=[[2, 1]]))["workers"]) == 2, "it has sent another report"
        answer = await group.report(1, silent=[[2, 2], [1, 2], [77, 1]])
        assert [each["attempt"] for each in answer["workers"]] == [1]
        assert answer["totals"]["items"] == 2
        assert over(await worker.post(f"/items/{group.key}?start=1", [{"n": 2}]))
        assert over(await own.send(attempt=2, number=9))
    assert over(await group.send(attempt=2, number=9))


async def test_the_token_of_a_worker_reports_for_it_alone(group: Group, server: RunningServer, project: int) -> None:
    first = await group.join(workers="2")
    await group.join()
    async with Http(server.url, first["token"]) as worker:
        own = Group(worker, project, group.key)
        assert (await own.send(number=2)).status == 200
        refused = await own.send(attempt=2, number=2)
        assert (refused.status, "for its own attempt" in refused.text) == (403, True)
        elsewhere = Group(worker, project + 1, group.key)
        assert (await elsewhere.send(number=3)).status == 403


async def test_the_first_reason_closes_the_crawl(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    assert "closing" not in await group.report(1)
    expected = {"reason": "closespider_itemcount", "attempt": 2}
    assert (await group.report(2, closing="closespider_itemcount"))["closing"] == expected
    assert (await group.report(1, closing="closespider_timeout"))["closing"] == expected
    await group.end(1, "closespider_itemcount")
    await group.end(2, "finished")
    assert (await group.metadata())["close_reason"] == "closespider_itemcount"


async def test_a_cancelled_job_closes(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    await group.http.post(f"/jobq/{group.key}/cancel")
    closing = (await group.report(1))["closing"]
    assert (closing["reason"], "attempt" in closing, bool(closing["by"])) == ("cancelled", False, True)
    await group.end(1, "cancelled")
    await group.end(2, "cancelled")
    metadata = await group.metadata()
    assert (metadata["state"], metadata["close_reason"]) == ("finished", "cancelled")


async def test_the_workers_of_a_deleted_job_close(group: Group, project: int) -> None:
    await group.join(workers="2")
    await group.http.post("/api/jobs/delete.json", {"project": str(project), "job": group.key})
    assert (await group.report(1))["closing"]["reason"] == "job_deleted"
    await group.end(1, "job_deleted", stats={"n": ["sum", 1]})
    metadata = await group.metadata()
    assert (metadata["state"], "frameworkstats" in metadata) == ("deleted", False)
    assert (await group.send(nonce=group.nonce(), number=1)).status == 409


async def test_the_last_worker_ends_the_job(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    await group.report(2, queue=IDLE)
    workers = (await group.report(1, queue=BUSY))["workers"]
    assert [each.get("idle", False) for each in workers] == [False, True]
    assert [each["attempt"] for each in (await group.end(2))["workers"]] == [1]
    assert (await group.metadata())["state"] == "running"
    await group.end(1)
    metadata = await group.metadata()
    assert (metadata["state"], metadata["close_reason"]) == ("finished", "finished")
    assert over(await group.send(attempt=1, number=9))


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [
        (("shutdown", "finished"), "finished"),
        (("finished", "shutdown"), "shutdown"),
        (("frontier_unreadable", "finished"), "frontier_unreadable"),
        (("finished", "frontier_unreadable"), "frontier_unreadable"),
    ],
)
async def test_the_reason_of_a_job_follows_from_its_workers(
    group: Group, outcomes: tuple[str, str], reason: str
) -> None:
    await group.join(workers="2")
    await group.join()
    for attempt, outcome in enumerate(outcomes, 1):
        await group.end(attempt, outcome, leaving=outcome == "shutdown")
    assert (await group.metadata())["close_reason"] == reason


async def test_too_many_losses_close_the_crawl(group: Group) -> None:
    await group.join(workers="1")
    for attempt in range(2, 7):
        await group.join()
        closing = (await group.report(1, silent=[[attempt, 1]])).get("closing")
    assert closing == {"reason": "node_lost", "attempt": 6}


async def test_totals_and_stats_are_those_of_all_workers(group: Group) -> None:
    await group.join(workers="3")
    await group.join()
    await group.join()
    stats = {"item_scraped_count": ["sum", 2], "memusage/max": ["max", 7], "start_time": ["min", 5]}
    await group.report(2, counts={"items": 2, "errors": 1}, stats={**stats, "page": ["last", "b"]})
    await group.report(3, counts={"items": 1}, stats={"item_scraped_count": ["sum", 1], "memusage/max": ["max", 9]})
    answer = await group.report(1, silent=[[2, 2]])
    assert {name: answer["totals"][name] for name in ("items", "errors")} == {"items": 3, "errors": 1}
    assert 0 <= answer["totals"]["item_seconds"] <= answer["totals"]["seconds"]
    await group.report(1, counts={"items": 4, "responses": 5}, stats={**stats, "page": ["last", "a"]})
    expected = {"item_scraped_count": 5, "memusage/max": 9, "start_time": 5, "page": "a"}
    assert (await group.metadata())["frameworkstats"] == expected, "while it runs"
    await group.end(1, stats={**stats, "page": ["last", "a"], "elapsed_time_seconds": ["last", 1.5]})
    await group.end(3, stats={"item_scraped_count": ["sum", 6], "page": ["last", "c"]})
    metadata = await group.metadata()
    (run,) = metadata["runs"]
    assert (run["items"], run["responses"], run["close_reason"]) == (7, 5, "finished")
    found = metadata["frameworkstats"]
    assert found.pop("elapsed_time_seconds") == (run["finish_time"] - run["start_time"]) / 1000
    assert found == {**expected, "item_scraped_count": 10, "memusage/max": 7}


async def test_a_new_start_ends_the_attempts_of_the_former_one(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    await group.report(1, start="done", counts={"items": 5}, stats={"item_scraped_count": ["sum", 5]})
    await group.report(2, closing="closespider_itemcount")
    third = await group.join(workers="3", resume=True)
    assert (third["attempt"], third["worker"], "closing" in third, "run_start" in third) == (3, 0, False, False)
    assert third["totals"].get("items", 0) == 0
    assert [each["attempt"] for each in third["workers"]] == [3]
    again = await group.join(workers="3", resume=True, nonce=f"{3:032x}")
    assert again["attempt"] == 3
    assert over(await group.send(attempt=1, number=9))
    await group.end(3, stats={"item_scraped_count": ["sum", 2]})
    metadata = await group.metadata()
    assert (metadata["close_reason"], metadata["frameworkstats"]) == ("finished", {"item_scraped_count": 7})


async def test_a_job_that_was_stopped_is_resumed(group: Group, project: int) -> None:
    await group.join(workers="2")
    await group.end(1, "shutdown", closing="shutdown", stats={"n": ["sum", 1]})
    assert (await group.metadata())["close_reason"] == "shutdown"
    assert (await group.send(nonce=group.nonce(), number=1, resume=True)).status == 409
    await group.http.post(f"/jobq/{project}/update", [{"key": group.key, "state": "running"}])
    joined = await group.join(resume=True)
    assert (joined["attempt"], joined["run_start"], "closing" in joined) == (2, True, False)
    await group.end(2, stats={"n": ["sum", 2]})
    metadata = await group.metadata()
    assert (metadata["close_reason"], metadata["frameworkstats"], len(metadata["runs"])) == ("finished", {"n": 3}, 2)


async def test_a_job_that_a_client_has_ended_is_resumed_though_its_workers_were_killed(
    group: Group, project: int
) -> None:
    await group.join(workers="2")
    ended = {"key": group.key, "state": "finished", "close_reason": "stopped by hand"}
    await group.http.post(f"/jobq/{project}/update", [ended])
    assert (await group.report(1))["closing"]["reason"] == "stopped by hand"
    answer = await group.http.post(f"/jobq/{project}/update", [{"key": group.key, "state": "running"}])
    assert answer.status == 200, answer.text
    assert (await group.join(resume=True))["attempt"] == 2


async def test_workers_that_join_at_once_have_numbers_of_their_own(group: Group) -> None:
    await group.join(workers="8")
    joined = await asyncio.gather(*(group.join() for _ in range(7)))
    assert sorted(each["attempt"] for each in joined) == list(range(2, 9))
    assert sorted(each["worker"] for each in joined) == list(range(1, 8))


async def test_workers_that_end_at_once_end_the_job_once(group: Group, project: int) -> None:
    for _ in range(5):
        await group.join(workers="5")
    await asyncio.gather(*(group.end(attempt) for attempt in range(1, 6)))
    events = (await group.http.get(f"/activity/{project}")).lines
    assert sum(event["event"] == "job:completed" and event.get("job") == group.key for event in events) == 1
    assert (await group.metadata())["close_reason"] == "finished"


async def test_two_that_find_each_other_silent_leave_one(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    answers = await asyncio.gather(
        group.send(attempt=1, number=2, silent=[[2, 1]]), group.send(attempt=2, number=2, silent=[[1, 1]])
    )
    assert sorted(answer.status for answer in answers) == [200, 403]
    assert len(await group.listed()) == 1


async def test_the_client_speaks_to_the_server(group: Group, server: RunningServer, project: int) -> None:
    key = JobKey.parse(group.key)
    async with PlatformClient(PlatformUrls.single(server.url), server.platform_key) as client:
        with pytest.raises(NotFound):
            await client.workers.report(project, Report(job=group.key, attempt=1, number=1))
        joined = await client.workers.report(project, Report(job=group.key, nonce="0" * 32, number=1, workers="2"))
        assert (joined.attempt, joined.worker, joined.run_start, bool(joined.token)) == (1, 0, True, True)
        answer = await client.workers.report(
            project,
            Report(job=group.key, attempt=1, number=2, queue=Queue(memory=2), stats={"n": Stat(StatKind.SUM, 1)}),
        )
        assert answer.workers == (LiveWorker(1, 0, 2),)
        (row,) = await client.workers.list(project, key)
        assert (row.worker, row.node, row.queue) == (0, "", Queue(memory=2))
        await client.workers.report(project, Report(job=group.key, attempt=1, number=3, last=True, outcome="finished"))
        with pytest.raises(AttemptOver):
            await client.workers.report(project, Report(job=group.key, attempt=1, number=4))
