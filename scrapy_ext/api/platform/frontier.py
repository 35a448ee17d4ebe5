"""The frontier (platform-api.md, Frontier objects; Frontier), and the slot of a request.

The slot is a pure function of the host over a fixed number of slots; in a crawl by several workers, of the host and the
fingerprint (:func:`spread_slot`). Crawls and whoever feeds them choose slots by
this rule alone. A slot has its own set of fingerprints, so a request in another slot than the crawl's would not be
recognized as a duplicate.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import ParseResult, urlparse

import msgspec

from scrapy_ext.api.violations import Violation, encodable, refused

#: Maximum requests of a batch, all of one priority.
MAX_BATCH: Final = 100
DEFAULT_PRIORITY: Final = 0
#: One request object, as JSON: the limit of any stored record.
MAX_REQUEST_BYTES: Final = 1024 * 1024

#: Number of slots of a frontier without FRONTIER_SLOTS, and its maximum.
DEFAULT_SLOTS: Final = 8
MAX_SLOTS: Final = 1024
#: Meta key that overrides the slot of a request.
META_KEY: Final = "frontier_slot"

#: Pattern of the names of frontiers and slots, which are no steps of a path.
NAME_PATTERN: Final = r"(?!\.{1,2}$)[A-Za-z0-9_.\-]{1,255}"
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


class SlotRequest(FrontierRequest, omit_defaults=True, kw_only=True):
    """A request to enqueue, and its slot."""

    slot: str


class SlotRead(msgspec.Struct, omit_defaults=True):
    """A read of a slot: its first batches with ``mincount`` requests, and of these the ones that are not ``known``."""

    slot: str
    mincount: int = MAX_BATCH
    known: list[str] = []


class SlotBatch(Batch):
    """A batch, and its slot."""

    slot: str


class ProcessedBatches(msgspec.Struct):
    """IDs of batches of a slot."""

    slot: str
    ids: list[str]


class NewCount(msgspec.Struct):
    """The number of requests whose fingerprint the slot had not seen."""

    newcount: int


class SlotCounts(NewCount):
    """The number of new requests in all, and by slot."""

    slots: dict[str, int]


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
            field,
            f"must be 1 to 255 letters, digits, '_', '-' or '.', and not '.' or '..', got {name[:60]!r}",
            "Choose another name.",
        )


def is_valid(request: FrontierRequest) -> bool:
    """Return true for a request without faults but, possibly, its size."""
    return bool(request.fp) and -(2**31) <= request.p < 2**31


def request_faults(request: FrontierRequest, size: int, place: str) -> Iterator[Violation]:
    """Yield the violations of a request object of ``size`` bytes of JSON."""
    if not request.fp:
        yield Violation(f"{place}: fp", "must not be empty", "Give the request a fingerprint.")
    if not -(2**31) <= request.p < 2**31:
        yield Violation(f"{place}: p", f"must fit in 32 bits, got {request.p}", "Use smaller priorities.")
    if size > MAX_REQUEST_BYTES:
        yield Violation(
            place, f"must be at most {MAX_REQUEST_BYTES} bytes of JSON, got {size}", "Send less qdata.", 413
        )


# ── dead letters: requests of a frontier whose last attempt failed, and their return to the qu ──

#: The slot of dead letters. No crawl reads it.
DEAD_LETTERS: Final = "dead-letters"
#: Maximum characters of a stored error.
_MAX_ERROR: Final = 2000
#: Separator between a fingerprint and the number of times that its request was put back.
_PUT_BACK: Final = "~"


class PutBack(NamedTuple):
    """A request to queue again, and its slot."""

    slot: str
    request: FrontierRequest


def dead_letter(slot: int, fp: str, form: object, error: str) -> FrontierRequest:
    """Return the dead letter of a request of ``slot``, with its error."""
    letter = {"slot": slot, "fp": fp, "request": form, "error": encodable(error[:_MAX_ERROR])}
    # Two slots may have the same fingerprint.
    return FrontierRequest(f"{slot}/{fp}", letter)


def revived(key: str, letter: Any) -> PutBack:
    """Return the request of a dead letter, to queue it again; raises ``ValueError`` for another record."""
    try:
        slot, fp, form = str(int(letter["slot"])), str(letter["fp"]), letter["request"]
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{key} in slot {DEAD_LETTERS} is not a dead letter: delete it there") from None
    return PutBack(slot, _requeued(fp, form))


def _requeued(fp: str, form: object) -> FrontierRequest:
    """Return the request with a new fingerprint, since its slot has seen the old one."""
    if not isinstance(form, dict):
        return FrontierRequest(next_fingerprint(fp), form)
    priority = form.get("priority", 0)
    return FrontierRequest(next_fingerprint(fp), form, p=-priority if isinstance(priority, int) else 0)


def next_fingerprint(fp: str) -> str:
    """Return the fingerprint for the next attempt of a request whose slot has seen ``fp``."""
    original, separator, times = fp.rpartition(_PUT_BACK)
    if separator and times.isascii() and times.isdigit():
        return f"{original}{_PUT_BACK}{int(times) + 1}"
    return f"{fp}{_PUT_BACK}1"


# ── slots ──


def slot_of_url(url: str, chosen: object, slots: int) -> int:
    """Return the slot of a request, 0 to ``slots - 1``; ``chosen`` is its meta ``frontier_slot``."""
    return slot_of_netloc(urlparse(url).netloc, slots) if chosen is None else chosen_slot(chosen, slots)


def spread_slot(netloc: str, fp: str, slots: int, cookiejar: object = None) -> int:
    """Return the slot of a request in a frontier that spreads hosts: it follows from the host and Scrapy's fingerprint
    ``fp``, so that the same page has one slot. Requests with a ``cookiejar`` have the slot of its name: one worker has
    the jar."""
    key = f"{hostname(netloc)} {fp}" if cookiejar is None else f"cookiejar {cookiejar}"
    return _slot_of_key(key, slots)


def chosen_slot(chosen: object, slots: int) -> int:
    """Return the slot that meta ``frontier_slot`` names: a number is the slot itself, text is hashed in place of the
    host."""
    if isinstance(chosen, int) and not isinstance(chosen, bool):
        return chosen % slots
    return _slot_of_key(str(chosen), slots)


# Most requests are for few hosts.


@lru_cache(maxsize=10_000)
def hostname(netloc: str) -> str:
    """Return the host of a URL's authority, in lower case; "" without one."""
    return ParseResult("", netloc, "", "", "", "").hostname or ""


@lru_cache(maxsize=10_000)
def slot_of_netloc(netloc: str, slots: int) -> int:
    return _slot_of_key(hostname(netloc), slots)


def _slot_of_key(key: str, slots: int) -> int:
    return zlib.crc32(key.lower().encode("utf-8", "surrogatepass")) % slots
