"""The manifest of a delivery, ``job.json``: the job, and each object with its size and hash.

It is the last object of a delivery: without it, the folder is incomplete. It has all that a restore needs to give the
records the keys and times that they had.
"""

from __future__ import annotations

from typing import Final

import msgspec

#: Version of the format; a reader refuses a newer one.
VERSION: Final = 1


class DeliveredObject(msgspec.Struct, kw_only=True):
    """An object in the folder of the delivery."""

    object: str
    size: int
    sha256: str


class DeliveredRecords(DeliveredObject, kw_only=True):
    """The records of one kind as JSON lines.

    ``start``: index of the first one. ``bytes`` and ``counts``: as in the stats of the job. ``times``: JSON lines
    with an array for each stored chunk, of pairs [number of records, time stored (ms)].
    """

    start: int
    records: int
    bytes: int
    counts: dict[str, int]
    times: DeliveredObject


class Manifest(msgspec.Struct, kw_only=True):
    """``metadata``: that of the job. ``kinds``: empty for a job without records. ``tables``: the same records as
    Parquet. ``comments``: those on items."""

    version: int = VERSION
    delivery: str
    job: str
    spider: str
    created: int
    metadata: msgspec.Raw
    kinds: dict[str, DeliveredRecords]
    tables: dict[str, DeliveredObject] = msgspec.field(default_factory=dict)
    comments: DeliveredObject | None = None


decode: Final = msgspec.json.Decoder(Manifest).decode
encode: Final = msgspec.json.Encoder(order="deterministic").encode
