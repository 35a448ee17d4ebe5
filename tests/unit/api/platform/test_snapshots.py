"""Snapshots as records of a collection: what is stored is read again, and nothing else is taken for a snapshot."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from scrapy_ext.api import compression
from scrapy_ext.api.platform import JobKey, snapshots
from scrapy_ext.api.platform.collections import MAX_RECORD_BYTES
from scrapy_ext.api.platform.job_data import job_of_snapshot
from scrapy_ext.api.platform.snapshots import Content, DamagedPartError, Part, Snapshot, StoredSnapshot

JOB = JobKey(1, 2, 3)
ID = "1700000000000-0a1b2c3d"
PNG = b"\x89PNG\r\n\x1a\n"


def taken(**parts: bytes) -> Snapshot:
    content: dict[str, Any] = {name: Content(len(data)) for name, data in parts.items()}
    return Snapshot(time=1, url="https://a.example/", status=200, error="KeyError", **content)


def read(lines: list[bytes]) -> tuple[StoredSnapshot, dict[str, bytes]]:
    """The snapshot of some lines, and all records by key."""
    records = {json.loads(line)["_key"]: line for line in lines}
    found = snapshots.stored(JOB, f"job-2-3/snapshots/{ID}", records[f"job-2-3/snapshots/{ID}"])
    assert found is not None
    return found, records


def test_the_largest_parts_come_back_from_records_within_the_limit() -> None:
    noise = random.Random(1)
    page = noise.randbytes(snapshots.MAX_PAGE)
    screenshot = PNG + noise.randbytes(snapshots.MAX_SCREENSHOT - len(PNG))
    lines = snapshots.lines_of(
        JOB, ID, taken(page=page, screenshot=screenshot), {Part.PAGE: page, Part.SCREENSHOT: screenshot}
    )
    assert max(map(len, lines)) <= MAX_RECORD_BYTES
    assert json.loads(lines[-1])["_key"].endswith(f"snapshots/{ID}"), "the record comes last"
    assert {job_of_snapshot(1, json.loads(line)["_key"]) for line in lines} == {JOB}
    found, records = read(lines)
    for part, data in ((Part.PAGE, page), (Part.SCREENSHOT, screenshot)):
        assert snapshots.unpack(part, [records[key] for key in found.keys_of(part)]) == data


def test_a_snapshot_without_parts_is_one_record() -> None:
    (line,) = snapshots.lines_of(JOB, ID, taken(), {})
    found, _ = read([line])
    assert found.keys_of(Part.PAGE) == found.keys_of(Part.SCREENSHOT) == []


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"[]",
        b"{}",
        b'{"time":"a","url":"u","status":1,"error":"e"}',
        b'{"time":1,"url":"u","status":1,"error":"e","page":{"bytes":1,"pieces":100000000}}',
        b'{"time":1,"url":"u","status":1,"error":"e","page":{"bytes":1,"pieces":0}}',
        b'{"time":1,"url":["u"],"status":1,"error":"e"}',
        b"\xff",
        b'{"a":' + b"[" * 100_000,
    ],
)
def test_other_records_are_no_snapshots(record: bytes) -> None:
    assert snapshots.stored(JOB, f"job-2-3/snapshots/{ID}", record) is None


@pytest.mark.parametrize("key", ["job-2-3/snapshots/x", f"job-2-4/snapshots/{ID}", f"{ID}/..", "job-2-3/snapshots/"])
def test_other_keys_are_no_snapshots(key: str) -> None:
    (line,) = snapshots.lines_of(JOB, ID, taken(), {})
    assert snapshots.stored(JOB, key, line) is None


def piece(data: bytes | str) -> bytes:
    return json.dumps(
        {"data": data if isinstance(data, str) else snapshots.pybase64.b64encode_as_string(data)}
    ).encode()


@pytest.mark.parametrize(
    ("part", "records"),
    [
        (Part.PAGE, [piece(compression.gzip(bytes(snapshots.MAX_PAGE + 1)))]),
        (Part.PAGE, [piece(b"not gzip")]),
        (Part.PAGE, [piece(compression.gzip(b"a")[:-4])]),
        (Part.PAGE, [piece("***")]),
        (Part.PAGE, [b'{"data": 1}']),
        (Part.SCREENSHOT, [piece(b"<script>alert(1)</script>")]),
        (Part.SCREENSHOT, [piece(b"<svg xmlns='http://www.w3.org/2000/svg'/>")]),
        (Part.SCREENSHOT, [piece(b"GIF89a")]),
    ],
    ids=["bomb", "no gzip", "cut", "no Base64", "no text", "a script", "SVG", "GIF"],
)
def test_damaged_and_hostile_content_is_refused(part: Part, records: list[bytes]) -> None:
    with pytest.raises(DamagedPartError):
        snapshots.unpack(part, records)


@pytest.mark.parametrize(
    ("key", "job"),
    [
        ("job-2-3/snapshots/x", JOB),
        ("job-2-3/", JOB),
        ("job-2-3", None),
        ("job-02-3/x", None),
        ("job-2-9223372036854775808/x", None),
        ("x", None),
    ],
)
def test_the_job_of_a_key(key: str, job: JobKey | None) -> None:
    assert job_of_snapshot(1, key) == job
