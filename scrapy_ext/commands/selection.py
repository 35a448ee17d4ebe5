"""Jobs that arguments name, and confirmations before something is deleted or moved."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from typing import Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import Job
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.commands.output import one_line
from scrapy_ext.commands.subcommand import CommandError, View

_NUMBER: Final = re.compile("[0-9]{1,18}", re.ASCII)
_PAGE: Final = 1000
_LIST_THEM: Final = "`scrapy platform jobs` lists the jobs"


async def confirm(view: View, question: str) -> None:
    """Ask at the terminal, unless ``--yes`` is given; raises :class:`CommandError` for any answer but yes."""
    if view.options.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(f"{question} There is no terminal to ask at: add --yes")
    sys.stderr.write(f"{one_line(question)} [y/N] ")
    sys.stderr.flush()
    if (await _line()).strip().lower() not in ("y", "yes"):
        raise CommandError("not confirmed, so nothing was changed; answer y, or add --yes")


async def _line() -> str:
    # Ctrl-C could not end a thread that reads from the terminal.
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    ready = asyncio.Event()
    try:
        loop.add_reader(stdin, ready.set)
    except (NotImplementedError, OSError):  # on Windows, only sockets have readers
        line: bytes = await BlockingCalls("answer")(sys.stdin.buffer.readline)
        return line.decode(errors="replace")
    try:
        await ready.wait()
    finally:
        loop.remove_reader(stdin)
    return os.read(stdin, 1024).decode(errors="replace")


async def selected_jobs(view: View) -> list[JobKey]:
    """Return the jobs of the arguments ``JOB …``, each once; raises :class:`CommandError`."""
    return list(dict.fromkeys([await job_named(view, text) for text in view.options.jobs]))


async def selected_job(view: View) -> JobKey:
    """Return the job of the argument ``JOB``; raises :class:`CommandError`."""
    return await job_named(view, view.options.job)


async def job_named(view: View, text: str) -> JobKey:
    """Return the job of a text; raises :class:`CommandError` when no job, or more than one, matches."""
    if text == "last":
        return await _last(view.client, view.project)
    if _NUMBER.fullmatch(text):
        return await _numbered(view.client, view.project, int(text))
    key = JobKey.parse(text, "JOB")
    try:
        known = bool(await view.client.jobs.metadata(key))
    except NotFound:
        known = False
    if not known:
        raise CommandError(f"there is no job {key}; {_LIST_THEM}")
    return key


async def _last(client: PlatformClient, project: int) -> JobKey:
    jobs = (await client.jobs.list(project, count=1)).jobs
    if not jobs:
        raise CommandError(f"project {project} has no job yet; run one with `scrapy crawl`")
    return JobKey.parse(jobs[0].id)


async def _numbered(client: PlatformClient, project: int, number: int) -> JobKey:
    keys = [key async for job in _jobs(client, project) if (key := JobKey.parse(job.id)).job == number]
    if len(keys) > 1:
        raise CommandError(f"several spiders have a job {number}; name one by its key: {', '.join(map(str, keys))}")
    if not keys:
        async for job in _jobs(client, project, "deleted"):
            if (key := JobKey.parse(job.id)).job == number:
                raise CommandError(f"job {key} was deleted; {_LIST_THEM}")
        raise CommandError(f"project {project} has no job with number {number}; {_LIST_THEM}")
    return keys[0]


async def _jobs(client: PlatformClient, project: int, state: str | None = None) -> AsyncIterator[Job]:
    offset = 0
    while True:
        page = (await client.jobs.list(project, state=state, count=_PAGE, offset=offset)).jobs
        for job in page:
            yield job
        if len(page) < _PAGE:
            return
        offset += _PAGE
