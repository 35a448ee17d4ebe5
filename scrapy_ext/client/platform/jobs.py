"""Jobs and their metadata (platform-api.md, Jobs; Job metadata)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.jobs import RUN_PARAMETERS, JobList
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.platform.calls import JSON, ClientCall, delete, form, get
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import path


class Jobs:
    """Scheduling and looking at jobs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

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
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        cmd_args: str | None = None,
    ) -> JobKey:
        """Schedule a job of a spider, given by name or ``jobq_id``, or of a script, named ``py:…``, with its command
        line in ``cmd_args``. Sent once: a second try could start a second job. Raises
        :class:`~scrapy_ext.client.platform.errors.DuplicateJob` when one like it waits or runs."""
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
        """A page of the project's jobs, newest first."""
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

    async def update_tags(
        self, project: int, job: JobKey, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        """Add and remove tags of a job."""
        call = form(
            "/api/jobs/update.json",
            ("project", project),
            ("job", str(job)),
            ("add_tag", add),
            ("remove_tag", remove),
        )
        await self._transport.read(call, lambda answer: answer.app())

    async def stop(self, project: int, job: JobKey) -> None:
        """Ask a running job to stop."""
        call = form("/api/jobs/stop.json", ("project", project), ("job", str(job)))
        await self._transport.read(call, lambda answer: answer.app())

    async def delete(self, project: int, *jobs: JobKey) -> None:
        """Delete jobs."""
        call = form("/api/jobs/delete.json", ("project", project), ("job", [str(job) for job in jobs]))
        await self._transport.read(call, lambda answer: answer.app())

    # ── metadata ({storage_url}) ──

    async def metadata(self, key: JobKey) -> dict[str, Any]:
        """Everything that is known of a job; raises :class:`~scrapy_ext.client.platform.errors.NotFound`, or
        gives an empty object, as the platform does, for one that does not exist."""
        call = get(Host.STORAGE, path("jobs", *key), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(dict) if answer.body.strip() else {})

    async def field(self, key: JobKey, name: str) -> Any:
        """One field of a job's metadata, None when it is absent."""
        call = get(Host.STORAGE, path("jobs", *key, name), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(object))

    async def update(self, key: JobKey, fields: Mapping[str, Any]) -> None:
        """Set fields of a job's metadata; the others stay."""
        await self._transport.send(
            ClientCall(
                method="POST",
                host=Host.STORAGE,
                path=path("jobs", *key),
                body=msgspec.json.encode(fields),
                content_type=JSON,
            )
        )

    async def delete_field(self, key: JobKey, name: str) -> None:
        """Remove a field of a job's metadata."""
        await self._transport.send(delete(Host.STORAGE, path("jobs", *key, name)))


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
