"""Batches of records with their times, bounded in number, bytes and runs of equal times."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, NamedTuple

from scrapy_ext.api.platform.imports import TimeRun, runs_of

MAX_RECORDS: Final = 1000
MAX_BYTES: Final = 1024 * 1024
#: Runs of equal times: their header stays below the 4 KiB that every proxy accepts.
MAX_RUNS: Final = 200


class TimedLine(NamedTuple):
    """A record: its number, time (ms) and bytes. The copies of one record of a collection have the same number."""

    number: int
    ts: int
    line: bytes


class Batch(NamedTuple):
    """Records with consecutive numbers, with all copies of each; ``last`` are the bytes of the last one."""

    start: int
    body: bytes
    runs: list[TimeRun]
    records: int
    last: bytes


async def batches(lines: AsyncIterator[TimedLine]) -> AsyncGenerator[Batch]:
    """Yield the records in batches."""
    held: list[TimedLine] = []
    size = runs = 0
    async for line in lines:
        new_run = not held or line.ts != held[-1].ts
        is_full = len(held) >= MAX_RECORDS or size + len(line.line) >= MAX_BYTES or (new_run and runs >= MAX_RUNS)
        if held and line.number != held[-1].number and (is_full or line.number != held[-1].number + 1):
            yield _batch(held)
            held, size, runs, new_run = [], 0, 0, True
        held.append(line)
        size += len(line.line) + 1
        runs += new_run
    if held:
        yield _batch(held)


def _batch(lines: list[TimedLine]) -> Batch:
    body = b"".join(line.line + b"\n" for line in lines)
    first, last = lines[0], lines[-1]
    return Batch(first.number, body, runs_of([line.ts for line in lines]), last.number - first.number + 1, last.line)
