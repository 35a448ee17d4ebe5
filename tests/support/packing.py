"""A chunk of a few records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scrapy_ext.server.store.records.chunks import Packer, RecordChunk, RecordKind


def pack_chunk(kind: RecordKind, lines: Sequence[bytes], records: Sequence[dict[str, Any]]) -> RecordChunk:
    """These records, which must fit into one chunk."""
    packer = Packer(kind)
    full = packer.add(lines, records)
    (chunk,) = [chunk for chunk in (*full, packer.rest()) if chunk is not None]
    return chunk
