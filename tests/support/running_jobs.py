"""A platform whose jobs run, as tests ask it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

from scrapy_ext.jobprocess.child import Child, Supervision
from scrapy_ext.jobprocess.confinement import Confinement
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http


def confined(command: Sequence[str], confinement: Confinement) -> Awaitable[Child]:
    """Start a program that is confined, without any variables."""
    return Child.start(command, folder=Path("/"), environment={}, given=b"", supervision=Supervision(confinement))


class Platform:
    """The calls that tests of jobs make, in one project."""

    def __init__(self, http: Http, project: int = 1) -> None:
        self.http = http
        self.project = project

    async def ask(self, spider: str, **fields: Any) -> Answer:
        """Schedule a job; what is no text is sent as JSON."""
        form = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
        return await self.http.call("POST", "/api/run.json", {"project": str(self.project), "spider": spider, **form})

    async def run(self, spider: str, **fields: Any) -> str:
        """Schedule a job; returns its key."""
        answer = await self.ask(spider, **fields)
        assert answer.status == 200, answer.text
        return str(answer.json["jobid"])

    async def stop(self, job: str) -> None:
        """Ask a job to stop."""
        answer = await self.http.call("POST", "/api/jobs/stop.json", {"project": str(self.project), "job": job})
        assert answer.status == 200, answer.text

    async def metadata(self, job: str) -> dict[str, Any]:
        """The stored metadata of a job."""
        found: dict[str, Any] = (await self.http.get(f"/jobs/{job}")).json
        return found

    async def ended(self, job: str) -> dict[str, Any]:
        """Wait until a job is finished; returns its metadata."""

        async def look() -> dict[str, Any] | None:
            metadata = await self.metadata(job)
            return metadata if metadata["state"] == "finished" else None

        found: dict[str, Any] = await eventually_async(look, what=f"the end of job {job}")
        return found

    async def reason(self, job: str) -> str:
        """Wait until a job is finished; returns why it is."""
        return str((await self.ended(job))["close_reason"])

    async def records(self, kind: str, job: str) -> list[Any]:
        """The items, logs and so on of a job."""
        found: list[Any] = (await self.http.get(f"/{kind}/{job}?format=json")).json
        return found

    async def log(self, job: str) -> list[str]:
        """The lines of a job's log."""
        return [record["message"] for record in await self.records("logs", job)]

    async def workers(self, job: str) -> list[dict[str, Any]]:
        """The workers of a job that has several."""
        return (await self.http.get(f"/jobq/{self.project}/workers?job={job}")).lines

    async def working(self, job: str, count: int, without: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Wait until a job has so many workers, none of them among these attempts, and each has sent a
        report."""

        async def look() -> list[dict[str, Any]] | None:
            found = await self.workers(job)
            begun = [each for each in found if each["number"] > 0 and each["attempt"] not in without]
            return found if len(begun) == count == len(found) else None

        found: list[dict[str, Any]] = await eventually_async(look, what=f"{count} workers of job {job}")
        return found

    async def says(self, job: str, text: str) -> None:
        """Wait until a job's log has a line with this text."""

        async def look() -> bool:
            return any(text in line for line in await self.log(job))

        await eventually_async(look, what=f"{text!r} in the log of job {job}")


async def has_each_item_once(platform: Platform, job: str, pages: int) -> list[dict[str, Any]]:
    """Wait until a job of the spider ``spread`` is finished, and check its items; returns them."""
    try:
        metadata = await platform.ended(job)
    except AssertionError as error:
        last = "\n".join((await platform.log(job))[-50:])
        raise AssertionError(f"{error}\n{await platform.workers(job)}\n{last}") from None
    assert metadata["close_reason"] == "finished", await platform.log(job)
    items = await platform.records("items", job)
    assert sorted(item["number"] for item in items) == list(range(pages))
    return items


async def run(http: Http, spider: str, **fields: str) -> str:
    """Schedule a job of project 1; returns its key."""
    return await Platform(http).run(spider, **fields)


async def until(http: Http, job: str, state: str) -> dict[str, Any]:
    """Wait until a job is in a state; returns its metadata."""

    async def look() -> dict[str, Any] | None:
        metadata = await Platform(http).metadata(job)
        return metadata if metadata["state"] == state else None

    found: dict[str, Any] = await eventually_async(look, what=f"job {job} to be {state}")
    return found
