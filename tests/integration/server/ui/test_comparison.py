"""The comparison of two jobs leaves the event loop to other requests: its work is in threads, a chunk at a time."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from scrapy_ext.api.platform.comparison import ItemChanges, ItemIndex, compare_items
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.records.chunks import MAX_LINES, chunk_of_lines
from scrapy_ext.server.store.store import Store
from scrapy_ext.server.ui.frame import Visit
from scrapy_ext.server.ui.views import compare

_CHUNKS = 4


def lines(first: int, number: int, run: int = 0) -> list[bytes]:
    items = range(first, first + number)
    return [msgspec.json.encode({"url": f"http://a.example/{n}", "price": n + run * (n % 3), "at": run}) for n in items]


async def test_items_are_compared_in_threads_a_chunk_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await Store.open(tmp_path)
    keys = [JobKey(1, 1, 1), JobKey(1, 1, 2)]
    for run, key in enumerate(keys):
        for first in range(0, _CHUNKS * MAX_LINES, MAX_LINES):
            await store.items.write(key, first, [chunk_of_lines(store.items.kind, lines(first, MAX_LINES, run))])
    steps = Counter[int]()
    begun = [0]
    used = set[int]()
    run_in_thread = compare.in_data_thread

    async def counted(work: Any, *args: Any) -> Any:
        begun[0] += 1
        return await run_in_thread(work, *args)

    class Index(ItemIndex):
        def add(self, number: int, line: bytes) -> None:
            steps[begun[0]] += 1
            used.add(threading.get_ident())
            super().add(number, line)

    def compared(*indexes: ItemIndex, every_field: bool) -> ItemChanges:
        used.add(threading.get_ident())
        return compare_items(*indexes, every_field=every_field)

    monkeypatch.setattr(compare, "in_data_thread", counted)
    monkeypatch.setattr(compare, "ItemIndex", Index)
    monkeypatch.setattr(compare, "compare_items", compared)
    visit = cast("Visit", SimpleNamespace(store=store, text=lambda _: ""))
    found = (await compare._compare_items(visit, keys, "url", [])).found
    await store.close()
    assert (found.same + len(found.changed), found.aside) == (_CHUNKS * MAX_LINES, ("at",))
    assert sorted(steps.values()) == [MAX_LINES] * 2 * _CHUNKS
    assert threading.get_ident() not in used


def test_compared_items_are_no_objects_that_the_garbage_collector_visits() -> None:
    def tracked() -> int:
        gc.collect()
        return len(gc.get_objects())

    before, number = tracked(), 2000
    indexes = [ItemIndex("url"), ItemIndex("url")]
    for run, index in enumerate(indexes):
        for place, line in enumerate(lines(0, number, run)):
            index.add(place, line)
    found = compare_items(*indexes)
    assert found.same + len(found.changed) == number
    assert tracked() - before < number / 10
