"""Workers of one job: their joins, reports and ends, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.http import Answer, Http


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


async def test_workers_join_with_numbers_and_tokens_of_their_own(group: Group) -> None:
    first = await group.join(workers="2")
    second = await group.join()
    assert [(each["attempt"], each["worker"]) for each in (first, second)] == [(1, 0), (2, 1)]
    assert first["token"] != second["token"]
    assert (first["run_start"], second.get("run_start", False)) == (True, False)


async def test_the_last_worker_ends_the_job(group: Group) -> None:
    await group.join(workers="2")
    await group.join()
    await group.end(1)
    assert (await group.metadata())["state"] == "running"
    await group.end(2)
    metadata = await group.metadata()
    assert (metadata["state"], metadata["close_reason"]) == ("finished", "finished")
