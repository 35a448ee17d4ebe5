"""Batches of an import: bounded, and with their times."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest

from scrapy_ext.api.platform.imports import MAX_TIMES, TimeRun, parse_times, times_header
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.importing.batches import MAX_BYTES, MAX_RECORDS, MAX_RUNS, Batch, TimedLine, batches


async def made(lines: Sequence[TimedLine]) -> list[Batch]:
    async def each() -> AsyncGenerator[TimedLine]:
        for line in lines:
            yield line

    return [batch async for batch in batches(each())]


async def test_a_batch_is_bounded_by_records_bytes_and_times() -> None:
    found = await made([TimedLine(number, 7, b"{}") for number in range(MAX_RECORDS + 1)])
    assert [(batch.start, batch.records, batch.runs) for batch in found] == [
        (0, MAX_RECORDS, [TimeRun(MAX_RECORDS, 7)]),
        (MAX_RECORDS, 1, [TimeRun(1, 7)]),
    ]
    found = await made([TimedLine(number, number, b"{}") for number in range(MAX_RUNS + 1)])
    assert [len(batch.runs) for batch in found] == [MAX_RUNS, 1]
    assert len(times_header([TimeRun(1, 1_700_000_000_000)] * MAX_RUNS)) < 4096
    found = await made([TimedLine(number, 7, b"x" * (MAX_BYTES // 3)) for number in range(5)])
    assert [batch.records for batch in found] == [2, 2, 1]
    assert all(len(batch.body) <= MAX_BYTES for batch in found)


async def test_a_gap_ends_a_batch_and_copies_of_a_record_stay_together() -> None:
    found = await made([TimedLine(5, 1, b"a"), TimedLine(6, 1, b"b"), TimedLine(9, 2, b"c")])
    assert [(batch.start, batch.body) for batch in found] == [(5, b"a\nb\n"), (9, b"c\n")]
    large = b"x" * MAX_BYTES
    found = await made([TimedLine(0, 1, large), TimedLine(0, 2, large), TimedLine(1, 3, large)])
    assert [(batch.records, batch.runs) for batch in found] == [
        (1, [TimeRun(1, 1), TimeRun(1, 2)]),
        (1, [TimeRun(1, 3)]),
    ]


def test_times_are_read_as_they_were_written() -> None:
    runs = [TimeRun(12, 1_700_000_000_000), TimeRun(1, 0)]
    assert parse_times(times_header(runs)) == runs


@pytest.mark.parametrize("text", ["", "1", "0:5", "1:-5", "1:5,", "a:b", ",".join(["1:1"] * (MAX_TIMES + 1))])
def test_malformed_times_are_refused(text: str) -> None:
    with pytest.raises(ContractError, match="Record-Times"):
        parse_times(text)
