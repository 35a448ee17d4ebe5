"""What the server counts, in the text format of Prometheus.

Written here and not with ``prometheus-client`` (``docs/architecture/dependencies`` has the figures): a request costs a
look-up and a few additions. All counting happens in the event loop, so that nothing is locked; what other threads count
is read when it is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of the classes of durations, in seconds.
DURATIONS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_OTHER: Final = "other"

Labels = Mapping[str, str]


class _Series:
    """The requests of one resource, method and class of status."""

    __slots__ = ("buckets", "received", "requests", "seconds", "sent")

    def __init__(self) -> None:
        self.requests = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(DURATIONS) + 1)
        self.received = 0
        self.sent = 0


class Metrics:
    """Counters of requests and records."""

    def __init__(self) -> None:
        #: First parts of paths, by which requests are counted; those of any other path are counted as one.
        self.resources: Container[str] = frozenset()
        self._series: dict[tuple[str, str, int], _Series] = {}
        self._records: dict[str, int] = {}
        self._unreadable: dict[int, int] = {}

    def request(self, what: tuple[str, str], status: int, seconds: float, received: int, sent: int) -> None:
        """Count a request (path and method) that has ended; ``status`` 0: it broke off before there was one."""
        path, method = what
        key = (self._resource_of(path), method, status // 100)
        series = self._series.get(key)
        if series is None:
            key = (key[0], method if method in _METHODS else _OTHER, key[2])
            series = self._series.setdefault(key, _Series())
        series.requests += 1
        series.seconds += seconds
        series.buckets[bisect_left(DURATIONS, seconds)] += 1
        series.received += received
        series.sent += sent

    def records(self, path: str, number: int) -> None:
        """Count records that were stored."""
        resource = self._resource_of(path)
        self._records[resource] = self._records.get(resource, 0) + number

    def unreadable(self, status: int) -> None:
        """Count what was refused before it was a request."""
        self._unreadable[status] = self._unreadable.get(status, 0) + 1

    def _resource_of(self, path: str) -> str:
        first = path[1:].partition("/")[0]
        if first in self.resources:
            return first
        return _OTHER if first else "ui"

    def lines(self) -> Iterator[str]:
        """The counters as text."""
        series = [
            ({"resource": resource, "method": method, "status": f"{status}xx" if status else "broken"}, each)
            for (resource, method, status), each in sorted(self._series.items())
        ]
        yield from counter(
            "http_requests_total", "Requests that have ended.", ((labels, each.requests) for labels, each in series)
        )
        yield from counter(
            "http_request_bytes_total",
            "Bytes of bodies that were received, as they were sent.",
            ((labels, each.received) for labels, each in series),
        )
        yield from counter(
            "http_response_bytes_total",
            "Bytes of bodies that were sent.",
            ((labels, each.sent) for labels, each in series),
        )
        yield from histograms(
            "http_request_duration_seconds",
            "From the headers of a request to its end.",
            DURATIONS,
            ((labels, each.buckets, each.seconds) for labels, each in series),
        )
        yield from counter(
            "http_unreadable_total",
            "What was refused before it was a request: its headers were late, too large, or no HTTP.",
            (({"status": str(status)}, number) for status, number in sorted(self._unreadable.items())),
        )
        yield from counter(
            "records_written_total",
            "Records that were stored and synced.",
            (({"resource": resource}, number) for resource, number in sorted(self._records.items())),
        )


def counter(name: str, meaning: str, samples: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """A number that only grows."""
    yield from _head(name, "counter", meaning)
    for labels, value in samples:
        yield _sample(name, labels, value)


def gauge(name: str, meaning: str, value: float) -> Iterator[str]:
    """A number that is so at this moment."""
    yield from _head(name, "gauge", meaning)
    yield _sample(name, {}, value)


def histogram(
    name: str, labels: Labels, bounds: Sequence[float], numbers: Sequence[int], total: float
) -> Iterator[str]:
    """How many there were up to each bound; ``numbers`` has one more, for those above the last."""
    below = 0
    for bound, number in zip((*bounds, float("inf")), numbers, strict=True):
        below += number
        text = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield _sample(f"{name}_bucket", {**labels, "le": text}, below)
    yield _sample(f"{name}_sum", labels, total)
    yield _sample(f"{name}_count", labels, below)


def histograms(
    name: str, meaning: str, bounds: Sequence[float], series: Iterable[tuple[Labels, Sequence[int], float]]
) -> Iterator[str]:
    """One histogram for each set of labels."""
    yield from _head(name, "histogram", meaning)
    for labels, numbers, total in series:
        yield from histogram(name, labels, bounds, numbers, total)


def distribution(
    name: str, meaning: str, bounds: Sequence[float], numbers: Sequence[int], total: float
) -> Iterator[str]:
    """A histogram without labels."""
    yield from histograms(name, meaning, bounds, [({}, numbers, total)])


_PREFIX: Final = "scrapy_ext_"
#: Names that every client of Prometheus gives to the numbers of a process.
_STANDARD: Final = "process_"


def _named(name: str) -> str:
    return name if name.startswith(_STANDARD) else _PREFIX + name


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {_named(name)} {meaning}"
    yield f"# TYPE {_named(name)} {kind}"


def _sample(name: str, labels: Labels, value: float) -> str:
    # Labels are names of this package and never text of a client, so that nothing has to be escaped.
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{_named(name)}{{{inside}}} {value!r}" if inside else f"{_named(name)} {value!r}"
