"""The compared schedulers, with timed methods.

In :data:`rig.observers.OBSERVED`: ``enqueued``, nanoseconds of each ``enqueue_request``, and ``dequeued``, nanoseconds
and host of each ``next_request`` that gave a request.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.core.scheduler import Scheduler

from rig.observers import OBSERVED
from scrapy_ext.scheduler import FrontierScheduler

_ENQUEUED: Final[list[int]] = OBSERVED.setdefault("enqueued", [])
_DEQUEUED: Final[list[tuple[int, str | None]]] = OBSERVED.setdefault("dequeued", [])


class TimedScheduler(Scheduler):
    """Scrapy's scheduler."""

    def enqueue_request(self, request: Request) -> bool:
        begun = perf_counter_ns()
        taken = super().enqueue_request(request)
        _ENQUEUED.append(perf_counter_ns() - begun)
        return taken

    def next_request(self) -> Request | None:
        begun = perf_counter_ns()
        request = super().next_request()
        if request is not None:
            _DEQUEUED.append((perf_counter_ns() - begun, urlsplit(request.url).hostname))
        return request


class TimedFrontierScheduler(FrontierScheduler):
    """The frontier's scheduler."""

    def enqueue_request(self, request: Request) -> bool:
        begun = perf_counter_ns()
        taken = super().enqueue_request(request)
        _ENQUEUED.append(perf_counter_ns() - begun)
        return taken

    def next_request(self) -> Request | None:
        begun = perf_counter_ns()
        request = super().next_request()
        if request is not None:
            _DEQUEUED.append((perf_counter_ns() - begun, urlsplit(request.url).hostname))
        return request
