"""Samples of a running job's progress and memory. The contract names only their path.

A sample is a JSON array that begins with its time. The runner writes one every few seconds:
``[ts_ms, requests, items, log_lines, memory_bytes]``, with counts since the job began and the current memory of all its
processes. Arrays of other clients may be longer or shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """A sample of the runner."""

    ts: int
    requests: int
    items: int
    log_lines: int
    memory: int


def sample_of(record: Sequence[Any]) -> Sample | None:
    """Parse a stored array; None when it is not one of the runner's."""
    values = record[: len(Sample._fields)]
    if len(values) < len(Sample._fields) or not all(
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 for value in values
    ):
        return None
    return Sample(*values)
