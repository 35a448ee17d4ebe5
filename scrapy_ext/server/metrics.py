"""Metrics of the server, as families, and these in the text format of Prometheus.

``prometheus-client`` is not used (figures: ``docs/architecture/decisions``): a request costs a look-up and a few
additions here. All counters are changed in the event loop, so there are no locks; counters of other threads are read on
demand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from scrapy_ext.telemetry.families import Distribution, Family, Labels

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of the buckets of durations, in seconds.
DURATIONS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_OTHER: Final = "other"


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
    def __init__(self) -> None:
        #: First parts of paths that are labels of requests; others share the label ``other``.
        self.resources: Container[str] = frozenset()
        self._series: dict[tuple[str, str, int], _Series] = {}
        self._records: dict[str, int] = {}
        self._unreadable: dict[int, int] = {}

    def request(self, target: tuple[str, str], status: int, seconds: float, received: int, sent: int) -> None:
        """Count a request (path and method) that has ended; ``status`` 0: it broke off before its answer."""
        path, method = target
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
        resource = self._resource_of(path)
        self._records[resource] = self._records.get(resource, 0) + number

    def unreadable(self, status: int) -> None:
        """Count a refusal before a complete request."""
        self._unreadable[status] = self._unreadable.get(status, 0) + 1

    def _resource_of(self, path: str) -> str:
        first = path[1:].partition("/")[0]
        if first in self.resources:
            return first
        return _OTHER if first else "ui"

    def families(self) -> Iterator[Family]:
        series = [
            ({"resource": resource, "method": method, "status": f"{status}xx" if status else "broken"}, each)
            for (resource, method, status), each in sorted(self._series.items())
        ]
        for name, meaning, field in (
            ("http_requests_total", "Requests that have ended.", "requests"),
            ("http_request_bytes_total", "Bytes of received bodies, as sent.", "received"),
            ("http_response_bytes_total", "Bytes of sent bodies.", "sent"),
        ):
            yield from counter(name, meaning, ((labels, getattr(each, field)) for labels, each in series))
        yield from histograms(
            "http_request_duration_seconds",
            "From the headers of a request to its end.",
            DURATIONS,
            ((labels, each.buckets, each.seconds) for labels, each in series),
        )
        yield from counter(
            "http_unreadable_total",
            "Refusals before a complete request: its headers were late, too large, or not HTTP.",
            (({"status": str(status)}, number) for status, number in sorted(self._unreadable.items())),
        )
        yield from counter(
            "records_written_total",
            "Records that were stored and synced.",
            (({"resource": resource}, number) for resource, number in sorted(self._records.items())),
        )


def counter(name: str, meaning: str, samples: Iterable[tuple[Labels, float]]) -> Iterator[Family]:
    """Yield a number that only grows."""
    yield Family(_named(name), "counter", meaning, list(samples))


def gauge(name: str, meaning: str, value: float) -> Iterator[Family]:
    """Yield a current number."""
    yield from gauges(name, meaning, [({}, value)])


def gauges(name: str, meaning: str, samples: Iterable[tuple[Labels, float]]) -> Iterator[Family]:
    """Yield a current number for each set of labels."""
    yield Family(_named(name), "gauge", meaning, list(samples))


def histograms(
    name: str, meaning: str, bounds: Sequence[float], series: Iterable[tuple[Labels, Sequence[int], float]]
) -> Iterator[Family]:
    """Yield a histogram for each set of labels: ``numbers`` of each bucket, the last one above all bounds."""
    samples = [(labels, Distribution(bounds, numbers, total)) for labels, numbers, total in series]
    yield Family(_named(name), "histogram", meaning, samples)


def distribution(
    name: str, meaning: str, bounds: Sequence[float], numbers: Sequence[int], total: float
) -> Iterator[Family]:
    """Yield a histogram without labels."""
    yield from histograms(name, meaning, bounds, [({}, numbers, total)])


_PREFIX: Final = "scrapy_ext_"
#: Prefix of Prometheus's standard names for metrics of a process.
_STANDARD: Final = "process_"


def _named(name: str) -> str:
    return name if name.startswith(_STANDARD) else _PREFIX + name


# ── as text ──


def lines(families: Iterable[Family]) -> Iterator[str]:
    """Yield the lines of families."""
    for name, kind, meaning, samples in families:
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} {kind}"
        for labels, value in samples:
            if isinstance(value, Distribution):
                yield from _histogram(name, labels, value)
            else:
                yield _sample(name, labels, value)


def _histogram(name: str, labels: Labels, found: Distribution) -> Iterator[str]:
    below = 0
    for bound, number in zip((*found.bounds, float("inf")), found.numbers, strict=True):
        below += number
        text = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield _sample(f"{name}_bucket", {**labels, "le": text}, below)
    yield _sample(f"{name}_sum", labels, found.total)
    yield _sample(f"{name}_count", labels, below)


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
