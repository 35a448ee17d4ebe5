"""Counts, costs and latencies of extraction by domain and kind of request.

One call updates two rows in memory, that of the domain and that of the kind, which takes one or two microseconds; stats
and the table for the log are computed from the rows on demand. Everything is bounded: :data:`DOMAINS` domains have
rows, requests to further ones are counted together, and latencies are counted in a histogram.

The bounds of the histogram grow by 4 % from 1 ms to one hour, so that a percentile is off by 2 % at most. Only requests
with a result count: a refusal takes no time and a timeout takes all of it, and neither says how fast pages come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import ceil, exp, log
from typing import Any, Final

import msgspec

#: Every stat of :meth:`Tally.stats`. ``docs/reference/stats.rst`` describes them.
STATS: Final = (
    "extract_api/attempts",
    "extract_api/success",
    "extract_api/retries",
    "extract_api/retries/<reason>",
    "extract_api/errors/<type>",
    "extract_api/ambiguous",
    "extract_api/escalations",
    "extract_api/escalations/<reason>",
    "extract_api/cost",
    "extract_api/failed_seconds",
    "extract_api/throttled_seconds",
    "extract_api/latency/<percentile>",
    "extract_api/kinds/<kind>/<count>",
    "extract_api/domains/<domain>/<count>",
)

#: Domains with rows of their own, and those of them in the stats and in the table.
DOMAINS: Final = 10_000
SHOWN: Final = 20
#: The row of all further domains.
OTHERS: Final = "others"
#: The row of counts of a domain that do not depend on the kind.
_ANY: Final = ""

#: Lowest and highest bound of the histogram in seconds, and the growth of its bounds.
SHORTEST: Final = 0.001
LONGEST: Final = 3600.0
GROWTH: Final = 1.04

_PER_BUCKET: Final = log(GROWTH)
_SCALE: Final = 1 / _PER_BUCKET
_OFFSET: Final = -log(SHORTEST) * _SCALE
_PERCENTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
_HEADER: Final = ("domain", "kind", "requests", "retries", "errors", "throttled", "p50", "p95", "cost")
#: Least characters of a name that is cut to make room for the numbers.
_LEAST_NAME: Final = 12


class _Row(msgspec.Struct):
    """Counts of one kind of request, to one domain or in all. ``latencies`` counts by bucket of the histogram."""

    attempts: int = 0
    errors: int = 0
    retries: int = 0
    cost: float = 0.0
    failed_seconds: float = 0.0
    throttled_seconds: float = 0.0
    latencies: dict[int, int] = {}

    def percentile(self, share: float) -> float | None:
        """Return the latency that this share of requests did not exceed, in seconds; None without requests."""
        left = ceil(share * sum(self.latencies.values()))
        for bucket in sorted(self.latencies):
            left -= self.latencies[bucket]
            if left <= 0:
                # The geometric middle: above and below it the error is the same.
                return SHORTEST * exp((bucket + 0.5) * _PER_BUCKET)
        return None


class Tally:
    """The counts of one crawl. A kind is ``"http"`` or ``"browser"``."""

    def __init__(self) -> None:
        self._domains: dict[str, dict[str, _Row]] = {}
        self._kinds: dict[str, _Row] = {}
        self._errors: Counter[str] = Counter()
        self._retries: Counter[str] = Counter()
        self._escalations: Counter[str] = Counter()
        self._ambiguous = 0

    def answered(self, domain: str, kind: str, seconds: float, cost: float) -> None:
        """Count a request with a result, and its latency."""
        # In this order of the arguments, what is not a number counts as the longest.
        bucket = int(log(max(min(LONGEST, seconds), SHORTEST)) * _SCALE + _OFFSET)
        for row in self._rows(domain, kind):
            row.attempts += 1
            row.cost += cost
            latencies = row.latencies
            latencies[bucket] = latencies.get(bucket, 0) + 1

    def failed(
        self, domain: str, kind: str, seconds: float, reason: str, *, retried: bool, ambiguous: bool, cost: float
    ) -> None:
        """Count a failed request. ``reason``: the problem type or the name of the exception; ``retried``: another
        attempt follows; ``ambiguous``: it may have been done and billed; ``cost``: its presumed cost."""
        for row in self._rows(domain, kind):
            row.attempts += 1
            row.errors += 1
            row.retries += retried
            row.cost += cost
            row.failed_seconds += seconds
        reason = reason.strip("/")
        self._errors[reason] += 1
        self._ambiguous += ambiguous
        if retried:
            self._retries[reason] += 1

    def throttled(self, domain: str, seconds: float) -> None:
        """Add seconds by which a limit delayed requests to a domain."""
        for row in self._rows(domain, _ANY):
            row.throttled_seconds += seconds

    def escalated(self, reason: str) -> None:
        """Count a page that was requested again from a browser."""
        self._escalations[reason] += 1

    def stats(self, *, domains: bool = True) -> dict[str, int | float]:
        """Return all stats by name, :data:`STATS`, without those that are 0. ``domains`` False leaves out those by
        domain: while the crawl runs, other domains may come to have them."""
        total = _sum(self._kinds.values())
        stats: dict[str, int | float | None] = {
            "attempts": total.attempts,
            "success": total.attempts - total.errors,
            "retries": total.retries,
            "ambiguous": self._ambiguous,
            "escalations": self._escalations.total(),
            "cost": round(total.cost, 6),
            "failed_seconds": round(total.failed_seconds, 3),
            "throttled_seconds": round(total.throttled_seconds, 3),
        }
        for group, counts in (("retries", self._retries), ("errors", self._errors), ("escalations", self._escalations)):
            stats.update({f"{group}/{reason}": count for reason, count in counts.items()})
        for name, share in _PERCENTILES:
            latency = total.percentile(share)
            stats[f"latency/{name}"] = None if latency is None else float(f"{latency:.3g}")
        stats.update(self._stats_by_kind())
        if domains:
            stats.update(self._stats_by_domain())
        return {f"extract_api/{name}": value for name, value in stats.items() if value}

    def table(self, width: int = 100) -> str:
        """Return domains and kinds with their counts, as text for the log; empty when nothing was sent."""
        total = _sum(self._kinds.values())
        if not total.attempts:
            return ""
        lines: list[list[str]] = [[*_HEADER]]
        for domain, rows in self._largest():
            lines += _lines(domain, rows)
        if len(lines) > 2:
            lines += _lines("total", {"": total})
        if not total.cost:
            lines = [line[:-1] for line in lines]
        return _drawn(lines, width)

    def _rows(self, domain: str, kind: str) -> tuple[_Row, _Row]:
        try:
            return self._domains[domain][kind], self._kinds[kind]
        except KeyError:
            if domain not in self._domains and len(self._domains) >= DOMAINS:
                domain = OTHERS
            row = self._domains.setdefault(domain, {}).setdefault(kind, _Row())
            return row, self._kinds.setdefault(kind, _Row())

    def _largest(self) -> list[tuple[str, dict[str, _Row]]]:
        """Return the domains with the most requests, by their number, and all others in one row."""

        def size(domain: str) -> tuple[int, str]:
            return -sum(row.attempts for row in self._domains[domain].values()), domain

        names = sorted(self._domains.keys() - {OTHERS}, key=size)
        shown = [(name, self._domains[name]) for name in names[:SHOWN]]
        if len(names) > SHOWN or OTHERS in self._domains:
            shown.append((OTHERS, self._rest(row for _, rows in shown for row in rows.items())))
        return shown

    def _rest(self, shown: Iterable[tuple[str, _Row]]) -> dict[str, _Row]:
        """Return the counts of all domains by kind, without these rows."""
        by_kind: dict[str, list[_Row]] = {}
        for kind, row in shown:
            by_kind.setdefault(kind, []).append(row)
        return {kind: _combined(row, _sum(by_kind.get(kind, ())), -1) for kind, row in self._kinds.items()}

    def _stats_by_kind(self) -> Iterator[tuple[str, int | float]]:
        for kind in sorted(self._kinds.keys() - {_ANY}):
            yield f"kinds/{kind}/attempts", self._kinds[kind].attempts
            yield f"kinds/{kind}/cost", round(self._kinds[kind].cost, 6)

    def _stats_by_domain(self) -> Iterator[tuple[str, int | float]]:
        for domain, rows in self._largest():
            row = _sum(rows.values())
            yield f"domains/{domain}/attempts", row.attempts
            yield f"domains/{domain}/errors", row.errors
            yield f"domains/{domain}/throttled_seconds", round(row.throttled_seconds, 3)
            yield f"domains/{domain}/cost", round(row.cost, 6)


def _sum(rows: Iterable[_Row]) -> _Row:
    total = _Row()
    for row in rows:
        total = _combined(total, row, 1)
    return total


def _combined(row: _Row, other: _Row, sign: int) -> _Row:
    """Add (1) or subtract (-1) a row. A difference of sums of floats may be slightly below 0."""
    numbers = [name for name in _Row.__struct_fields__ if name != "latencies"]
    counts: dict[str, Any] = {name: max(0, getattr(row, name) + sign * getattr(other, name)) for name in numbers}
    latencies = Counter(row.latencies)
    (latencies.update if sign > 0 else latencies.subtract)(other.latencies)
    return _Row(**counts, latencies=latencies)


def _lines(domain: str, rows: dict[str, _Row]) -> Iterator[list[str]]:
    """Yield a line for each kind; counts that do not depend on the kind are in the first one."""
    throttled = sum(row.throttled_seconds for row in rows.values())
    sent = sorted((kind, row) for kind, row in rows.items() if row.attempts) or [("", _Row())]
    for number, (kind, row) in enumerate(sent):
        yield [
            "" if number else domain,
            kind,
            str(row.attempts),
            str(row.retries),
            str(row.errors),
            "" if number else _seconds(throttled),
            _seconds(row.percentile(0.5)),
            _seconds(row.percentile(0.95)),
            f"{row.cost:.4f}",
        ]


def _seconds(seconds: float | None) -> str:
    if not seconds:
        return "-"
    return f"{seconds:.{0 if seconds >= 100 else 1 if seconds >= 10 else 2}f} s"


def _drawn(lines: list[list[str]], width: int) -> str:
    """Align names to the left and numbers to the right; names are cut so that a line is no wider than ``width``."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    widths[0] = min(widths[0], max(_LEAST_NAME, width - sum(widths[1:]) - 2 * len(widths[1:])))
    drawn = []
    for name, kind, *numbers in lines:
        cut = name if len(name) <= widths[0] else f"{name[: widths[0] - 3]}..."
        cells = [cut.ljust(widths[0]), kind.ljust(widths[1])]
        cells += [number.rjust(wide) for number, wide in zip(numbers, widths[2:], strict=True)]
        drawn.append("  ".join(cells).rstrip())
    return "\n".join(drawn)
