"""Chunks of records as objects of an S3 server, beside rows: the design of ``docs/architecture/objects``, without the
platform.

Chunks of 1000 items of 1 KB are packed as the server packs them. An *object* has ten of them, those of a job of 10,000
pages, joined to one gzip stream. obstore writes and reads them at moto, an S3 server for tests, in a process of its own
on loopback. The store writes and reads the same chunks as rows of SQLite and PostgreSQL, each in a synced transaction.

``at_once``: by calls under way; of each call the microseconds of processor time here and in PostgreSQL, and calls a
second. Those of objects are without moto's processor time, and at moto's rate. ``checks``: an object is one gzip file,
a range of it is a chunk, an object that exists is not created again, a presigned address gives the object, and a
listing names all of them.

``crashes``: a process moves chunks to an object by an intent, the object and the rows (those of a small SQLite
database), and is killed with SIGKILL after each step. The next process finds what is left by the intents alone.
``left_by_crashes`` are objects that no row named then; ``orphans`` are those at the end, and ``lost`` chunks that
cannot be read. The script ends with status 1 if there are any, or if a check is false.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store
from rig.processes import program
from rig.processors import Processors
from rig.rounds import alternate, median, options, report
from rig.spiders import varied_kilobyte

from scrapy_ext.api.compression import GZIP_HEAD, GzipFrame, part_of
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.records.chunks import ITEMS, Packer, RecordChunk, unpack_lines
from scrapy_ext.server.store.records.records import Span
from tests.support.postgresql import cluster

_BUCKET: Final = "chunks"
_LINES: Final = 1000
_CHUNKS_OF_OBJECT: Final = 10
#: Steps after which processes are killed, one after the other, before one that is not.
_KILLED: Final = (("intent",), ("object",), ("rows",), ("object", "dropped"))
_WAIT: Final = 30.0


def main() -> None:
    if sys.argv[1:2] == ["move"]:
        asyncio.run(_move(*sys.argv[2:]))
        return
    given = options(
        __doc__,
        full={"chunks": 500, "objects": 60, "at_once": [1, 16], "rounds": 3, "crashes": 10},
        quick={"chunks": 40, "objects": 6, "at_once": [8], "rounds": 1, "crashes": 1},
    )
    chunks = [_chunk(seed) for seed in range(_CHUNKS_OF_OBJECT)]
    with _s3() as url, cluster() as postgresql:
        found = {str(at_once): _rates(given, at_once, chunks, url, postgresql) for at_once in given.at_once}
        checks = asyncio.run(_checks(chunks, url))
        crashes = _crashes(given.crashes, chunks, url)
    sizes = {"chunk": len(chunks[0].body), "object": len(_joined(chunks)[0]), "one_item": len(_chunk(1, 1).body)}
    report("object_chunks", bytes=sizes, at_once=found, checks=checks, crashes=crashes)
    if not all(checks.values()) or crashes["lost"] or crashes["orphans"]:
        raise SystemExit(1)


def _chunk(seed: int, lines: int = _LINES) -> RecordChunk:
    records = [varied_kilobyte(f"http://shop.example/{seed}/{number}", number) for number in range(lines)]
    packer = Packer(ITEMS)
    (chunk, *_) = (*packer.add([msgspec.json.encode(each) for each in records], records), packer.rest())
    assert chunk is not None
    return chunk


def _joined(chunks: Sequence[RecordChunk]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return one gzip stream of the chunks' lines, and the places of their blocks in it."""
    frame, blocks, places, at = GzipFrame(), [GZIP_HEAD], list[tuple[int, int]](), len(GZIP_HEAD)
    for chunk in chunks:
        part = part_of(chunk.body)
        assert part is not None
        frame.join(part.crc, part.length)
        blocks.append(bytes(part.blocks))
        places.append((at, at + len(part.blocks)))
        at = places[-1][1]
    return b"".join([*blocks, frame.tail]), places


# ── the object store ──


@contextlib.contextmanager
def _s3() -> Iterator[str]:
    """Run moto in a process of its own, with an empty bucket; return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with program([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]) as process:
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + _WAIT
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"{url}/{_BUCKET}", method="PUT"), timeout=5).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.1)
        yield url


def _store(url: str) -> S3Store:
    return S3Store(
        _BUCKET,
        endpoint=url,
        region="us-east-1",
        access_key_id="key",
        secret_access_key="secret",
        client_options={"allow_http": True, "timeout": timedelta(seconds=20)},
    )


# ── rates ──


def _rates(given: Any, at_once: int, chunks: Sequence[RecordChunk], url: str, postgresql: Any) -> dict[str, Any]:
    runs = {
        "objects": lambda: asyncio.run(_objects(given, at_once, chunks, url)),
        "sqlite": lambda: asyncio.run(_rows(None, given, at_once, chunks, postgresql)),
        "postgresql": lambda: asyncio.run(_rows(postgresql.database(), given, at_once, chunks, postgresql)),
    }
    found = alternate(given.rounds, runs)
    return {
        name: {
            key: [round(median(values)) for values in zip(*(each[key] for each in rounds), strict=True)]
            for key in rounds[0]
        }
        for name, rounds in found.items()
    }


Measured = dict[str, tuple[float, float, float]]


async def _timed(
    work: Callable[[int], Awaitable[object]], number: int, at_once: int, others: Callable[[], float] = lambda: 0.0
) -> tuple[float, float, float]:
    """Return microseconds of processor time of a call here and of others, and calls a second."""
    left = iter(range(number))

    async def client() -> None:
        for call in left:
            await work(call)

    cpu, of_others, clock = time.process_time(), others(), time.monotonic()
    await asyncio.gather(*(client() for _ in range(at_once)))
    seconds = time.monotonic() - clock
    return 1e6 * (time.process_time() - cpu) / number, 1e6 * (others() - of_others) / number, number / seconds


async def _objects(given: Any, at_once: int, chunks: Sequence[RecordChunk], url: str) -> Measured:
    store = _store(url)
    bodies, small = [chunk.body for chunk in chunks], _chunk(1, 1).body
    whole, places = _joined(chunks)

    async def put(call: int) -> None:
        await store.put_async(f"chunks/{call}", bodies[call % len(bodies)], use_multipart=False)

    async def put_small(call: int) -> None:
        await store.put_async(f"small/{call}", small, use_multipart=False)

    async def create(call: int) -> None:
        await store.put_async(
            f"new/{call}-{time.monotonic_ns()}", bodies[call % len(bodies)], mode="create", use_multipart=False
        )

    async def get(call: int) -> None:
        assert len(await (await store.get_async(f"chunks/{call}")).bytes_async()) == len(bodies[call % len(bodies)])

    async def put_object(call: int) -> None:
        await store.put_async(f"objects/{call}", whole, use_multipart=False)

    async def get_range(call: int) -> None:
        low, high = places[call % len(places)]
        found = await store.get_range_async(f"objects/{call % given.objects}", start=low, end=high)
        assert len(found) == high - low

    async def delete(call: int) -> None:
        await store.delete_async([f"chunks/{number}" for number in range(call, given.chunks, 5)])

    measured = {
        "put of one item": await _timed(put_small, given.chunks, at_once),
        "put of a chunk": await _timed(put, given.chunks, at_once),
        "create of a chunk": await _timed(create, given.chunks, at_once),
        "get of a chunk": await _timed(get, given.chunks, at_once),
        "put of an object": await _timed(put_object, given.objects, at_once),
        "range of an object": await _timed(get_range, given.chunks, at_once),
        "joining an object": await _timed(_join(chunks), given.objects, 1),
    }
    cpu, _, _ = await _timed(delete, 5, 1)
    return {**measured, "delete of one of many": (5 * cpu / given.chunks, 0.0, 0.0)}


def _join(chunks: Sequence[RecordChunk]) -> Callable[[int], Awaitable[None]]:
    async def join(_: int) -> None:
        _joined(chunks)

    return join


async def _rows(
    database: str | None, given: Any, at_once: int, chunks: Sequence[RecordChunk], postgresql: Any
) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(Path(folder) if database is None else DatabaseUrl(database))
        used = Processors([os.getpid()], postgresql.process.pid if database is not None else 0)

        def others() -> float:
            return used.seconds()[1]

        # As many jobs as calls under way, so that they do not wait for one another.
        jobs = 16

        async def write(call: int) -> None:
            number, place = call % jobs + 1, call // jobs * _LINES
            await store.items.write(JobKey(1, 1, number), place, [chunks[call % len(chunks)]])

        async def write_small(call: int) -> None:
            await store.items.write(JobKey(1, 2, call % jobs + 1), None, [small])

        async def read(call: int) -> None:
            key = JobKey(1, 1, call % jobs + 1)
            span = Span(*key)
            async for _ in store.items.scan_text(span, (1, key.job, call // jobs * _LINES), _LINES, packed=True):
                pass

        small = _chunk(1, 1)
        try:
            return {
                "write of one item": await _timed(write_small, given.chunks, at_once, others),
                "write of a chunk": await _timed(write, given.chunks, at_once, others),
                "read of a chunk": await _timed(read, given.chunks, at_once, others),
            }
        finally:
            await store.close()


# ── checks ──


async def _checks(chunks: Sequence[RecordChunk], url: str) -> dict[str, bool]:
    store = _store(url)
    whole, places = _joined(chunks)
    await store.put_async("check/0", whole, mode="create", use_multipart=False)
    try:
        await store.put_async("check/0", b"other", mode="create", use_multipart=False)
        refused = False
    except AlreadyExistsError:
        refused = True
    lines = b"".join(b"\n".join([*unpack_lines(chunk.body), b""]) for chunk in chunks)
    read = bytes(await (await store.get_async("check/0")).bytes_async())
    low, high = places[3]
    blocks = bytes(await store.get_range_async("check/0", start=low, end=high))
    one = GZIP_HEAD + blocks + chunks[3].body[-10:]
    signed = await obstore.sign_async(store, "GET", "check/0", timedelta(minutes=5))
    by_address = await asyncio.to_thread(_read, signed)
    for number in range(1, 2500):
        await store.put_async(f"many/{number}", b"x", use_multipart=False)
    listed = [entry["path"] async for page in store.list(prefix="many/") for entry in page]
    return {
        "created once": refused,
        "one gzip file": gzip.decompress(read) == lines,
        "a range is a chunk": unpack_lines(one) == unpack_lines(chunks[3].body),
        "presigned": by_address == whole,
        "listed": sorted(listed) == sorted(f"many/{number}" for number in range(1, 2500)),
    }


def _read(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=20) as answer:
        return bytes(answer.read())


# ── crashes ──

_SCHEMA: Final = """
PRAGMA journal_mode = WAL;
CREATE TABLE chunks (number INTEGER PRIMARY KEY, body BLOB, object TEXT, low INTEGER, high INTEGER, sums BLOB);
CREATE TABLE objects (object TEXT PRIMARY KEY, state TEXT);
"""


def _crashes(times: int, chunks: Sequence[RecordChunk], url: str) -> dict[str, int]:
    killed = lost = orphans = found = 0
    for number in range(times):
        for steps in _KILLED:
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/rows.db"
                with contextlib.closing(sqlite3.connect(path)) as rows:
                    rows.executescript(_SCHEMA)
                    rows.executemany(
                        "INSERT INTO chunks (number, body) VALUES (?, ?)",
                        [(at, chunk.body) for at, chunk in enumerate(chunks)],
                    )
                    rows.commit()
                prefix = f"crash/{number}/{'-'.join(steps)}"
                for step in steps:
                    killed += _mover(path, url, prefix, step) == -signal.SIGKILL
                    found += len(asyncio.run(_unnamed(path, url, prefix)))
                if _mover(path, url, prefix, ""):
                    raise SystemExit("the mover failed")
                lost += asyncio.run(_lost(path, url, chunks))
                orphans += len(asyncio.run(_unnamed(path, url, prefix)))
    return {"killed": killed, "left_by_crashes": found, "lost": lost, "orphans": orphans}


def _mover(path: str, url: str, prefix: str, step: str) -> int:
    return subprocess.run(
        [sys.executable, __file__, "move", path, url, prefix, step], timeout=60, check=False
    ).returncode


async def _move(path: str, url: str, prefix: str, step: str) -> None:
    """Remove what an earlier process has left; then move all chunks to one object. Dies after ``step``."""

    def done(at: str) -> None:
        if at == step:
            os.kill(os.getpid(), signal.SIGKILL)

    store = _store(url)
    with contextlib.closing(sqlite3.connect(path)) as rows:
        rows.execute("PRAGMA synchronous = FULL")
        for (name,) in rows.execute("SELECT object FROM objects WHERE state = 'new'").fetchall():
            await store.delete_async([name])
            done("dropped")
            rows.execute("DELETE FROM objects WHERE object = ?", (name,))
            rows.commit()
        kept = rows.execute("SELECT number, body FROM chunks WHERE body IS NOT NULL ORDER BY number").fetchall()
        if not kept:
            return
        name = f"{prefix}/{os.urandom(8).hex()}"
        rows.execute("INSERT INTO objects VALUES (?, 'new')", (name,))
        rows.commit()
        done("intent")
        whole, places = _joined([RecordChunk(0, body, ITEMS.tally([])) for _, body in kept])
        await store.put_async(name, whole, use_multipart=False)
        done("object")
        for (number, body), (low, high) in zip(kept, places, strict=True):
            rows.execute(
                "UPDATE chunks SET body = NULL, object = ?, low = ?, high = ?, sums = ? WHERE number = ? AND body = ?",
                (name, low, high, body[-10:], number, body),
            )
        rows.execute("UPDATE objects SET state = 'kept' WHERE object = ?", (name,))
        rows.commit()
        done("rows")


async def _lost(path: str, url: str, chunks: Sequence[RecordChunk]) -> int:
    """Return how many chunks cannot be read as they were."""
    store, wrong = _store(url), 0
    with contextlib.closing(sqlite3.connect(path)) as rows:
        for number, row, name, low, high, sums in rows.execute("SELECT * FROM chunks"):
            body = row or GZIP_HEAD + bytes(await store.get_range_async(name, start=low, end=high)) + sums
            wrong += unpack_lines(body) != unpack_lines(chunks[number].body)
    return wrong


async def _unnamed(path: str, url: str, prefix: str) -> set[str]:
    """Return the objects that no row of a chunk names, by a listing."""
    listed = {entry["path"] async for page in _store(url).list(prefix=f"{prefix}/") for entry in page}
    with contextlib.closing(sqlite3.connect(path)) as rows:
        return listed - {
            name for (name,) in rows.execute("SELECT DISTINCT object FROM chunks WHERE object IS NOT NULL")
        }


if __name__ == "__main__":
    main()
