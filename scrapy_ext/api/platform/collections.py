"""Collections (platform-api.md, Collection and collection record; Limits)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from scrapy_ext.api.violations import Violation, refused

#: One record, as JSON.
MAX_RECORD_BYTES: Final = 1024 * 1024
MAX_NUMBER: Final = 2**64 - 1
#: Lifetime of records in ``cs`` and ``vcs``: a month, in milliseconds.
EXPIRY_MS: Final = 30 * 24 * 60 * 60 * 1000
#: Copies of a record kept by ``vs`` and ``vcs``.
COPIES: Final = 3
#: Last parts of a path that are not record keys: a record with such a key has no path of its own.
RESERVED_KEYS: Final = ("count", "deleted")

#: Pattern of names.
NAME_PATTERN: Final = "[A-Za-z0-9_]{1,255}"
_NAME: Final = re.compile(NAME_PATTERN)


class CollectionType(str, Enum):
    STORE = "s"
    CACHED_STORE = "cs"
    VERSIONED_STORE = "vs"
    VERSIONED_CACHED_STORE = "vcs"

    @property
    def expires(self) -> bool:
        """Return true when records expire a month after they were written."""
        return self in (CollectionType.CACHED_STORE, CollectionType.VERSIONED_CACHED_STORE)

    @property
    def copies(self) -> int:
        """The number of copies of a record that are kept."""
        return COPIES if self in (CollectionType.VERSIONED_STORE, CollectionType.VERSIONED_CACHED_STORE) else 1


_TYPES: Final = {kind.value: kind for kind in CollectionType}


class CollectionName(msgspec.Struct):
    """A line of ``/collections/<project>/list``."""

    type: str
    name: str


class Count(msgspec.Struct, omit_defaults=True):
    """The answer of ``.../count``; counting continues at ``nextstart``."""

    count: int
    scanned: int
    nextstart: str | None = None


def parse_type(text: str) -> CollectionType:
    """Read a type; raises :class:`ContractError`."""
    kind = _TYPES.get(text)
    if kind is None:
        raise refused("type", f"must be one of {', '.join(_TYPES)}, got {text[:60]!r}", "Use one of these.")
    return kind


def check_name(name: str, field: str = "name") -> None:
    """Raise :class:`ContractError` for a name that is not letters, digits and underscores."""
    if not _NAME.fullmatch(name):
        raise refused(
            field, f"must be 1 to 255 letters, digits or underscores, got {name[:60]!r}", "Rename the collection."
        )


def record_faults(record: Mapping[str, Any], size: int, place: str = "record") -> Iterator[Violation]:
    """Yield the violations of a record of ``size`` bytes of JSON."""
    key = record.get("_key")
    if not isinstance(key, str) or not key:
        yield Violation(place, "missing value for _key field", "Give every record a string _key.")
    if size > MAX_RECORD_BYTES:
        yield Violation(place, f"must be at most {MAX_RECORD_BYTES} bytes of JSON, got {size}", "Split it.", 413)
    elif not _numbers_fit(record):
        yield Violation(place, f"has a number that is infinite or over {MAX_NUMBER}", "Send it as a string.")


def _numbers_fit(record: Mapping[str, Any]) -> bool:
    # Iterative: a record may be nested as deeply as the decoder allows.
    pending: list[Any] = [record]
    while pending:
        value = pending.pop()
        for member in value.values() if isinstance(value, Mapping) else value:
            kind = type(member)
            if kind is str or kind is bool or member is None:
                continue
            if kind is int or kind is float:
                # The comparison also excludes infinity.
                if not -MAX_NUMBER <= member <= MAX_NUMBER:
                    return False
            elif kind is dict or kind is list:
                pending.append(member)
    return True
