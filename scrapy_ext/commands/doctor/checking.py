"""The records of checks and findings, and their run.

All checks run at once. Each has a time limit, and one that fails unexpectedly is a finding of its own, so that no check
keeps the others from their result. What may block (disks, name servers) runs in daemon threads, which do not keep the
process from its end either.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from scrapy_ext.api.masking import without_secrets
from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS

T = TypeVar("T")

#: Seconds for a check.
SECONDS: Final = 10.0


class Status(str, Enum):
    OK = "ok"
    #: It works, and something is doubtful.
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(NamedTuple):
    """One result. ``remedy`` has the command or the change that helps; empty if all is well."""

    subject: str
    status: Status
    text: str
    remedy: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding(subject, Status.OK, without_secrets(text))


def warning(subject: str, text: str, remedy: str) -> Finding:
    return Finding(subject, Status.WARNING, without_secrets(text), remedy)


def problem(subject: str, text: str, remedy: str) -> Finding:
    return Finding(subject, Status.PROBLEM, without_secrets(text), remedy)


class Check(NamedTuple):
    """A check of a subject; ``seconds`` limits its time."""

    subject: str
    run: Callable[[], Awaitable[Iterable[Finding]]]
    seconds: float = SECONDS


def in_thread(subject: str, find: Callable[[], Iterable[Finding]], seconds: float = SECONDS) -> Check:
    """Return a check that may block."""

    async def run() -> Iterable[Finding]:
        return await blocking(lambda: list(find()))

    return Check(subject, run, seconds)


async def blocking(function: Callable[[], T]) -> T:
    """Call a function in a daemon thread, which is left behind when the caller gives up."""
    calls = BlockingCalls("check")
    try:
        result: T = await calls(function)
        return result
    finally:
        calls.close()


async def findings(checks: Sequence[Check]) -> AsyncIterator[Finding]:
    """Run the checks at once, and yield their findings in the order of the checks."""
    tasks = [asyncio.ensure_future(_found(check)) for check in checks]
    try:
        for task in tasks:
            for finding in await task:
                yield finding
    finally:
        for task in tasks:
            task.cancel()


async def _found(check: Check) -> Iterable[Finding]:
    try:
        return list(await asyncio.wait_for(check.run(), check.seconds))
    except TIMEOUT_ERRORS:
        late = f"no result within {check.seconds:g} s"
        return [problem(check.subject, late, "Look at the load of the machine, its disks and its name servers.")]
    except Exception as error:
        text = f"the check itself failed: {type(error).__name__}: {error}"
        return [problem(check.subject, text, "Report this as a defect of scrapy-ext.")]
