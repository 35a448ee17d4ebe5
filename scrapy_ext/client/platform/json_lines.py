"""JSON lines, split and decoded as they arrive, so that reading takes the memory of one record."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

#: A frontier batch of 100 requests of 1 MiB each is the longest line that the contract allows.
MAX_LINE_BYTES: Final = 128 * 2**20

_KEY_FIELD: Final = re.compile(rb'"_key"\s*:')
#: The members that ``meta`` adds after those of a record, or before them.
_META: Final = rb'"_key":("(?:[^"\\]|\\.)*"),"_ts":([0-9]{1,18})'
_META_LAST: Final = re.compile(_META + rb"\}")
_META_FIRST: Final = re.compile(rb"\{" + _META + rb",?")
_DECODER: Final = msgspec.json.Decoder()
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class LineError(ValueError):
    """A line that is broken off, too long or of the wrong type."""


async def split(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield lines without their ends, and no blank ones. The last one may lack its end."""
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" not in chunk:
            if len(rest) > MAX_LINE_BYTES:
                raise LineError(f"a line is longer than {MAX_LINE_BYTES} bytes")
            continue
        *complete, last = rest.split(b"\n")
        rest = bytearray(last)
        for line in complete:
            if line.strip():
                yield bytes(line)
    if rest.strip():
        yield bytes(rest)


def encode(records: Iterable[Any]) -> bytes:
    """Encode records as JSON lines; each line ends with a newline."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def record(line: bytes) -> dict[str, Any]:
    """Decode the object of a line; raises :class:`LineError`."""
    try:
        decoded = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LineError(f"a line is not JSON ({error})") from None
    if not isinstance(decoded, dict):
        raise LineError(f"a line is not a JSON object but {type(decoded).__name__}")
    return decoded


def keyed_record(line: bytes, *, keep_key: bool) -> tuple[str, dict[str, Any]]:
    """Return the ``_key`` that the ``meta`` parameter added to a record, and the record.

    ``keep_key`` False removes the key from the record again. When the data has a field ``_key`` of its own, both are in
    the line (platform-api.md, Common conventions); the added one comes last, and the data's own stays in the record
    unless ``keep_key`` is set.
    """
    fields = record(line)
    key = fields.get("_key")
    if not isinstance(key, str):
        raise LineError("a record has no _key, although meta=_key was requested")
    if keep_key:
        return key, fields
    if len(_KEY_FIELD.findall(line)) > 1:
        return key, _own_fields(line)
    del fields["_key"]
    return key, fields


class StoredLine(NamedTuple):
    """A record as it is stored: its key, the time when it was stored (ms, None if unknown), and its bytes."""

    key: str
    ts: int | None
    line: bytes


def stored_line(line: bytes, prefix: str = "") -> StoredLine:
    """Return a record without the ``_key`` and ``_ts`` that ``meta`` added, with the bytes of its own fields.

    ``prefix`` is the beginning of its key, by which the added one differs from a field of the same name.
    """
    line = line.strip()
    place = line.rfind(b'"_key":')
    start = b'"' + prefix.encode()
    last = _META_LAST.fullmatch(line, place) if place > 0 else None
    if last is not None and last[1].startswith(start):
        return StoredLine(_text(last[1]), int(last[2]), line[:place].rstrip(b", ") + b"}")
    first = _META_FIRST.match(line)
    if first is not None and first[1].startswith(start):
        return StoredLine(_text(first[1]), int(first[2]), b"{" + line[first.end() :])
    try:
        members = _MEMBERS.decode(line)
        key = msgspec.json.decode(members.pop("_key", b"null"), type=str)
        ts = msgspec.json.decode(members.pop("_ts", b"null"), type=int | None)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise LineError(f"a line is no record with a _key ({error})") from None
    rest = b",".join(msgspec.json.encode(name) + b":" + bytes(value) for name, value in members.items())
    return StoredLine(key, ts, b"{" + rest + b"}")


def _text(encoded: bytes) -> str:
    text: str = msgspec.json.decode(encoded, type=str)
    return text


def _own_fields(line: bytes) -> dict[str, Any]:
    """Return the fields of a record without the ``_key`` that was added last."""
    pairs: list[tuple[str, Any]] = json.loads(line, object_pairs_hook=_Pairs)
    last = max(place for place, (name, _) in enumerate(pairs) if name == "_key")
    return {name: _plain(value) for place, (name, value) in enumerate(pairs) if place != last}


class _Pairs(list[tuple[str, Any]]):
    """An object whose names may repeat."""


def _plain(value: object) -> Any:
    if isinstance(value, _Pairs):
        return {name: _plain(member) for name, member in value}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return value
