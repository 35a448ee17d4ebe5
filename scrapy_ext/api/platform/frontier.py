"""The frontier (platform-api.md, Frontier objects; Frontier)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from scrapy_ext.api.violations import Violation, refused

#: Maximum requests of a batch, all of one priority.
MAX_BATCH: Final = 100
DEFAULT_PRIORITY: Final = 0
#: One request object, as JSON: the limit of any stored record.
MAX_REQUEST_BYTES: Final = 1024 * 1024

#: Pattern of the names of frontiers and slots.
NAME_PATTERN: Final = r"[A-Za-z0-9_.\-]{1,255}"
_NAME: Final = re.compile(NAME_PATTERN)


class FrontierRequest(msgspec.Struct, omit_defaults=True):
    """A request to enqueue; lower ``p`` comes first. ``qdata`` is returned with it, ``fdata`` stays with the
    fingerprint."""

    fp: str
    qdata: Any = None
    fdata: Any = None
    p: int = DEFAULT_PRIORITY


class Batch(msgspec.Struct):
    """Requests read together, as ``[fp, qdata]`` pairs, returned again until its ID is posted to ``q/deleted``."""

    id: str
    requests: list[tuple[str, Any]]


class NewCount(msgspec.Struct):
    """The number of requests whose fingerprint the slot had not seen."""

    newcount: int


class QueueCount(msgspec.Struct, omit_defaults=True):
    """The answer of ``.../q/count``: requests in the queue. Counting continues at ``nextstart``."""

    count: int
    nextstart: str | None = None


class Fingerprint(msgspec.Struct):
    """A line of ``.../f``."""

    fp: str


def check_name(name: str, field: str) -> None:
    """Raise :class:`ContractError` for a name of a frontier or slot that no path can hold."""
    if not _NAME.fullmatch(name):
        raise refused(
            field, f"must be 1 to 255 letters, digits, '_', '-' or '.', got {name[:60]!r}", "Choose another name."
        )


def request_faults(request: FrontierRequest, size: int, place: str) -> Iterator[Violation]:
    """Yield the violations of a request object of ``size`` bytes of JSON."""
    if not request.fp:
        yield Violation(place, "fp must not be empty", "Give the request a fingerprint.")
    if not -(2**31) <= request.p < 2**31:
        yield Violation(place, f"p must fit in 32 bits, got {request.p}", "Use smaller priorities.")
    if size > MAX_REQUEST_BYTES:
        yield Violation(
            place, f"must be at most {MAX_REQUEST_BYTES} bytes of JSON, got {size}", "Send less qdata.", 413
        )
