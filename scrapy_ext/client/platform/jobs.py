"""Jobs, their metadata and their queue (platform-api.md, Jobs; Job metadata; Finished-job queue)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import msgspec

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import RUN_PARAMETERS, JobList, JudgedJobs, PushedJob, QueueEntry
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.platform.answers import Answer
from scrapy_ext.client.platform.calls import JSON, ClientCall, Value, delete, form, get, path, post
from scrapy_ext.client.platform.errors import NotFound, UnexpectedAnswer
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.client.platform.resource import Resource
from scrapy_ext.compatibility.python import Unpack


class Jobs(Resource):
    """Scheduling of jobs, their listing and their metadata."""

    # ── scheduling ({app_url}) ──

    async def run(
        self,
        project: int,
        spider: str | None = None,
        *,
        jobq_id: int | None = None,
        arguments: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        priority: int | None = None,
        units: int | None = None,
        workers: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        cmd_args: str | None = None,
    ) -> JobKey:
        """Schedule a job of a spider, given by name or ``jobq_id``, or of a script, named ``py:…``, with its command
        line in ``cmd_args``. ``workers``: their number, or its bounds as ``4..32``.
        Sent once: a second attempt could start a second job. Raises
        :class:`~scrapy_ext.client.platform.errors.DuplicateJob` when an equal job is pending or running."""
        arguments = arguments or {}
        taken = [name for name in arguments if name in RUN_PARAMETERS]
        if taken:
            raise ContractError(
                [Violation(name, "cannot be the name of a spider argument here", "Rename it.") for name in taken]
            )
        call = form(
            "/api/run.json",
            ("project", project),
            ("spider", spider),
            ("jobq_id", jobq_id),
            ("priority", priority),
            ("units", units),
            (JOB_WORKERS, workers),
            ("add_tag", tags),
            ("job_settings", _json(settings)),
            ("meta", _json(metadata)),
            ("environment", _json(environment)),
            ("cmd_args", cmd_args),
            *arguments.items(),
            repeatable=False,
        )
        return await self._transport.read(call, lambda answer: JobKey.parse(str(answer.app().get("jobid")), "jobid"))

    async def list(
        self,
        project: int,
        *,
        job: Sequence[JobKey | str] = (),
        spider: str | None = None,
        state: str | Sequence[str] | None = None,
        has_tag: str | Sequence[str] | None = None,
        lacks_tag: str | Sequence[str] | None = None,
        count: int | None = None,
        offset: int | None = None,
    ) -> JobList:
        """Return a page of the project's jobs, newest first."""
        call = get(
            Host.APP,
            "/api/jobs/list.json",
            ("project", project),
            ("job", [str(key) for key in job]),
            ("spider", spider),
            ("state", state),
            ("has_tag", has_tag),
            ("lacks_tag", lacks_tag),
            ("count", count),
            ("offset", offset),
            accept=JSON,
        )
        return await self._transport.read(call, lambda answer: msgspec.convert(answer.app(), JobList))

    async def judged(
        self,
        project: int,
        *,
        spider: str | None = None,
        state: str | Sequence[str] | None = None,
        has_tag: str | Sequence[str] | None = None,
        needs_attention: bool = False,
        count: int | None = None,
        offset: int | None = None,
    ) -> JudgedJobs:
        """Return a page of the project's jobs with their verdicts, newest first.

        The hosted platform does not have them: raises :class:`~scrapy_ext.client.platform.errors.NotFound`.
        """
        call = get(
            Host.APP,
            path("api", "projects", project, "verdicts"),
            ("spider", spider),
            ("state", state),
            ("has_tag", has_tag),
            ("needs_attention", "1" if needs_attention else None),
            ("count", count),
            ("offset", offset),
            accept=JSON,
        )
        return await self._json(call, JudgedJobs)

    async def update_tags(
        self, project: int, job: JobKey, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        tags = (("add_tag", add), ("remove_tag", remove))
        await self._app(form("/api/jobs/update.json", ("project", project), ("job", str(job)), *tags))

    async def set_workers(self, project: int, job: JobKey, workers: str) -> None:
        """Change the number of workers of a pending or running job, or its bounds as ``4..32``."""
        await self._app(form("/api/jobs/update.json", ("project", project), ("job", str(job)), (JOB_WORKERS, workers)))

    async def stop(self, project: int, job: JobKey) -> None:
        """Ask a running job to stop."""
        await self._app(form("/api/jobs/stop.json", ("project", project), ("job", str(job))))

    async def delete(self, project: int, *jobs: JobKey) -> None:
        """Delete jobs with all that they stored."""
        keys = [str(job) for job in jobs]
        await self._app(form("/api/jobs/delete.json", ("project", project), ("job", keys)))

    # ── metadata ({storage_url}) ──

    async def metadata(self, key: JobKey) -> dict[str, Any]:
        """Return all metadata of a job. For a job that does not exist, raises
        :class:`~scrapy_ext.client.platform.errors.NotFound` or returns an empty object, as the platform does."""
        call = get(Host.STORAGE, path("jobs", *key), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(dict) if answer.body.strip() else {})

    async def field(self, key: JobKey, name: str) -> Any:
        """Return one field of a job's metadata, None when it is absent."""
        return await self._json(get(Host.STORAGE, path("jobs", *key, name), accept=JSON), object)

    async def update(self, key: JobKey, fields: Mapping[str, Any]) -> None:
        """Set fields of a job's metadata; the others stay."""
        body = msgspec.json.encode(fields)
        await self._transport.send(post(Host.STORAGE, path("jobs", *key), body, content_type=JSON))

    async def delete_field(self, key: JobKey, name: str) -> None:
        """Remove a field of a job's metadata."""
        await self._transport.send(delete(Host.STORAGE, path("jobs", *key, name)))


Strings = str | Sequence[str] | None


class JobFilters(TypedDict, total=False):
    """Conditions on jobs. ``state``: without it, finished jobs."""

    spider: str | None
    state: Strings
    startts: int | None
    endts: int | None
    has_tag: Strings
    lacks_tag: Strings


class JobQueue(Resource):
    """The jobs of projects by state."""

    async def push(self, project: int, spider: str, *, state: str = "running", **metadata: Any) -> PushedJob:
        """Create a job in this state (``running`` or ``pending``), with further metadata such as ``spider_args``,
        ``tags``, ``priority``. Sent once: a second attempt could create a second job."""
        body = encode([{"spider": spider, "state": state, **metadata}])
        call = post(Host.JOBQ, path("jobq", project, "push"), body, repeatable=False)
        return await self._transport.read(call, lambda answer: _pushed(call, answer))

    async def update(self, project: int, key: JobKey, **fields: Any) -> str | None:
        """Set ``state`` and any metadata of a job. Returns its former state; raises
        :class:`~scrapy_ext.client.platform.errors.NotFound` for a job that does not exist."""
        call = post(Host.JOBQ, path("jobq", project, "update"), encode([{"key": str(key), **fields}]))
        changed = await self._lines(call, dict)
        if not changed:
            raise call.error(NotFound, f"there is no job {key}; check its key", 404)
        state = changed[0].get("prevstate")
        return state if isinstance(state, str) else None

    async def list(
        self,
        project: int,
        *,
        count: int | None = None,
        start: int | None = None,
        stop: JobKey | None = None,
        key: Sequence[JobKey | str] = (),
        **filters: Unpack[JobFilters],
    ) -> list[QueueEntry]:
        """Return jobs from the most recent to the oldest; at most 1000 a call."""
        call = get(
            Host.JOBQ,
            path("jobq", project, "list"),
            *_parameters(filters),
            ("count", count),
            ("start", start),
            ("stop", None if stop is None else str(stop)),
            ("key", [str(one) for one in key]),
        )
        return await self._lines(call, QueueEntry)

    async def count(self, project: int, **filters: Unpack[JobFilters]) -> int:
        call = get(Host.JOBQ, path("jobq", project, "count"), *_parameters(filters), accept="text/plain")
        return await self._json(call, int)


def _parameters(filters: JobFilters) -> tuple[tuple[str, Value], ...]:
    return tuple(cast("dict[str, Value]", filters).items())


def _pushed(call: ClientCall, answer: Answer) -> PushedJob:
    pushed = answer.lines(dict)
    if not pushed:
        raise call.error(UnexpectedAnswer, "no job in the answer", answer.status)
    if pushed[0].get("error"):
        raise answer.error(str(pushed[0]["error"]))
    try:
        return msgspec.convert(pushed[0], PushedJob)
    except msgspec.ValidationError as error:
        raise call.error(UnexpectedAnswer, f"no job in the answer: {error}", answer.status) from None


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
