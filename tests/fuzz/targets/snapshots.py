"""Snapshots of pages whose callbacks raised: any client may write records to their collection."""

from __future__ import annotations

import tempfile
from pathlib import Path

from scrapy_ext.api import compression
from scrapy_ext.api.platform import JobKey, snapshots
from scrapy_ext.api.platform.snapshots import DamagedPartError, Part
from scrapy_ext.commands.text import clock, size
from scrapy_ext.crawl.snapshots.files import write_files
from tests.fuzz.target import target

_JOB = JobKey(1, 2, 3)
_ID = "1700000000000-0a1b2c3d"
_SNAPSHOT = b'{"time":1,"url":"https://a.example/","status":200,"error":"KeyError"'
_PAGE = snapshots.pybase64.b64encode(compression.gzip(b"<p>a page"))
_PNG = snapshots.pybase64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(9))


@target(
    "snapshot-records",
    [
        _SNAPSHOT + b',"format":"html","page":{"bytes":9}}\n{"data":"%b"}' % _PAGE,
        _SNAPSHOT + b',"screenshot":{"bytes":17,"pieces":2}}\n{"data":"%b"}\n{"data":"%b"}' % (_PNG[:8], _PNG[8:]),
        _SNAPSHOT + b',"page":{"bytes":-1,"pieces":99},"format":"/../x"}\n{"data":"====","data":5}',
        b'{"time":1e400,"url":"\\ud800","status":-5,"error":"\\u0000/..","no_page":"none"}\n{"data":"\\u00e9"}',
        b'{"time":99999999999999999999,"url":1,"status":true,"error":null}\n[]',
        _SNAPSHOT + b',"time":253402300799999,"page":{"bytes":1e3}}\n{"data":"H4sIAAAAAAAA/w=="}',
    ],
)
def snapshot_records(data: bytes) -> None:
    """A record is a snapshot that pages and commands can show and write as files, or none."""
    record, *pieces = data.split(b"\n")
    stored = snapshots.stored(_JOB, snapshots.snapshot_key(_JOB, _ID), record)
    if stored is None:
        return
    snapshot = stored.snapshot
    assert len(clock(snapshot.time)) == len("2026-01-31 09:30:00")
    texts = (snapshot.url, snapshot.message, snapshot.error, snapshot.callback, snapshot.format)
    assert len(" ".join(texts).encode()) < 20_000
    parts = {}
    for part in Part:
        assert len(stored.keys_of(part)) <= 13
        if (content := snapshot.content(part)) is None:
            continue
        assert size(content.bytes)
        try:
            parts[part] = snapshots.unpack(part, pieces[: content.pieces])
        except DamagedPartError:
            continue
        assert len(parts[part]) <= max(snapshots.MAX_PAGE, len(data))
    with tempfile.TemporaryDirectory() as folder:
        written = write_files(Path(folder), stored.id, snapshot, parts)
        assert all(path.parent == Path(folder) and path.is_file() for path in written)
