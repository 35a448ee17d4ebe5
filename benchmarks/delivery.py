"""Items per second that a delivery writes to a folder, as JSON lines (gzip, Zstandard) and with Parquet, beside reading
alone, and those that a restore brings back; the memory of each.

A job has items of about 300 bytes: text, numbers, a list and an object. ``read`` reads all of them from the store.
``cpu_us`` is the processor time of an item in all threads. ``memory_mb`` is the peak of a process that does nothing
else, above its memory before, with the libraries that it loads.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from rig.load import memory_now
from rig.rounds import median, options, report

from scrapy_ext.api.platform.deliveries import rule_of
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.delivery.delivering import Deliverer
from scrapy_ext.server.delivery.restoring import Restores
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.deliveries import find_archive
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.records.chunks import Packer
from scrapy_ext.server.store.records.records import Span
from scrapy_ext.server.store.records.removal import remove_records

_KEY = JobKey(1, 1, 1)
_PER_WRITE = 5000
_RULES: dict[str, dict[str, Any]] = {
    "gzip": {"compression": "gz"},
    "zstd": {"compression": "zst"},
    "gzip_parquet": {"parquet": True},
}


def main() -> None:
    given = options(__doc__, full={"items": 1_000_000, "rounds": 3}, quick={"items": 20_000, "rounds": 1})
    with tempfile.TemporaryDirectory() as folder:
        data, target = Path(folder, "data"), Path(folder, "target")
        target.mkdir()
        asyncio.run(_fill(data, given.items))
        works = ["read", *_RULES, "restore"]
        seconds: dict[str, list[float]] = {name: [] for name in works}
        cpu: dict[str, list[float]] = {name: [] for name in works}
        peaks: dict[str, list[int]] = {name: [] for name in works}
        for _ in range(given.rounds):
            for name in works:
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    taken, used, peak = pool.apply(_measured, (name, str(data), str(target)))
                seconds[name].append(taken)
                cpu[name].append(used)
                peaks[name].append(peak)
    rates = {name: given.items / median(found) for name, found in seconds.items()}
    report(
        "delivery",
        items=given.items,
        per_second={name: round(rate) for name, rate in rates.items()},
        ratio={name: round(rate / rates["read"], 3) for name, rate in rates.items()},
        cpu_us={name: round(1e6 * median(found) / given.items, 2) for name, found in cpu.items()},
        memory_mb={name: round(max(found) / 1e6, 1) for name, found in peaks.items()},
    )


def _measured(name: str, data: str, target: str) -> tuple[float, float, int]:
    return asyncio.run(_work(name, Path(data), f"file://{target}"))


async def _work(name: str, data: Path, target: str) -> tuple[float, float, int]:
    store = await Store.open(data)
    try:
        if name == "restore":
            await _archive(store)
        elif name != "read":
            fields = {"target": target, "what": ["items"], "enabled": True, **_RULES[name]}
            await store.deliveries.add(1, rule_of(fields))
        before = memory_now(os.getpid())
        _reset_peak()
        began, used = time.perf_counter(), time.process_time()
        if name == "read":
            span = Span(*_KEY)
            assert sum([len(part.lines) async for part in store.items.scan(span, span.first)])
        elif name == "restore":
            await Restores(store, [target]).start(_KEY)
            while (state := await store.restores.state(_KEY)) and state.state == "restoring":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert state is not None
            assert state.state == "available", state
        else:
            assert await Deliverer(store, [target]).run_due() == 1
        taken, used = time.perf_counter() - began, time.process_time() - used
        peak = _peak() - before
        for rule in await store.deliveries.listed(1):
            await store.deliveries.remove(1, rule.id)
        return taken, used, peak
    finally:
        await store.close()


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


async def _archive(store: Store) -> None:
    async def remove(tx: Any) -> None:
        await remove_records(tx, _KEY, ["items"], store.clock(), await find_archive(tx, _KEY, "items"))

    await store._engine.write(remove)
    await store.purge()


async def _fill(data: Path, items: int) -> None:
    store = await Store.open(data)
    await store.jobs.add(1, [NewJob("shop", JobState.RUNNING, {})], "bench")
    for first in range(0, items, _PER_WRITE):
        values = [_item(number) for number in range(first, min(first + _PER_WRITE, items))]
        packer = Packer(store.items.kind)
        chunks = packer.add([json.dumps(value).encode() for value in values], values)
        await store.items.write(_KEY, first, [chunk for chunk in (*chunks, packer.rest()) if chunk is not None])
    await store.jobs.change(1, [Change(_KEY, JobState.FINISHED, {})], "bench")
    await store.close()


def _item(number: int) -> dict[str, Any]:
    return {
        "name": f"Product {number}",
        "url": f"https://shop.example/products/{number}",
        "price": number % 1000 / 10,
        "currency": "EUR",
        "sku": f"{number:012d}",
        "tags": ["new", f"group {number % 7}"],
        "offer": {"stock": number % 50, "until": None},
        "description": f"A thing of kind {number % 97} with a text that says some more about it. " * 2,
    }


if __name__ == "__main__":
    main()
