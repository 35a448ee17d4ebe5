"""A job with data of each kind, and all reads and writes of that data."""

from __future__ import annotations

import json
from typing import Any

from tests.support.http import Answer, Http

SECRET = "a-person-who-wants-to-be-forgotten"
KINDS = ("items", "requests", "logs", "samples")


def record(kind: str, secret: str) -> Any:
    return {
        "items": {"name": secret},
        "logs": {"time": 1, "level": 20, "message": secret},
        "requests": {"time": 1, "method": "GET", "url": f"http://{secret}", "status": 200, "duration": 1, "rs": 1},
        "samples": [1, 2, 3, 4, 5],
    }[kind]


class FilledJob:
    """A job with data of each kind."""

    def __init__(self, http: Http, key: str) -> None:
        self.http = http
        self.secret = f"{SECRET}-{key.replace('/', '-')}"
        self.key = key
        self.project, self.spider, self.job = key.split("/")
        self.frontier = f"/hcf/{self.project}/job-{self.spider}-{self.job}"
        self.journal = f"commits-{self.spider}-{self.job}"
        self.staged = f"/collections/{self.project}/s/scrapy_commits"
        self.snapshots = f"/collections/{self.project}/cs/scrapy_snapshots"
        self.snapshot = f"job-{self.spider}-{self.job}/snapshots/1700000000000-0a1b2c3d"

    async def fill(self) -> None:
        http, key = self.http, self.key
        for kind in KINDS:
            assert (await self.write(kind)).status == 200, kind
        assert (await http.post(f"/api/comments/{key}/0", {"text": self.secret})).status == 201
        assert (
            await http.post(f"/jobs/{key}", json.dumps({"spider_args": {"name": self.secret}}).encode())
        ).status == 200
        for answer in [await self.enqueue("0"), await self.enqueue("dead-letters"), await self.enqueue(self.journal)]:
            assert answer.json == {"newcount": 1}
        # A record of the journal, which other workers of that frontier need.
        await http.post(f"/hcf/{self.project}/shared/s/{self.journal}", [{"fp": "1"}])
        for frontier in (f"job-{self.spider}-{self.job}", "shared"):
            assert (await self.stage(frontier)).status == 200
        # A worker of a group, in another frontier.
        journal = f"{self.journal}-3"
        await http.post(f"/hcf/{self.project}/of-groups/s/{journal}", [{"fp": "1"}])
        worker = {"_key": f"of-groups/{journal}/a1b2c3/1.0", "pieces": 1, "items": self.secret}
        assert (await http.post(self.staged, [worker])).status == 200
        assert (await self.keep_page()).status == 200

    async def write(self, kind: str, query: str = "") -> Answer:
        return await self.http.post(f"/{kind}/{self.key}{query}", [record(kind, self.secret)])

    async def enqueue(self, slot: str, frontier: str = "") -> Answer:
        path = frontier or self.frontier
        return await self.http.post(
            f"{path}/s/{slot}", [{"fp": self.secret, "qdata": {"a": self.secret}, "fdata": self.secret}]
        )

    def staged_key(self, frontier: str) -> str:
        return f"{frontier}/{self.journal}/a1b2c3/1.0"

    async def stage(self, frontier: str) -> Answer:
        return await self.http.post(
            self.staged, [{"_key": self.staged_key(frontier), "pieces": 1, "items": self.secret}]
        )

    async def keep_page(self) -> Answer:
        """Store a snapshot."""
        record = {"_key": self.snapshot, "time": 1, "url": self.secret, "status": 200, "error": "KeyError"}
        return await self.http.post(self.snapshots, [record])

    async def delete(self) -> None:
        assert (await self.http.delete(f"/jobs/{self.key}")).status == 200

    def own_paths(self) -> list[str]:
        """Some of the reads that contain its data while it is there, and that of no other job."""
        slots = [f"{self.frontier}/s/{slot}/q" for slot in ("0", "dead-letters", self.journal)]
        return [*(f"/{kind}/{self.key}" for kind in KINDS if kind != "samples"), f"/api/comments/{self.key}", *slots]

    async def reads(self) -> dict[str, Answer]:
        """The answers of all reads that could contain its data."""
        paths = [f"/{kind}/{key}" for kind in KINDS for key in (self.key, f"{self.key}/0")]
        paths += [f"/{kind}/{self.key}/stats" for kind in KINDS if kind != "samples"]
        paths += [f"/{kind}/{self.key}?index=0" for kind in KINDS]
        paths += [f"/{kind}/{self.project}/{self.spider}" for kind in KINDS]
        paths += [f"/{kind}/{self.project}" for kind in KINDS]
        paths += [
            f"/{kind}/{self.key}?format={name}" for kind in ("items", "logs") for name in ("json", "xml", "msgpack")
        ]
        paths += [f"/jobs/{self.key}", f"/jobs/{self.project}", f"/jobs/{self.project}/{self.spider}"]
        paths += [f"/jobs/{self.key}/spider_args", f"/jobq/{self.project}/list?state=deleted&jobmeta=spider_args"]
        paths += [f"/api/jobs/list.json?project={self.project}&job={self.key}&state=deleted"]
        paths += [f"/api/comments/{self.key}", f"/api/comments/{self.key}/0", f"/api/comments/{self.project}-1"]
        paths += [f"/hcf/{self.project}/list", f"{self.frontier}/list"]
        paths += [f"{self.frontier}/s/{slot}/{part}" for slot in ("0", "dead-letters", self.journal) for part in "qf"]
        paths += [
            self.staged,
            f"{self.staged}?prefix=job-",
            f"{self.staged}?prefix=shared",
            f"{self.staged}?key={self.staged_key('shared')}",
        ]
        paths += [f"{self.staged}/{self.staged_key('shared').replace('/', '%2F')}"]
        paths += [self.snapshots, f"{self.snapshots}?prefix=job-", f"{self.snapshots}?key={self.snapshot}"]
        paths += [f"{self.snapshots}/{self.snapshot.replace('/', '%2F')}"]
        paths += [f"/ui/{self.key}/snapshots", f"/ui/{self.key}/snapshots/{self.snapshot.rpartition('/')[2]}"]
        return {path: await self.http.get(path) for path in paths}

    async def writes(self) -> dict[str, Answer]:
        """The answers of all writes by which its data could come back."""
        http, key = self.http, self.key
        return {
            **{kind: await http.post(f"/{kind}/{key}", [record(kind, self.secret)]) for kind in KINDS},
            **{
                f"{kind} again": await http.post(f"/{kind}/{key}?start=0", [record(kind, self.secret)])
                for kind in KINDS
            },
            "comment": await http.post(f"/api/comments/{key}/0", {"text": self.secret}),
            "metadata": await http.post(f"/jobs/{key}", b'{"a": 1}'),
            "field": await http.post(f"/jobs/{key}/a", b"1"),
            "tags": await http.post("/api/jobs/update.json", {"project": self.project, "job": key, "add_tag": "a"}),
            "update": await http.post(f"/jobq/{self.project}/update", [{"key": key, "a": 1}]),
            "token": await http.get(f"/jobs/{key}/auth"),
            "queue": await self.enqueue("0"),
            "journal": await self.enqueue(self.journal),
            "staged": await self.stage(f"job-{self.spider}-{self.job}"),
            "staged in a frontier of several jobs": await self.stage("shared"),
            "snapshot": await self.keep_page(),
        }


async def new_job(http: Http, project: int, state: str = "finished") -> FilledJob:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": state}])).lines
    return FilledJob(http, pushed["key"])


def unrefused(answers: dict[str, Answer]) -> dict[str, int]:
    """The answers that do not refuse the call because of the deletion."""
    return {name: answer.status for name, answer in answers.items() if answer.status != 410}
