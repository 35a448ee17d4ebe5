"""Reads of SQLite run in few threads, of which the one used last comes first."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import pytest

from scrapy_ext.server.store.engine.sqlite.reader_threads import ReaderThreads

SECONDS = 60.0


class Result:
    """Result of a read."""


@pytest.fixture
def threads() -> Iterator[ReaderThreads]:
    with ReaderThreads(2) as threads:
        yield threads


def in_idle_thread(threads: ReaderThreads, number: int) -> list[threading.Thread]:
    """Wait for the result of each read before the next; a thread is free a moment after its result."""
    used = []
    for _ in range(number):
        used.append(threads.submit(threading.current_thread).result(SECONDS))
        while len(threads._free) < len(threads._threads):
            threading.Event().wait(0.001)
    return used


def test_reads_one_after_the_other_use_the_same_thread_also_after_several_at_once(threads: ReaderThreads) -> None:
    assert len(set(in_idle_thread(threads, 5))) == 1
    both = threading.Barrier(2, timeout=SECONDS)
    for work in [threads.submit(both.wait), threads.submit(both.wait)]:
        work.result(SECONDS)
    assert len(set(in_idle_thread(threads, 5)[1:])) == 1


def test_reads_without_a_free_thread_wait_in_their_order(threads: ReaderThreads) -> None:
    go, done = threading.Event(), list[int]()
    busy = [threads.submit(go.wait, SECONDS) for _ in range(2)]
    waiting = [threads.submit(done.append, number) for number in range(2)]
    dropped = threads.submit(done.append, 9)
    assert dropped.cancel()
    assert not any(work.running() for work in waiting)
    assert all(work.running() for work in busy)
    assert len(threads._threads) == 2
    go.set()
    for work in waiting:
        work.result(SECONDS)
    assert sorted(done) == [0, 1]


def test_an_error_reaches_the_caller_and_the_thread_goes_on(threads: ReaderThreads) -> None:
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(SECONDS)
    assert threads.submit(int, "1").result(SECONDS) == 1


def test_a_free_thread_keeps_no_result(threads: ReaderThreads) -> None:
    work = threads.submit(Result)
    result = weakref.ref(work.result(SECONDS))
    del work
    in_idle_thread(threads, 1)
    assert result() is None


def test_the_end_waits_for_all_work_unless_that_is_cancelled() -> None:
    threads, go = ReaderThreads(1), threading.Event()
    first, second = threads.submit(go.wait, SECONDS), threads.submit(int, "2")
    threads.shutdown(wait=False)
    with pytest.raises(RuntimeError):
        threads.submit(int, "3")
    go.set()
    threads.shutdown()
    assert first.result(0)
    assert second.result(0) == 2
    cut, go = ReaderThreads(1), threading.Event()
    first, second = cut.submit(go.wait, SECONDS), cut.submit(int, "2")
    cut.shutdown(wait=False, cancel_futures=True)
    assert second.cancelled()
    go.set()
    cut.shutdown()
    assert first.result(0)
