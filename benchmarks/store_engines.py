"""Durable rows per second of the store on SQLite and on PostgreSQL, without HTTP, by concurrent clients.

Each client writes to a job, slot and collection of its own, a call of 1,000 rows at a time, answered after the commit
is synced: items of 1 KB packed beforehand, as the server packs them; fingerprints that are new, with their requests;
records of a collection. Then queues are read and deleted, 1,000 requests at a time. ``get`` is microseconds of reading
one job, one after the other. PostgreSQL is a server of its own on this machine, with its defaults.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from rig.rounds import alternate, median, options, report

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.collections.collections import Collection
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.records.chunks import ITEMS, Packer, RecordChunk
from tests.support.postgresql import cluster

_ROWS = 1000
_GETS = 500


def main() -> None:
    given = options(
        __doc__,
        full={"calls": 100, "clients": [1, 4, 16], "rounds": 3},
        quick={"calls": 10, "clients": [1, 4], "rounds": 1},
    )
    chunks = _chunks()
    found: dict[str, dict[str, dict[str, float]]] = {}
    with cluster() as postgresql:
        for clients in given.clients:

            def on_sqlite(clients: int = clients) -> dict[str, float]:
                with tempfile.TemporaryDirectory() as folder:
                    return asyncio.run(_measure(Path(folder), clients, given.calls, chunks))

            def on_postgresql(clients: int = clients) -> dict[str, float]:
                return asyncio.run(_measure(DatabaseUrl(postgresql.database()), clients, given.calls, chunks))

            results = alternate(given.rounds, {"sqlite": on_sqlite, "postgresql": on_postgresql})
            found[str(clients)] = {
                name: {key: round(median(each[key] for each in rounds)) for key in rounds[0]}
                for name, rounds in results.items()
            }
    ratio = {
        clients: {key: round(both["postgresql"][key] / both["sqlite"][key], 2) for key in both["sqlite"]}
        for clients, both in found.items()
    }
    report("store_engines", clients=found, ratio=ratio)


def _chunks() -> list[RecordChunk]:
    chance = random.Random(1)
    records = [
        {"url": f"http://shop.example/{n}", "name": f"Thing {n}", "text": chance.randbytes(440).hex(), "price": n}
        for n in range(_ROWS)
    ]
    lines = [msgspec.json.encode(record) for record in records]
    packer = Packer(ITEMS)
    return [chunk for chunk in (*packer.add(lines, records), packer.rest()) if chunk is not None]


async def _measure(where: Path | DatabaseUrl, clients: int, calls: int, chunks: list[RecordChunk]) -> dict[str, float]:
    store = await Store.open(where)
    which = [Collection(1, CollectionType.STORE, f"c{client}") for client in range(clients)]

    async def items(client: int, call: int) -> None:
        await store.items.write(JobKey(1, 1, client + 1), call * _ROWS, chunks)

    async def add(client: int, _call: int) -> None:
        new = [QueuedRequest(os.urandom(20), b'["%040d",null]' % n, None, 0) for n in range(_ROWS)]
        assert await store.frontier.add(Slot(1, "f", str(client)), new) == _ROWS

    async def consume(client: int, _call: int) -> None:
        slot = Slot(1, "f", str(client))
        batches = await store.frontier.read(slot, _ROWS)
        assert sum(batch.size for batch in batches) == _ROWS
        await store.frontier.delete_batches(slot, [batch.id for batch in batches])

    async def records(client: int, call: int) -> None:
        given = [(b"%08d" % (call * _ROWS + n), b'{"value":%d}' % n) for n in range(_ROWS)]
        await store.collections.write(which[client], given)

    rates = {}
    for work in (items, add, consume, records):
        rates[work.__name__] = clients * calls * _ROWS / await _seconds(work, clients, calls)
    (key,) = await store.jobs.add(1, [NewJob("s", JobState.PENDING, {})], "x")
    assert isinstance(key, JobKey)
    begun = perf_counter()
    for _ in range(_GETS):
        await store.jobs.get(key)
    rates["get"] = (perf_counter() - begun) / _GETS * 1e6
    await store.close()
    return rates


async def _seconds(work: Callable[[int, int], Awaitable[None]], clients: int, calls: int) -> float:
    async def client(number: int) -> None:
        for call in range(calls):
            await work(number, call)

    begun = perf_counter()
    await asyncio.gather(*map(client, range(clients)))
    return perf_counter() - begun


if __name__ == "__main__":
    main()
