"""Item, request and log stats of a job (platform-api.md, Other records)."""

from __future__ import annotations

import msgspec


class Totals(msgspec.Struct):
    """``input_values`` records of ``input_bytes`` in all."""

    input_bytes: int
    input_values: int


class Stats(msgspec.Struct):
    """``counts`` gives for each field (for logs: each level) in how many records it occurs."""

    counts: dict[str, int]
    totals: Totals
