"""The log of an SQLite database is written back beside the commits."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from scrapy_ext.server.store import Store, sqlite_checkpoints
from scrapy_ext.server.store.frontier import QueuedRequest, Slot

SLOT = Slot(1, "f", "0")


def in_database_alone(path: Path) -> int:
    """The batches that the file has without its log."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        return int(database.execute("SELECT coalesce(max(batch), 0) FROM frontier_batches").fetchone()[0])


async def test_commits_go_on_while_the_log_is_written_back_and_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "_PAGES", 20)
    store = await Store.open(tmp_path)
    log, longest, number, anew = tmp_path / "platform.db-shm", 0, 0, 0

    async def write() -> int:
        nonlocal number
        number += 100
        requests = [QueuedRequest(b"%d" % n, b'["%d",0]' % n, None, 0) for n in range(number - 100, number)]
        assert await store.frontier.add(SLOT, requests) == 100
        return int.from_bytes(log.read_bytes()[16:20], sys.byteorder)

    async with asyncio.timeout(60):
        while anew < 3:
            length = await write()
            anew, longest = anew + (length < longest), 0 if length < longest else length
    batches = await asyncio.to_thread(in_database_alone, tmp_path / "platform.db")
    assert 0 < batches <= number // 100
    assert (await store.frontier.count(SLOT)).count == number
    await store.close()
    assert in_database_alone(tmp_path / "platform.db") == number // 100
