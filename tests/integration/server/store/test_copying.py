"""Backup, restore and migration: everything arrives, whatever is going on, or an error reports that it did not."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ext.api.platform.alerts import NewTarget
from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.deliveries import rule_of as delivery_rule
from scrapy_ext.api.platform.feeding import Feed
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.periodic import PeriodicJob, Task
from scrapy_ext.api.platform.retention import rule_of
from scrapy_ext.api.platform.users import Role, UserChange
from scrapy_ext.api.platform.versions import SpiderInfo
from scrapy_ext.api.platform.webhooks import NewWebhook
from scrapy_ext.commands.platform import SUBCOMMANDS, load, parser_of
from scrapy_ext.server.store import Store, StoreError, copying
from scrapy_ext.server.store.collections.collections import Collection
from scrapy_ext.server.store.comments import CommentSubject
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.engine.opening import FILE, open_engine
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.keys import StoredKey
from scrapy_ext.server.store.records.chunks import ITEMS, LOGS
from scrapy_ext.server.store.records.records import Span
from scrapy_ext.server.store.users import Account
from scrapy_ext.server.store.versions import NewVersion
from tests.support.eventually import eventually_async
from tests.support.packing import pack_chunk
from tests.support.postgresql import Cluster
from tests.support.stores import ENGINES, Where, emptied


async def run(name: str, *arguments: str, settings: dict[str, str] | None = None) -> int:
    """A subcommand, as Scrapy runs it."""
    chosen = load(name)
    parser = parser_of(chosen)
    options = parser.parse_args([*arguments])
    return await asyncio.to_thread(chosen.run, Settings(settings or {}), options)


def place(where: Where) -> list[str]:
    return ["--database", where.secret] if isinstance(where, DatabaseUrl) else ["--data", str(where)]


def migration(source: Where, target: Path) -> list[str]:
    return ["migrate", "--from", getattr(source, "secret", str(source)), "--to", str(target)]


def schedule(project: int) -> PeriodicJob:
    return PeriodicJob(
        id=0,
        project=project,
        disabled=False,
        type="spider",
        description="ü",
        cron="1 2 * * *",
        addtags=[],
        tasks=[Task(name="s", jobq_id=0)],
    )


async def fill(store: Store) -> None:
    """Rows in every table, odd ones among them."""
    for project in (1, 2**31):
        await store.webhooks.add(project, NewWebhook(url="http://ü/", events=["*"]), secret="whsec_")
        job = NewJob("s\0é", JobState.RUNNING, {"tags": ["a", "ü"]}, "k")
        (key,) = await store.jobs.add(project, [job], "x")
        records = [{"n": n, "field\0": None} for n in range(250)]
        for turn in range(3):
            lines = [b'{"n":%d,"field\\u0000":null}' % n for n in range(250)]
            await store.items.write(key, turn * 250, [pack_chunk(ITEMS, lines, records)])
        for kind in CollectionType:
            which = Collection(project, kind, "c")
            for turn in range(2):
                await store.collections.write(which, [(b"\x00%d" % n, b"%d" % turn) for n in range(30)])
        requests = [
            QueuedRequest(b"\xc3\xbf%d" % n, b'["x",%d]' % n, b"1" if n % 2 else None, n % 3) for n in range(500)
        ]
        await store.frontier.add(Slot(project, "f", "0"), requests)
        await store.feeds.declare(project, "f", Feed(slots=1))
        await store.frontier.read(Slot(project, "f", "0"), 100)
        await store.activity.add(project, [b'{"event":"x"}'])
        await store.comments.add(CommentSubject(key.entity(3), "n"), "a\0", "ü")
        await store.periodic.add(schedule(project))
        await store.projects.merge(project, {"ü": b"[1]"})
        await store.projects.name(project, f"bücher {project}")
    await store.nodes.join(StoredNode("n", "h", 6, frozenset({"t"}), 1, 1, 1, draining=False))
    await store.jobs.add(1, [NewJob("s", JobState.PENDING, {})], "x")
    assert await store.attempts.place()
    (job,) = await store.jobs.add(1, [NewJob("d", JobState.FINISHED, {})], "x")
    assert await store.jobs.delete(1, [job], "x") == 1
    await store.retention.add(1, rule_of({"what": ["items"], "older_than": 1}))
    deploy = await store.versions.begin(1, NewVersion("é", "egg", "", 2, "f", "ü\n"), "x")
    await store.versions.put(1, deploy, 0, b"\x00\xff")
    await store.versions.arrived(1, deploy)
    await store.versions.ready(1, deploy, [SpiderInfo("sé")])
    large = Collection(1, CollectionType.STORE, "large")  # more than a page
    await store.collections.write(large, [(b"%02d" % n, b"x" * 900_000) for n in range(10)])
    await store.collections.write(gone := Collection(1, CollectionType.STORE, "gone"), [(b"k", b"1")])
    await store.collections.drop(1, gone.name)
    await store.purge()
    await store.collections.drop(1, "c")  # not purged: its rows do not move
    await store._engine.write(_pack)
    await store.deliveries.add(1, delivery_rule({"target": "s3://bucket"}))
    await store._engine.write(_deliver)
    await store._engine.write(_monitor)
    await store._engine.write(_group)
    await store.alerts.add(1, NewTarget("ü", "json://host/token"))
    await store.keys.keep("secret", "value")
    await store.keys.add(StoredKey("k", "hash", frozenset({1, 2}), may_write=False))
    user = await store.users.log_in(Account("https://login.example", "1", "Ada", "", ("ops",)))
    await store.users.change(user.number, UserChange(None, {None: Role.VIEW, 7: Role.RUN}), "api")


async def _deliver(tx: Transaction) -> None:
    """A delivery that is complete."""
    await tx.execute(
        """INSERT INTO deliveries (project, spider, job, kind, delivery, rule, folder, object, revision, records, size,
                                   sha256, manifest, finished)
           VALUES (1, 1, 1, 'items', 'd', 1, 's3://bucket/1', 'items.jsonl.gz', 1, 1, 1, 'a', 'b', 1)"""
    )


async def _monitor(tx: Transaction) -> None:
    """A result, a verdict, a job that waits, a run that is expected, an incident, and a message about it."""
    for statement in (
        "monitor_queue (project, kind, subject, part, ts, due, detail) VALUES (1, 'run', 1, 2, 3, 4, $1)",
        """monitor_results (project, spider, job, of_server, rule, finished, checked, outcome, result)
           VALUES (1, 1, 1, 0, 1, 1, 1, 'failed', $1)""",
        """job_verdicts (project, spider, job, finished, verdict, arguments, close_reason, items, error_lines, reasons,
                         errors)
           VALUES (1, 1, 1, 1, 3, '', 'failed', 1, 1, $1, $1)""",
        "spider_health (project, spider, verdict, finished, health) VALUES (1, 1, 3, 1, $1)",
    ):
        await tx.execute(f"INSERT INTO {statement}", b'{"x":1}')
    for statement in (
        "monitor_expected (project, rule, every, since) VALUES (1, 1, 1, 1)",
        """monitor_incidents (project, spider, of_server, rule, arguments, name, since, last, jobs, sentence)
           VALUES (1, 's', 0, 1, '', 'ü', 1, 1, 1, 'x')""",
        "alert_groups (project, spider, due) VALUES (1, 's', 1)",
        """alert_messages (project, target, number, kind, title, body, created, due)
           VALUES (1, 1, 1, 'alert', 'a', 'b', 1, NULL)""",
    ):
        await tx.execute(f"INSERT INTO {statement}")


async def _group(tx: Transaction) -> None:
    """A job of two workers."""
    for statement in (
        "worker_groups (project, spider, job, least, most, target, changed) VALUES (1, 1, 1, 1, 2, 2, 1)",
        """record_streams (project, kind, spider, job, writer, start, place, records)
           VALUES (1, 'items', 1, 1, 2, 0, 750, 1)""",
        "group_domains (project, spider, job, domain) VALUES (1, 1, 1, 'bücher.example')",
        "group_shares (project, spider, job, name, attempt, amount) VALUES (1, 1, 1, 'budget:cost', 2, 5)",
    ):
        await tx.execute(f"INSERT INTO {statement}")


async def _pack(tx: Transaction) -> None:
    """Fingerprints of runs of an earlier version, and a long one."""
    await tx.execute("INSERT INTO frontier_fingerprints (project, slot, run, fp) VALUES (1, 1, 9, $1)", b"c")
    await tx.execute(
        """INSERT INTO frontier_fingerprint_blocks (project, slot, run, first, fps, fdata)
           VALUES (1, 1, 9, $1, $2, NULL)""",
        b"a",
        b"\xffa\xffb\xff",
    )
    await tx.execute(
        "INSERT INTO frontier_long_fingerprints (project, slot, beginning, hash, fp) VALUES (1, 1, $1, $2, $3)",
        b"x" * 512,
        b"\0" * 32,
        b"x" * 600,
    )


async def contents(where: Where) -> dict[str, copying.Digest]:
    engine = await open_engine(where)
    try:
        async with engine.snapshot() as snapshot:
            return {table.name: await copying._digest(snapshot, table, lambda *_: None) for table in copying.tables()}
    finally:
        await engine.close()


@pytest.fixture
async def filled(store: Store, where: Where) -> Where:
    await fill(store)
    return where


@pytest.fixture
async def other(where: Where, postgresql: Cluster, tmp_path: Path) -> Where:
    """An empty store on the other engine."""
    if isinstance(where, DatabaseUrl):
        return tmp_path / "other"
    url = DatabaseUrl(postgresql.database())
    await (await Store.open(url)).close()
    return await emptied(url)


async def test_everything_goes_into_a_file_and_out_of_it_onto_the_other_engine_and_back(
    filled: Where, other: Where, tmp_path: Path, capsys: Any
) -> None:
    before = await contents(filled)
    assert not [name for name, digest in before.items() if not digest.rows]
    file = tmp_path / "backup.db"
    assert await run("backup", *place(filled), str(file)) == 0
    assert "verified" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.part*"))
    assert await run("restore", *place(other), str(file)) == 0
    assert await contents(other) == before
    last = tmp_path / "last"
    source = other.secret if isinstance(other, DatabaseUrl) else str(other)
    assert await run("migrate", "--from", source, "--to", str(last)) == 0
    assert await contents(last) == before
    store = await Store.open(other)
    key = JobKey(2**31, 1, 1)
    assert (await store.items.stats(key)).counts == {"n": 750, "field\0": 750}
    assert await store.jobs.add(2**31, [NewJob("s\0é", JobState.PENDING, {})], "x") == [JobKey(2**31, 1, 2)]
    await store.close()


@pytest.mark.long(keep=1)
async def test_existing_data_is_deleted_only_on_request(filled: Where, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "backup.db"
    assert await run("backup", *place(filled), str(file)) == 0
    assert await run("backup", *place(filled), str(file)) == 1
    assert "--replace" in capsys.readouterr().err
    before = await contents(filled)
    assert await run("restore", *place(filled), str(file)) == 1
    assert "--replace" in capsys.readouterr().err
    assert await contents(filled) == before
    store = await Store.open(filled)
    await store.keys.keep("another", "value")
    await store.close()
    assert await run("restore", *place(filled), "--replace", str(file)) == 0
    assert await contents(filled) == before


async def test_a_backup_of_a_store_in_use_is_of_one_moment(store: Store, where: Where, tmp_path: Path) -> None:
    key, done = JobKey(1, 1, 1), asyncio.Event()

    async def write() -> None:
        while not done.is_set():
            await store.items.write(key, None, [pack_chunk(ITEMS, [b'{"a":1}'], [{"a": 1}])])

    writing = asyncio.create_task(write())
    await eventually_async(lambda: store.items.stats(key), lambda value: value.totals.input_values >= 20)
    assert await run("backup", *place(where), str(tmp_path / "b.db")) == 0
    done.set()
    await writing
    with closing(sqlite3.connect(tmp_path / "b.db")) as database:
        totals = database.execute("SELECT records FROM record_totals").fetchone()[0]
        chunks = database.execute("SELECT sum(records), max(start + records) FROM record_chunks").fetchone()
        counted = database.execute("SELECT occurrences FROM record_counts").fetchone()[0]
    assert chunks == (totals, totals)
    assert counted == totals >= 20
    assert (await store.items.stats(key)).totals.input_values >= totals


@pytest.mark.long
async def test_a_copy_that_ends_early_is_not_opened_until_it_is_repeated(
    filled: Where, other: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = tmp_path / "backup.db"
    assert await run("backup", *place(filled), str(file)) == 0
    put = copying._put

    async def fail(tx: Any, table: copying.Table, rows: Any) -> None:
        if table.name == "record_chunks":
            raise StoreError("the disk is full")
        await put(tx, table, rows)

    monkeypatch.setattr(copying, "_put", fail)
    assert await run("backup", *place(filled), str(tmp_path / "second.db")) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["backup.db"]
    words = ["restore", f"--database={other.secret}" if isinstance(other, DatabaseUrl) else "--fresh", str(file)]
    monkeypatch.setattr(sys, "argv", ["/bin/scrapy", *words])
    capsys.readouterr()
    assert await run("restore", *place(other), str(file)) == 1
    message = capsys.readouterr().err.splitlines()
    shown = f"--database={other}" if isinstance(other, DatabaseUrl) else "--fresh"
    assert message[:2] == [
        "The store is incomplete, and no server opens it. Start over with:",
        f"  scrapy platform restore {shown} {file} --replace",
    ]
    assert "the disk is full" in message[2]
    monkeypatch.undo()
    with pytest.raises(StoreError, match=r"not whole.*--replace"):
        await Store.open(other)
    # Nor is it copied: a copy of it would look whole.
    for words in (["backup", *place(other), str(tmp_path / "half.db")], migration(other, tmp_path / "half")):
        assert await run(*words) == 1
        assert f"{other} is not whole" in capsys.readouterr().err
    assert not (tmp_path / "half.db").exists()
    assert await run("restore", *place(other), str(file)) == 1
    assert "has not ended" in capsys.readouterr().err
    assert await run("restore", *place(other), "--replace", str(file)) == 0
    assert await contents(other) == await contents(filled)
    await (await Store.open(other)).close()


async def test_a_copy_that_differs_is_reported(
    filled: Where, other: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    put = copying._put

    async def lose(tx: Any, table: copying.Table, rows: Any) -> None:
        await put(tx, table, rows[:-1] if table.name == "activity" else rows)

    monkeypatch.setattr(copying, "_put", lose)
    assert await run("backup", *place(filled), str(tmp_path / "backup.db")) == 1
    assert "activity has 10 rows after copying 11" in capsys.readouterr().err
    assert not (tmp_path / "backup.db").exists()


async def test_files_that_are_no_backups_are_refused(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "text").write_text("not a database " * 1000)
    for name, said in (("text", "not a backup"), ("nothing", "does not exist")):
        assert await run("restore", "--data", str(tmp_path / "data"), str(tmp_path / name)) == 1
        assert said in capsys.readouterr().err
    assert await run("backup", "--data", str(tmp_path / "none"), str(tmp_path / "b.db")) == 1
    assert "no store" in capsys.readouterr().err
    assert await run("migrate", "--from", "postgresql", "--to", str(tmp_path / "x")) == 1
    assert "SERVER_DATABASE" in capsys.readouterr().err


async def test_nothing_is_not_copied(where: Where, tmp_path: Path, capsys: Any) -> None:
    for words in (["backup", *place(where), str(tmp_path / "b.db")], migration(where, tmp_path / "x")):
        assert await run(*words) == 1
        assert "There is no" in capsys.readouterr().err
    await (await Store.open(where)).close()
    assert await run("backup", *place(where), str(tmp_path / "b.db")) == 1
    assert f"There is no data in {where}" in capsys.readouterr().err
    assert not (tmp_path / "b.db").exists()


async def test_a_backup_says_what_it_has_and_of_which_store(
    store: Store, where: Where, tmp_path: Path, capsys: Any
) -> None:
    await fill(store)
    file = tmp_path / "b.db"
    assert await run("backup", *place(where), str(file)) == 0
    message = capsys.readouterr().out
    assert message.startswith(f"{file}: 3 jobs, 1500 items, ")
    assert message.endswith(" rows in all, verified\n")
    assert await run("backup", str(tmp_path / "other.db"), settings={"PLATFORM_URL": "https://platform.example"}) == 1
    assert "not about https://platform.example" in capsys.readouterr().err
    assert await run("migrate", "--from", str(tmp_path), "--to", "postgres") == 1
    assert "./postgres" in capsys.readouterr().err
    assert await run("backup", *place(where), str(tmp_path / "none" / "b.db")) == 1
    assert f"There is no directory {tmp_path / 'none'}" in capsys.readouterr().err


async def test_a_backup_has_nothing_of_what_was_deleted_before_it(store: Store, where: Where, tmp_path: Path) -> None:
    (job, kept) = await store.jobs.add(1, [NewJob("s", JobState.FINISHED, {}) for _ in range(2)], "x")
    people, slot = Collection(1, CollectionType.STORE, "people"), Slot(1, "f", "0")
    lines = [b'{"name":"secret"}']
    chunk = pack_chunk(ITEMS, lines, [{"name": "secret"}])
    for key in (job, kept):
        assert isinstance(key, JobKey)
        await store.items.write(key, None, [chunk])
        await store.logs.write(key, None, [pack_chunk(LOGS, lines, [{"message": "secret", "level": 20}])])
        await store.comments.add(CommentSubject(key.entity(0), "name"), "a", "secret")
    await store.collections.write(people, [(b"secret", b"1")])
    await store.frontier.add(slot, [QueuedRequest(b"secret", b'["secret",1]', None, 0)])
    assert isinstance(job, JobKey)
    assert await store.jobs.delete(1, [job], "x") == 1
    await store.collections.drop(1, "people")
    await store.frontier.delete_slot(slot)
    await store.close()
    file = tmp_path / "b.db"
    assert await run("backup", *place(where), str(file)) == 0
    with closing(sqlite3.connect(file)) as database:
        counts = {
            table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("record_chunks", "comments", "collection_records", "frontier_batches")
        }
    assert counts == {"record_chunks": 2, "comments": 1, "collection_records": 0, "frontier_batches": 0}
    restored = await Store.open(tmp_path / "restored")
    await restored.close()
    assert await run("restore", "--data", str(tmp_path / "restored"), str(file)) == 0
    restored = await Store.open(tmp_path / "restored")
    assert isinstance(kept, JobKey)
    assert [part.lines async for part in restored.items.scan(Span(1), (0, 0, 0))] == [[b'{"name":"secret"}']]
    await restored.close()


@pytest.mark.parametrize("where", ENGINES, indirect=True)
async def test_vacuum_gives_room_back_and_keeps_everything(store: Store, where: Where, capsys: Any) -> None:
    await fill(store)
    await store.collections.drop(1, "large")
    await store.purge()
    await store.close()
    before = await contents(where)
    size = (where / FILE).stat().st_size if isinstance(where, Path) else None
    assert await run("vacuum", *place(where)) == 0
    if isinstance(where, Path):
        assert size is not None
        assert (where / FILE).stat().st_size < size - 8_000_000
    assert await contents(where) == before


def test_a_page_is_bounded_in_bytes_as_well_as_in_rows() -> None:
    rows = [(n, 3_000_000) for n in range(100)]
    assert copying._last_that_fits(rows) == (1,)
    assert copying._last_that_fits([(7, 10**9)]) == (7,)


def test_every_subcommand_has_its_module() -> None:
    assert all(load(name).name == name for name in SUBCOMMANDS)
