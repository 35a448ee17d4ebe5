"""The log of an SQLite database is written back beside the commits."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.sqlite import checkpoints as sqlite_checkpoints
from scrapy_ext.server.store.engine.sqlite import sqlite
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot

SLOT = Slot(1, "f", "0")

#: Says whether another process has the file beside the database open: by the lock that SQLite holds as long, without
#: which it begins that file anew, under whoever uses it (UNIX_SHM_DMS in SQLite's os_unix.c).
IN_USE = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
    except OSError:
        print("in use")
"""


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

    async with timeout_after(60):
        while anew < 3:
            length = await write()
            anew, longest = anew + (length < longest), 0 if length < longest else length
    batches = await asyncio.to_thread(in_database_alone, tmp_path / "platform.db")
    assert 0 < batches <= number // 100
    assert (await store.frontier.count(SLOT)).count == number
    await store.close()
    assert in_database_alone(tmp_path / "platform.db") == number // 100


@pytest.mark.long
async def test_the_log_of_a_small_database_stays_short_and_is_emptied_at_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "_REST", 0.3)
    store = await Store.open(tmp_path)
    log, longest = tmp_path / "platform.db-wal", 0
    async with timeout_after(120):
        for number in range(1500):  # three pages and more each
            await store.frontier.add(SLOT, [QueuedRequest(b"%d" % number, b'["",0]', None, 0)])
            if number % 10 == 0:
                await store.frontier.read(SLOT, 1)
            longest = max(longest, log.stat().st_size)
        # The log is written back from a thousand pages on, during further commits.
        assert 1_000_000 < longest < 16_000_000
        while log.stat().st_size:
            await asyncio.sleep(0.05)
        # It is emptied as often as it gets long.
        blob = [QueuedRequest(b"x%d" % n, b'["%s",0]' % (b"y" * 2000), None, 0) for n in range(1000)]
        await store.frontier.add(SLOT, blob)
        assert log.stat().st_size > 1_000_000
        while log.stat().st_size:
            await asyncio.sleep(0.05)
    assert (await store.frontier.count(SLOT)).count > 1000
    await store.close()


async def test_the_log_is_emptied_at_rest_although_a_node_stores_its_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "_REST", 0.5)
    store = await Store.open(tmp_path)
    log = tmp_path / "platform.db-wal"
    blob = [QueuedRequest(b"%d" % n, b'["%s",0]' % (b"y" * 2000), None, 0) for n in range(1000)]
    await store.frontier.add(SLOT, blob)
    assert log.stat().st_size > 1_000_000
    async with timeout_after(60):
        # What a heartbeat writes is left in the log.
        while log.stat().st_size > 1_000_000:
            await store.projects.merge(1, {"heartbeat": b"1"})
            await asyncio.sleep(0.1)
    assert (await store.frontier.count(SLOT)).count == 1000
    await store.close()


def is_in_use(data: Path) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", IN_USE, str(data / "platform.db-shm")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout == "in use\n"


async def test_another_process_knows_that_the_file_is_in_use_after_any_number_of_commits(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    for number in range(3):
        assert await store.frontier.add(SLOT, [QueuedRequest(b"%d" % number, b'["",0]', None, 0)]) == 1
        await store.frontier.read(SLOT, 1)
        assert await asyncio.to_thread(is_in_use, tmp_path)
    await store.close()


class _SlowConnection:
    """Writing the log back takes so long that the store is closed meanwhile."""

    def __init__(self, connection: sqlite3.Connection, begun: asyncio.Event) -> None:
        self._connection = connection
        self._begun = begun
        self._loop = asyncio.get_running_loop()

    def execute(self, sql: str) -> sqlite3.Cursor:
        self._loop.call_soon_threadsafe(self._begun.set)
        time.sleep(0.5)
        return self._connection.execute(sql)

    def close(self) -> None:
        self._connection.close()


async def test_a_store_is_closed_while_its_log_is_written_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    def slow(path: Path, connection: sqlite3.Connection) -> sqlite_checkpoints.Checkpoints:
        return sqlite_checkpoints.Checkpoints(path, cast(sqlite3.Connection, _SlowConnection(connection, begun)))

    monkeypatch.setattr(sqlite_checkpoints, "_PAGES", 1)
    monkeypatch.setattr(sqlite, "Checkpoints", slow)
    store = await Store.open(tmp_path)
    async with timeout_after(60):
        await begun.wait()
        await store.close()
