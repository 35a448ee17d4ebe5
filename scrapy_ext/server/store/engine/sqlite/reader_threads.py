"""Threads of reads: the one that was used last takes the next read.

The threads of :class:`~concurrent.futures.ThreadPoolExecutor` take turns. So each read of a stream meets another page
cache and other freed memory, together more than the processor's cache holds.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Work(NamedTuple):
    call: Callable[[], Any]
    future: Future[Any]


_Queue = queue.SimpleQueue[_Work | None]


class ReaderThreads(Executor):
    """At most ``size`` threads, each started when no other is free."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        #: The queues of free threads, that of the thread used last at the end.
        self._free: list[_Queue] = []
        #: Work for which no thread was free, oldest first.
        self._waiting: deque[_Work] = deque()
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        work = _Work(partial(fn, *args, **kwargs), Future())
        with self._lock:
            if self._closed:
                raise RuntimeError("the threads have ended")
            if self._free:
                self._free.pop().put(work)
            elif len(self._threads) < self._size:
                self._start(work)
            else:
                self._waiting.append(work)
        return work.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads after all work, or after what they are doing now."""
        with self._lock:
            self._closed = True
            while cancel_futures and self._waiting:
                self._waiting.popleft().future.cancel()
            while self._free:
                self._free.pop().put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def _start(self, work: _Work) -> None:
        own: _Queue = queue.SimpleQueue()
        own.put(work)
        name = f"store-reader_{len(self._threads)}"
        thread = threading.Thread(target=self._run, args=(own,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, own: _Queue) -> None:
        work = own.get()
        while work is not None:
            while work is not None:
                _do(work)
                work = self._next(own)  # the thread keeps no result while it waits
            work = own.get()

    def _next(self, own: _Queue) -> _Work | None:
        """Return work that has waited; None when there is none, and the thread is free."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            if self._closed:
                own.put(None)
            else:
                self._free.append(own)
        return None


def _do(work: _Work) -> None:
    call, future = work
    del work  # an error refers to this frame, which must not refer to the error
    try:
        if future.set_running_or_notify_cancel():
            future.set_result(call())
    except BaseException as error:
        future.set_exception(error)
    finally:
        del call, future
