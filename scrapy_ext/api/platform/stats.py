"""Item, request and log stats of a job (platform-api.md, Other records)."""

from __future__ import annotations

import msgspec


class Totals(msgspec.Struct):
    """Number and total bytes of records."""

    input_bytes: int
    input_values: int


class Stats(msgspec.Struct):
    """Stats of records: ``counts`` maps each field (for logs: each level) to the number of records with it."""

    counts: dict[str, int]
    totals: Totals
