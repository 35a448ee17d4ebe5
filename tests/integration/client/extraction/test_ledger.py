from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from scrapy_ext.client.extraction.budget import Spent
from scrapy_ext.client.extraction.ledger import BUFFER_BYTES, WRITE_BYTES, Ledger, LedgerError, key_of
from scrapy_ext.client.extraction.ledger_entries import LedgerChanges
from scrapy_ext.client.extraction.ledger_file import APPLICATION_ID, LedgerFile
from tests.support.eventually import eventually_async

A, B, C = b"a" * 20, b"b" * 20, b"c" * 20
ANSWER = b'{"url": "https://books.example/"}' * 40
MIB = 2**20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "crawl" / "ledger.db"


def pay(ledger: Ledger, key: bytes, answer: bytes = ANSWER, cost: float = 0.5) -> None:
    ledger.sent(key, cost)
    ledger.answered(key, answer)


async def stopped(ledger: Ledger) -> None:
    await ledger.close(complete=False)


def files(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


# ── a resumed crawl ──


async def test_an_orderly_end_leaves_no_request_that_may_have_been_billed(path):
    first = await Ledger.open(path, hold_time=60)
    first.sent(A, 0.5)
    # The file has it as unanswered from now on.
    await first.flush()
    first.answered(A, ANSWER)
    first._stop_timer()
    first._has_changed = False
    first.finished(A)
    await stopped(first)
    second = await Ledger.open(path)
    assert second.unanswered == 0
    await stopped(second)


async def test_an_answer_that_was_paid_for_is_given_to_the_next_run_once(path):
    first = await Ledger.open(path)
    pay(first, A)
    pay(first, B, b"{}")
    await stopped(first)
    second = await Ledger.open(path)
    assert [await second.stored(key) for key in (A, A, B, C)] == [ANSWER, None, b"{}", None]
    await stopped(second)


async def test_an_answer_that_was_given_and_not_finished_is_there_for_the_run_after(path):
    first = await Ledger.open(path)
    pay(first, A)
    await stopped(first)
    for _ in range(2):
        again = await Ledger.open(path)
        assert await again.stored(A) == ANSWER
        await stopped(again)
    last = await Ledger.open(path)
    assert await last.stored(A) == ANSWER
    last.finished(A)
    await stopped(last)
    after = await Ledger.open(path)
    assert await after.stored(A) is None
    await stopped(after)


async def test_answers_of_this_run_are_not_given_to_it(path):
    ledger = await Ledger.open(path)
    pay(ledger, A)
    await ledger.flush()
    assert await ledger.stored(A) is None
    await stopped(ledger)


async def test_a_finished_answer_is_not_kept_wherever_it_was_when_it_finished(path):
    ledger = await Ledger.open(path)
    pay(ledger, A)
    ledger.finished(A)
    pay(ledger, B)
    await ledger.flush()
    ledger.finished(B)
    pay(ledger, C)
    flushing = asyncio.ensure_future(ledger.flush())
    await asyncio.sleep(0)
    ledger.finished(C)
    await flushing
    await stopped(ledger)
    resumed = await Ledger.open(path)
    assert [await resumed.stored(key) for key in (A, B, C)] == [None, None, None]
    await stopped(resumed)


async def test_the_same_request_again_replaces_its_answer(path):
    ledger = await Ledger.open(path)
    pay(ledger, A, b"first")
    pay(ledger, A, b"second")
    await ledger.flush()
    pay(ledger, A, b"third")
    await stopped(ledger)
    resumed = await Ledger.open(path)
    assert await resumed.stored(A) == b"third"
    assert resumed.spent.requests == 3
    pay(resumed, A, b"fourth")
    await stopped(resumed)
    after = await Ledger.open(path)
    assert await after.stored(A) == b"fourth"
    await stopped(after)


async def test_what_was_spent_is_added_up_over_all_runs(path):
    first = await Ledger.open(path)
    pay(first, A)
    first.finished(A)
    first.sent(B, 2.0)
    first.failed(B, refund=2.0)
    first.sent(B, 2.0)
    first.failed(B)
    await stopped(first)
    second = await Ledger.open(path)
    assert (second.spent.requests, second.spent.cost) == (3, 2.5)
    pay(second, C)
    assert (second.spent.requests, second.spent.cost) == (4, 3.0)
    await stopped(second)


async def test_requests_without_an_answer_are_counted_when_their_run_is_over(path):
    first = await Ledger.open(path)
    pay(first, A)
    first.sent(B, 1.0)
    first.failed(B, refund=1.0)
    first.sent(C, 1.0)
    await stopped(first)
    second = await Ledger.open(path)
    assert second.unanswered == 1
    second.sent(A, 1.0)
    await stopped(second)
    third = await Ledger.open(path)
    assert (third.unanswered, third.spent.cost) == (2, 2.5)
    await stopped(third)


async def test_a_complete_crawl_leaves_no_file(path):
    ledger = await Ledger.open(path)
    pay(ledger, A)
    await ledger.flush()
    pay(ledger, B)
    await ledger.close(complete=True)
    assert files(path) == []
    again = await Ledger.open(path)
    assert again.spent.requests == 0
    await stopped(again)


async def test_calls_after_the_end_do_no_harm(path):
    ledger = await Ledger.open(path)
    pay(ledger, A)
    await stopped(ledger)
    await stopped(ledger)
    pay(ledger, B)
    ledger.finished(A)
    await ledger.flush()
    assert await ledger.stored(B) is None
    resumed = await Ledger.open(path)
    assert await resumed.stored(A) == ANSWER
    await stopped(resumed)


async def test_answers_are_for_their_owner_only(path):
    ledger = await Ledger.open(path)
    pay(ledger, A)
    await ledger.flush()
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    await stopped(ledger)


def test_equal_requests_have_one_key_in_whatever_job_they_run():
    fields = {"url": "https://books.example/", "httpResponseBody": True, "jobId": "1/1/1"}
    again = {"jobId": "1/1/2", "httpResponseBody": True, "url": "https://books.example/"}
    assert key_of(fields) == key_of(again)
    assert key_of(fields) != key_of({**fields, "geolocation": "DE"})


# ── cost ──


async def test_what_is_finished_within_the_interval_is_never_written(path):
    ledger = await Ledger.open(path, flush_interval=3600)
    for number in range(1000):
        key = number.to_bytes(20, "big")
        pay(ledger, key, b"never" * 1000)
        ledger.finished(key)
    await ledger.flush()
    assert b"never" not in on_disk(path)
    await stopped(ledger)
    assert b"never" not in on_disk(path)


async def test_an_answer_is_written_when_it_is_older_than_the_hold_time(path):
    ledger = await Ledger.open(path, flush_interval=0.01, hold_time=3600)
    pay(ledger, A, b"young" * 100)
    pay(ledger, B, b"young" * 100)
    ledger.finished(B)
    await eventually_async(lambda: unanswered_on_disk(path) == 1)
    assert b"young" not in on_disk(path), "a kill now loses the answer, and the next run says so"
    await stopped(ledger)
    assert unanswered_on_disk(path) == 0
    resumed = await Ledger.open(path)
    assert [await resumed.stored(key) for key in (A, B)] == [b"young" * 100, None]
    await stopped(resumed)


async def test_young_answers_are_written_when_they_take_much_memory(path):
    ledger = await Ledger.open(path, hold_time=3600)
    for number in range(WRITE_BYTES // MIB):
        pay(ledger, bytes([number]) * 20, b"large" * (MIB // 5 + 1))
    await eventually_async(lambda: b"large" in on_disk(path))
    await stopped(ledger)


async def test_room_of_finished_answers_is_used_again_and_no_answer_is_lost(path):
    """Answers of many sizes come, are finished and are read again, over several runs."""
    dice = random.Random(5)
    kept: dict[bytes, bytes] = {}
    for run in range(3):
        ledger = await Ledger.open(path)
        assert {key: await ledger.stored(key) for key in kept} == kept
        for number in range(300):
            key = b"%d %d" % (run, number)
            kept[key] = os.urandom(dice.choice((0, 10, 1000, 30_000, 100_000)))
            pay(ledger, key, kept[key])
            while len(kept) > 30:
                finished = dice.choice(list(kept))
                del kept[finished]
                ledger.finished(finished)
            if dice.random() < 0.3:
                await ledger.flush()
        assert len(on_disk(path)) < 10 * MIB, "of 25 MB that came"
        await stopped(ledger)


def test_many_answers_are_written_and_deleted_with_few_statements(path):
    """The thread of the ledger waits for the interpreter's lock after each statement and each row."""
    file = LedgerFile(path, 100 * MIB)
    opened = file.open()
    assert opened.keys == set()
    statements: list[str] = []
    assert file._connection is not None
    file._connection.set_trace_callback(statements.append)
    answers = {b"%d" % number: b"%d" % number * 1000 for number in range(1500)}
    file.write(LedgerChanges(answers, 1500, 1.0, 0))
    file.write(LedgerChanges({b"0": b"new", b"a": b"other"}, 1502, 1.0, 0, [*answers][:1000]))
    assert len(statements) < 60
    assert [file.read(key) for key in (b"0", b"1", b"a", b"1234")] == [b"new", None, b"other", b"1234" * 1000]
    file.close(remove=True)


def unanswered_on_disk(path: Path) -> int:
    """Return the requests without an answer, as a process would read them after a kill."""
    with TemporaryDirectory() as folder:
        for file in path.parent.iterdir():
            shutil.copy(file, folder)
        with closing(sqlite3.connect(Path(folder, path.name))) as connection:
            (found,) = connection.execute("SELECT in_flight FROM totals").fetchone()
            return int(found)


async def test_what_is_not_finished_is_written_after_the_interval(path):
    ledger = await Ledger.open(path, flush_interval=0.01)
    pay(ledger, A, b"written" * 100)
    await eventually_async(lambda: b"written" in on_disk(path))
    await stopped(ledger)


# ── bounds ──


async def test_the_oldest_answers_go_when_there_are_too_many(path):
    first = await Ledger.open(path, max_bytes=MIB)
    keys = [number.to_bytes(20, "big") for number in range(20)]
    for key in keys:
        pay(first, key, key * 5000)
        await first.flush()
    assert first.dropped == 10
    await stopped(first)
    second = await Ledger.open(path, max_bytes=MIB)
    stored = [await second.stored(key) for key in keys]
    assert stored == [None] * 10 + [key * 5000 for key in keys[10:]]
    await stopped(second)
    smaller = await Ledger.open(path, max_bytes=MIB // 2)
    assert [key for key in keys if await smaller.stored(key)] == keys[-5:]
    await stopped(smaller)


async def test_an_answer_larger_than_the_whole_ledger_is_not_kept_and_drives_no_other_out(path):
    ledger = await Ledger.open(path, max_bytes=MIB)
    pay(ledger, A)
    pay(ledger, B, b"x" * MIB)
    await stopped(ledger)
    assert ledger.dropped == 1
    resumed = await Ledger.open(path)
    assert [await resumed.stored(key) for key in (A, B)] == [ANSWER, None]
    await stopped(resumed)


async def test_small_answers_are_bounded_too(path):
    ledger = await Ledger.open(path, max_bytes=MIB)
    for number in range(20_000):
        pay(ledger, number.to_bytes(20, "big"), b"{}")
    await stopped(ledger)
    assert ledger.dropped > 10_000


async def test_the_file_does_not_grow_with_the_length_of_the_crawl(path):
    ledger = await Ledger.open(path, max_bytes=4 * MIB)
    sizes = []
    for turn in range(30):
        keys = [bytes([turn, number]) * 10 for number in range(20)]
        for key in keys:
            pay(ledger, key, os.urandom(100_000))
        await ledger.flush()
        for key in keys:
            ledger.finished(key)
        sizes.append(len(on_disk(path)))
    await stopped(ledger)
    assert max(sizes[10:]) <= max(sizes[:10]) + MIB, "except for the log of the database"
    assert len(on_disk(path)) < MIB, "free room is given back"
    assert ledger.dropped == 0


async def test_answers_that_come_faster_than_the_disk_takes_them_are_not_held_in_memory(path):
    ledger = await Ledger.open(path)
    answer = b"x" * MIB
    # Nothing is awaited: the first 2 MiB are being written all the while.
    for number in range(100):
        pay(ledger, bytes([number]) * 20, answer)
    assert ledger.dropped == 100 - (WRITE_BYTES + BUFFER_BYTES) // MIB
    await ledger.flush()
    pay(ledger, A)
    await stopped(ledger)
    resumed = await Ledger.open(path)
    assert await resumed.stored(A) == ANSWER, "and when it has caught up, they are kept again"
    await stopped(resumed)


# ── files that must not be used ──


@pytest.mark.parametrize(
    "content", [b"not a ledger\n" * 1000, b"a note", bytes(100_000)], ids=["text", "note", "zeros"]
)
async def test_a_file_that_is_no_ledger_is_reported_and_left_as_it_is(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=rf"{path}.* Delete it: at worst, answers are paid for twice"):
        await Ledger.open(path)
    assert path.read_bytes() == content
    assert files(path) == [path.name]


async def test_a_database_of_something_else_is_reported_and_left_as_it_is(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE precious (value)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(LedgerError, match=rf"{path} is a database of something else.* Delete it, or move"):
        await Ledger.open(path)
    assert path.read_bytes() == content


async def test_a_ledger_of_another_version_is_reported(path):
    await stopped(await Ledger.open(path))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(LedgerError, match=rf"{path} is a ledger of format 7, and .* format 2\. .*delete"):
        await Ledger.open(path)


async def test_a_ledger_of_format_1_keeps_its_totals_and_loses_its_answers_with_a_warning(path, caplog):
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        for statement in (
            "CREATE TABLE totals (requests INTEGER NOT NULL, cost REAL NOT NULL, in_flight INTEGER NOT NULL, "
            "unanswered INTEGER NOT NULL, stored_bytes INTEGER NOT NULL)",
            "INSERT INTO totals VALUES (7, 3.5, 2, 1, 1312)",
            "CREATE TABLE answers (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, "
            "checksum INTEGER NOT NULL, answer BLOB NOT NULL)",
            "INSERT INTO answers (key, size, checksum, answer) VALUES (x'61', 1, 0, x'62')",
            f"PRAGMA application_id = {APPLICATION_ID}",
            "PRAGMA user_version = 1",
        ):
            connection.execute(statement)
    connection.close()
    ledger = await Ledger.open(path)
    assert "is of an earlier version: its answers are not used" in caplog.text
    assert (ledger.spent, ledger.unanswered) == (Spent(7, 3.5), 3)
    assert await ledger.stored(b"a") is None
    pay(ledger, A)
    await stopped(ledger)
    caplog.clear()
    again = await Ledger.open(path)
    assert (again.spent, await again.stored(A), caplog.text) == (Spent(8, 4.0), ANSWER, "")
    await stopped(again)


async def test_a_ledger_without_its_tables_is_reported(path):
    await stopped(await Ledger.open(path))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM totals")
    connection.close()
    with pytest.raises(LedgerError, match=r"is damaged .*Delete it: at worst"):
        await Ledger.open(path)


async def what_is_given(path: Path, answers: dict[bytes, bytes]) -> str:
    try:
        ledger = await Ledger.open(path)
    except LedgerError:
        return "refused"
    given = {key: answer for key in answers if (answer := await ledger.stored(key)) is not None}
    assert given.items() <= answers.items()
    await ledger.close(complete=True)
    return "all" if given == answers else "some"


async def test_no_damage_makes_an_answer_wrong(path):
    ledger = await Ledger.open(path)
    answers = {bytes([number]) * 20: os.urandom(5000 * number) for number in range(1, 10)}
    for key, answer in answers.items():
        pay(ledger, key, answer)
    await stopped(ledger)
    whole = {file: file.read_bytes() for file in path.parent.iterdir()}
    dice = random.Random(7)
    outcomes = {file.name: set() for file in whole}
    for file, content in whole.items():
        damaged = [content[: dice.randrange(1, len(content))] for _ in range(10)]
        for _ in range(40):
            at = dice.randrange(len(content))
            another = bytes([content[at] ^ dice.randrange(1, 256)])
            more = dice.randbytes(dice.choice((0, 99, 19_999)))
            damaged.append(content[:at] + another + more + content[at + 1 :])
        for changed in damaged:
            for other, kept in whole.items():
                other.write_bytes(changed if other == file else kept)
            outcomes[file.name].add(await what_is_given(path, answers))
    assert outcomes == {"ledger.db": {"refused", "all", "some"}, "ledger.db-answers": {"some"}}


# ── places that cannot be written ──


@pytest.mark.parametrize("place", ["a file", "a folder"])
async def test_without_a_place_to_write_the_crawl_goes_on_with_one_warning(tmp_path, caplog, place):
    path = tmp_path / "ledger.db"
    if place == "a folder":
        path.mkdir()
    else:
        path.write_bytes(b"")
        path = path / "ledger.db"
    with caplog.at_level(logging.WARNING):
        ledger = await Ledger.open(path)
        assert ledger.error is not None
        pay(ledger, A)
        assert await ledger.stored(A) is None
        ledger.finished(A)
        await ledger.flush()
        await ledger.close(complete=True)
    assert ledger.spent.requests == 1, "what this run spends is counted all the same"
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    assert "The crawl goes on without it" in caplog.text


FULL_DISK = """
import asyncio, logging, resource, sys
from pathlib import Path
from scrapy_ext.client.extraction.ledger import Ledger

async def main():
    logging.basicConfig(format="%(levelname)s")
    ledger = await Ledger.open(Path(sys.argv[1]))
    ledger.sent(b"first", 1.0)
    ledger.answered(b"first", b"was there before")
    await ledger.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
    for number in range(50):
        ledger.sent(b"%d" % number, 1.0)
        ledger.answered(b"%d" % number, bytes(100_000))
        await ledger.flush()
    print(ledger.error is not None, ledger.spent.requests)
    await ledger.close(complete=False)

asyncio.run(main())
"""


async def test_a_full_disk_switches_the_ledger_off_and_leaves_what_it_had(path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("True 51\n", "WARNING\n")
    resumed = await Ledger.open(path)
    assert await resumed.stored(b"first") == b"was there before"
    await stopped(resumed)


# ── processes ──

CRAWL = """
import asyncio, os, sys
from pathlib import Path
from scrapy_ext.client.extraction.ledger import Ledger

async def main():
    ledger = await Ledger.open(Path(sys.argv[1]), flush_interval=0.001)
    print("opened", flush=True)
    number = 0
    while True:
        number += 1
        for name in (b"kept", b"done"):
            key = b"%s %s %d" % (sys.argv[2].encode(), name, number)
            ledger.sent(key, 0.5)
            ledger.answered(key, key * 5000)
        await asyncio.sleep(0.002 if number % 2 else 0)
        ledger.finished(key)
        if number % 10 == 0:
            await ledger.flush()
            print(number, flush=True)

asyncio.run(main())
"""


@contextmanager
def crawl(path: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CRAWL, str(path), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "opened\n"
        yield process
        os.kill(process.pid, signal.SIGKILL)


async def test_after_sigkill_at_any_moment_what_was_flushed_is_there(path):
    dice = random.Random(3)
    spent = 0
    for run in range(5):
        name = f"run{run}"
        with crawl(path, name) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(dice.randrange(1, 6))]
        flushed = int(lines[-1])
        spent += 2 * flushed
        ledger = await Ledger.open(path)
        for number in range(1, flushed + 1):
            kept, done = (f"{name} {kind} {number}".encode() for kind in ("kept", "done"))
            assert await ledger.stored(kept) == kept * 5000
            assert await ledger.stored(done) is None
            ledger.finished(kept)
        assert ledger.spent.requests >= spent
        assert ledger.spent.cost == ledger.spent.requests * 0.5
        spent = ledger.spent.requests
        await stopped(ledger)


async def test_two_crawls_cannot_use_one_ledger(path):
    message = rf"{path} is in use: another crawl .*Wait until it ends, or give this crawl another path"
    with crawl(path, "first"), pytest.raises(LedgerError, match=message):
        await Ledger.open(path)
    ledger = await Ledger.open(path)
    with pytest.raises(LedgerError, match="is in use"):
        await Ledger.open(path)
    pay(ledger, A)
    await stopped(ledger)
    resumed = await Ledger.open(path)
    assert await resumed.stored(A) == ANSWER
    await stopped(resumed)
