"""Families of metrics, from which both the text for Prometheus and the export by OTLP are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

Labels = Mapping[str, str]


class Distribution(NamedTuple):
    """The sample of a histogram: ``numbers`` of each bucket, the last one above all ``bounds``."""

    bounds: Sequence[float]
    numbers: Sequence[int]
    total: float


class Family(NamedTuple):
    """A metric with its samples, one for each set of labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    samples: Sequence[tuple[Labels, float | Distribution]]


#: Returns the current metrics.
Collect = Callable[[], Awaitable[Iterable[Family]]]
