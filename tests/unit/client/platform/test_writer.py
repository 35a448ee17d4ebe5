from __future__ import annotations

import asyncio
import logging
import random

import pytest

from scrapy_ext.client.platform import BatchWriter
from scrapy_ext.client.platform.errors import (
    PlatformError,
    RateLimited,
    ServerError,
    TooLarge,
    Unauthorized,
    Unreachable,
)
from scrapy_ext.client.platform.writer import RecordsNotStored
from scrapy_ext.client.retry import Backoff
from tests.support.eventually import eventually_async

SOON = Backoff(0.001, 0.002)
NEVER = 3600.0


class Storage:
    """Platform that stores records by index, fails on demand, and keeps what arrives."""

    def __init__(self, *faults: Exception | None) -> None:
        self.faults = list(faults)
        self.sends: list[tuple[int, list[bytes]]] = []
        self.stored: dict[int, bytes] = {}
        self.open = asyncio.Event()
        self.open.set()
        self.running = 0

    async def send(self, body: bytes, index: int) -> None:
        self.running += 1
        assert self.running == 1, "two sends at once"
        try:
            assert body.endswith(b"\n")
            records = body.splitlines()
            self.sends.append((index, records))
            await self.open.wait()
            fault = self.faults.pop(0) if self.faults else None
            if fault is not None:
                raise fault
            self.stored.update(enumerate(records, index))
        finally:
            self.running -= 1

    def writer(self, **options) -> BatchWriter:
        defaults = {"flush_interval": NEVER, "backoff": SOON, "name": "items"}
        return BatchWriter(self.send, **{**defaults, **options})


def records(first: int, last: int) -> list[bytes]:
    return [b'{"n":%d}' % n for n in range(first, last)]


def down(*args) -> Exception:
    return Unreachable("down")


async def test_records_are_numbered_from_the_start_and_arrive_at_their_indices():
    storage = Storage()
    writer = storage.writer(start=40, max_records=3)
    assert [writer.add(record) for record in records(0, 7)] == list(range(40, 47))
    assert writer.next_index == 47
    await writer.close()
    assert storage.stored == dict(enumerate(records(0, 7), 40))
    assert [index for index, _ in storage.sends] == [40, 43, 46]
    assert (writer.durable, writer.pending, writer.pending_bytes) == (47, 0, 0)


async def test_nothing_is_sent_until_there_is_enough():
    storage = Storage()
    writer = storage.writer(max_records=3)
    for record in records(0, 2):
        writer.add(record)
    await asyncio.sleep(0)
    assert storage.sends == []
    writer.add(b'{"n":2}')
    await writer.wait_durable(3)
    assert [len(sent) for _, sent in storage.sends] == [3]


async def test_bytes_count_too_and_bound_a_send():
    storage = Storage()
    writer = storage.writer(max_bytes=25)
    for record in records(0, 9):
        writer.add(record)
    await writer.close()
    assert [len(sent) for _, sent in storage.sends] == [3, 3, 3]


async def test_a_record_larger_than_a_send_goes_alone():
    storage = Storage()
    writer = storage.writer(max_bytes=10)
    big = b'"' + b"x" * 100 + b'"'
    for record in (b"1", big, b"2"):
        writer.add(record)
    await writer.close()
    assert [sent for _, sent in storage.sends] == [[b"1"], [big], [b"2"]]


async def test_a_lonely_record_is_sent_after_the_interval():
    storage = Storage()
    writer = storage.writer(flush_interval=0.01)
    writer.add(b"1")
    await asyncio.wait_for(writer.wait_durable(1), 60)
    writer.add(b"2")
    await asyncio.wait_for(writer.wait_durable(2), 60)
    assert storage.stored == {0: b"1", 1: b"2"}


async def test_records_added_while_a_send_runs_do_not_wait_for_others_either():
    storage = Storage()
    storage.open.clear()
    writer = storage.writer(flush_interval=0.01, max_records=2)
    for record in records(0, 2):
        writer.add(record)
    await eventually_async(lambda: storage.sends)
    writer.add(b'{"n":2}')
    storage.open.set()
    await asyncio.wait_for(writer.wait_durable(3), 60)


async def test_an_idle_writer_has_no_task_and_no_timer():
    storage = Storage()
    writer = storage.writer(max_records=2)
    tasks = len(asyncio.all_tasks())
    for record in records(0, 2):
        writer.add(record)
    await writer.wait_durable(2)
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == tasks
    assert writer._timer is None


async def test_durable_moves_only_when_a_send_has_returned():
    storage = Storage()
    storage.open.clear()
    writer = storage.writer(max_records=2)
    for record in records(0, 4):
        writer.add(record)
    await eventually_async(lambda: storage.sends)
    assert (writer.durable, writer.pending) == (0, 4)
    storage.open.set()
    await writer.wait_durable(4)
    assert writer.durable == 4


async def test_flush_sends_what_is_there_without_waiting_for_what_comes():
    storage = Storage()
    storage.open.clear()
    writer = storage.writer()
    writer.add(b"1")
    flushing = asyncio.ensure_future(writer.flush())
    await eventually_async(lambda: storage.sends)
    writer.add(b"2")
    storage.open.set()
    await flushing
    assert writer.durable == 1
    await writer.flush()
    assert writer.durable == 2
    await writer.flush()


async def test_waiting_for_a_record_that_was_not_added_is_an_error_and_does_not_hang():
    with pytest.raises(ValueError, match="next index is 0"):
        await Storage().writer().wait_durable(1)


@pytest.mark.parametrize("fault", [Unreachable("x"), ServerError("x"), RateLimited("x", retry_after=0), OSError("x")])
async def test_a_send_that_fails_is_repeated_as_it_was_until_it_works(fault):
    storage = Storage(*[fault] * 6)
    writer = storage.writer(max_records=2, start=7)
    for record in records(0, 5):
        writer.add(record)
    await writer.close()
    assert storage.sends[:7] == [(7, records(0, 2))] * 7
    assert storage.stored == dict(enumerate(records(0, 5), 7))


async def test_records_added_while_sending_fails_stay_in_order():
    storage = Storage(down(), down(), down())
    writer = storage.writer(max_records=2, high_water_bytes=10)
    for n in range(50):
        writer.add(b"%d" % n)
        await writer.wait_below_high_water()
    await writer.close()
    assert storage.stored == {n: b"%d" % n for n in range(50)}


async def test_random_faults_lose_nothing_double_nothing_and_keep_the_order():
    chance = random.Random(7)
    storage = Storage(*[chance.choice([None, down(), ServerError("x")]) for _ in range(500)])
    writer = storage.writer(max_records=5, high_water_bytes=200)

    async def add(producer: int) -> list[tuple[int, bytes]]:
        added = []
        for n in range(200):
            record = b'"%d-%d"' % (producer, n)
            added.append((writer.add(record), record))
            await writer.wait_below_high_water()
        return added

    added = await asyncio.gather(*map(add, range(4)))
    await writer.close()
    assert storage.stored == dict(pair for pairs in added for pair in pairs)
    assert sorted(storage.stored) == list(range(800))


async def test_an_outage_is_reported_once_when_it_starts_and_once_when_it_ends(caplog):
    caplog.set_level(logging.INFO)
    storage = Storage(*[down()] * 9)
    writer = storage.writer()
    writer.add(b"1")
    await writer.close()
    logged = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in logged] == ["WARNING", "INFO"]
    assert "Cannot store items now" in logged[0][1]
    assert "stores everything again, after 9 failures" in logged[1][1]


async def test_back_pressure_holds_those_who_wait_and_not_those_who_add():
    storage = Storage()
    storage.open.clear()
    writer = storage.writer(high_water_bytes=10)
    await writer.wait_below_high_water()
    for record in records(0, 5):
        writer.add(record)
    waiting = [asyncio.ensure_future(writer.wait_below_high_water()) for _ in range(3)]
    await asyncio.wait(waiting, timeout=0.01)
    assert not any(task.done() for task in waiting)
    waiting[0].cancel()
    storage.open.set()
    await asyncio.gather(*waiting[1:])
    assert writer.pending_bytes == 0


@pytest.mark.parametrize("fault", [Unauthorized("no"), PlatformError("no"), TypeError("a bug")])
async def test_what_no_repetition_can_mend_ends_the_writer_at_once(fault, caplog):
    storage = Storage(*[fault] * 5)
    writer = storage.writer(max_records=1)
    writer.add(b"1")
    with pytest.raises(type(fault)):
        await writer.wait_durable(1)
    assert writer.failed is fault
    writer.add(b"2")
    for waiting in (writer.flush(), writer.wait_durable(1), writer.wait_below_high_water()):
        with pytest.raises(type(fault)):
            await waiting
    with pytest.raises(RecordsNotStored, match="2 items were not stored: "):
        await writer.close()
    assert len(storage.sends) == 1
    assert "Gave up storing items, 1 of them are not stored" in caplog.text


async def test_a_failure_wakes_everyone_who_waits():
    storage = Storage(Unauthorized("no"))
    storage.open.clear()
    writer = storage.writer(max_records=1, high_water_bytes=0)
    writer.add(b"1")
    waiting = [writer.wait_durable(1), writer.wait_below_high_water(), writer.flush(), writer.wait_durable(1)]
    tasks = [asyncio.ensure_future(one) for one in waiting]
    await asyncio.sleep(0)
    storage.open.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Unauthorized] * 4


async def test_retry_time_ends_the_repetition():
    storage = Storage(*[down()] * 1000)
    writer = storage.writer(retry_time=0.05)
    writer.add(b"1")
    with pytest.raises(Unreachable):
        await writer.flush()
    assert len(storage.sends) > 1


async def test_a_body_too_large_for_a_proxy_is_sent_in_smaller_ones():
    class Small(Storage):
        async def send(self, body: bytes, index: int) -> None:
            if body.count(b"\n") > 3:
                raise TooLarge("at most 3 lines")
            await super().send(body, index)

    storage = Small()
    writer = storage.writer()
    for record in records(0, 20):
        writer.add(record)
    await writer.close()
    assert storage.stored == dict(enumerate(records(0, 20)))


async def test_one_record_too_large_ends_the_writer():
    storage = Storage(*[TooLarge("over 1 MiB")] * 9)
    writer = storage.writer()
    for record in records(0, 4):
        writer.add(record)
    with pytest.raises(TooLarge):
        await writer.flush()
    assert storage.sends[-1] == (0, [b'{"n":0}'])


async def test_close_gives_up_after_its_timeout_and_counts_what_is_not_stored():
    storage = Storage()
    storage.open.clear()
    writer = storage.writer(max_records=2)
    for record in records(0, 5):
        writer.add(record)
    waiting = asyncio.ensure_future(writer.wait_durable(5))
    with pytest.raises(RecordsNotStored, match="5 items were not stored: no success within 0") as caught:
        await writer.close(timeout=0.05)
    assert caught.value.count == 5
    with pytest.raises(RecordsNotStored):
        await waiting
    with pytest.raises(RuntimeError, match="closed"):
        writer.add(b"6")


async def test_closing_twice_is_closing_once():
    storage = Storage()
    writer = storage.writer()
    writer.add(b"1")
    await writer.close()
    await writer.close(timeout=1)
    assert storage.stored == {0: b"1"}


async def test_a_close_that_is_cancelled_leaves_nothing_running():
    storage = Storage()
    storage.open.clear()
    writer = storage.writer()
    writer.add(b"1")
    tasks = len(asyncio.all_tasks())
    closing = asyncio.ensure_future(writer.close())
    await eventually_async(lambda: storage.sends)
    closing.cancel()
    await asyncio.wait([closing])
    assert len(asyncio.all_tasks()) == tasks
