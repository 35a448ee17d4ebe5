"""Records as received: the checks of the contract, and the separation of their keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.collections import record_faults
from scrapy_ext.api.violations import ContractError, refused

#: Start of an object whose first member is its key, up to the second member.
_KEY_FIRST: Final = re.compile(rb'\s*\{\s*"_key"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*')

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def checked(given: Sequence[tuple[int, bytes, dict[str, Any]]], key: str | None) -> list[tuple[bytes, bytes]]:
    """Return keys and records without them, from line numbers, lines and objects; raise ``ContractError``."""
    records: list[tuple[bytes, bytes]] = []
    for number, line, record in given:
        place = f"line {number}"
        if key is not None and record.setdefault("_key", key) != key:
            raise refused(place, f"has _key {record['_key']!r}, and the path says {key!r}", "Make them the same.")
        faults = list(record_faults(record, len(line), place))
        if faults:
            raise ContractError(faults)
        records.append((record["_key"].encode(), _without_key(line, record)))
    return records


def _without_key(line: bytes, record: dict[str, Any]) -> bytes:
    """Return the record without its key; the other members keep their bytes."""
    if len(record) == 1:
        return b"{}"
    if (first := _KEY_FIRST.match(line)) and not _perhaps_key(rest := line[first.end() :]):
        return b"{" + rest.strip()
    members = _members(line)
    members.pop("_key", None)
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + bytes(raw) for name, raw in members.items()) + b"}"


def _perhaps_key(rest: bytes) -> bool:
    """Return true when another member may be named _key, literally or with escapes."""
    return b'_key"' in rest or b"\\u00" in rest
