"""A database that cannot be used: what is said at the start, and at the call that meets it."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scrapy_ext.server.logs import Repeats
from scrapy_ext.server.store.engine.errors import StoreFullError
from scrapy_ext.server.store.engine.sqlite.file import translated
from tests.support.http import Http
from tests.support.servers import RunningServer, command, without_keys

_BOUNDING_DROP = 24
#: What lets root pass over the modes of files: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_PASS_OVER_MODES = (1, 2)


def obey_modes() -> None:
    """Let the modes of files hold for root too."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in _PASS_OVER_MODES:
            if libc.prctl(_BOUNDING_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


def failed_start(data: Path, prepare: Callable[[], None] | None = None) -> str:
    done = subprocess.run(
        command("--port", "0", "--data", str(data)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        env={**without_keys(), "EXTRACT_API_KEY": "a", "PLATFORM_API_KEY": "b"},
        check=False,
        preexec_fn=prepare,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A data directory that a server has used."""
    data = tmp_path / "data"
    with RunningServer(data):
        pass
    return data


@pytest.mark.long
def test_a_directory_that_may_not_be_written_is_named(used: Path) -> None:
    (used / "platform.db").chmod(0o400)
    used.chmod(0o500)
    try:
        text = failed_start(used, obey_modes)
    finally:
        used.chmod(0o700)
    assert str(used / "platform.db") in text
    assert "Check the permissions" in text


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "platform.db") as database:
        database.execute("CREATE TABLE items (mine TEXT)")
        database.execute("CREATE TABLE jobs (mine TEXT)")
        database.execute("INSERT INTO items VALUES ('kept')")
    database.close()
    text = failed_start(tmp_path)
    assert "of another program" in text
    with sqlite3.connect(tmp_path / "platform.db") as database:
        assert database.execute("SELECT mine FROM items").fetchall() == [("kept",)]
        assert database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (2,)
    database.close()


@pytest.mark.long
def test_a_truncated_database_is_named(used: Path) -> None:
    size = (used / "platform.db").stat().st_size
    os.truncate(used / "platform.db", size // 3)
    text = failed_start(used)
    assert str(used / "platform.db") in text
    assert "backup" in text


@pytest.mark.long
async def test_damage_in_the_data_is_an_error_for_its_readers_and_the_rest_is_served(used: Path) -> None:
    with RunningServer(used) as server:
        async with Http(server.url, server.platform_key) as http:
            records = [{"_key": f"{number:05}", "value": "v" * 500} for number in range(2000)]
            assert (await http.post("/collections/1/s/large", records)).status == 200
            assert (await http.post("/items/1/1/1", [{"a": 1}])).status == 200
    _damage(used / "platform.db", "collection_records")
    with RunningServer(used) as server:
        async with Http(server.url, server.platform_key) as http:
            answer = await http.get("/collections/1/s/large/01000")
            assert answer.status == 500
            assert "damaged" in answer.json["message"]
            assert "backup" in answer.json["message"]
            assert (await http.get("/items/1/1/1")).lines == [{"a": 1}]
            assert (await http.post("/items/1/1/1?start=1", [{"a": 2}])).status == 200
        assert "damaged" in server.log()


def _damage(path: Path, table: str) -> None:
    """Write zeros over the root page of a table."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\0" * size)


@pytest.mark.long
async def test_a_full_disk_is_logged_once_and_not_for_each_write(tmp_path: Path) -> None:
    with RunningServer(tmp_path, file_limit=2_000_000) as server:
        async with Http(server.url, server.platform_key) as http:
            statuses = [(await http.post("/items/1/1/1", [{"a": os.urandom(400_000).hex()}])).status for _ in range(12)]
        log = server.log()
    assert statuses.count(507) > 5
    assert log.count("cannot be written") == 1
    assert log.count(" 507 ") == 1


def test_one_of_the_lines_to_come_has_the_number_of_those_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("scrapy_ext.server.logs.time.monotonic", lambda: now[0])
    repeats = Repeats()
    assert [repeats.due() for _ in range(5)] == [1, 0, 0, 0, 0]
    now[0] = 61.0
    assert [repeats.due(), repeats.due()] == [5, 0]


def test_a_disk_that_was_made_read_only_is_for_clients_as_one_that_is_full(tmp_path: Path) -> None:
    path = tmp_path / "platform.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE a (b)")
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database,
        pytest.raises(sqlite3.OperationalError) as caught,
    ):
        database.execute("INSERT INTO a VALUES (1)")
    error = translated(caught.value, path)
    assert isinstance(error, StoreFullError)  # 507
    assert "Check the permissions of the data directory" in str(error)
