"""Records of a job: items, requests, log lines and samples, with their stats (platform-api.md, Item; Request record;
Other records)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.violations import Violation, refused

#: One item, as the JSON that is sent; a larger one gets 413.
MAX_ITEM_BYTES: Final = 1024 * 1024
#: Characters of a log message: as JSON, a character has six bytes at most.
MAX_MESSAGE: Final = MAX_ITEM_BYTES // 8
#: Prefix of internal names: ``_type``, ``_template``, ``_cached_page_id``. ``stats`` omits them without ``all``.
HIDDEN_PREFIX: Final = "_"

_CONTENT_RANGE: Final = re.compile(r"items ([0-9]{1,18})-/\*", re.ASCII)


def content_range(start: int) -> str:
    """Return the ``Content-Range`` header that sets the index of the first item."""
    return f"items {start}-/*"


def parse_content_range(value: str) -> int:
    """Return the start index; raises :class:`ContractError`."""
    match = _CONTENT_RANGE.fullmatch(value.strip())
    if match is None:
        raise refused(
            "Content-Range",
            f"must be 'items <start>-/*', got {value[:60]!r}",
            "Send Content-Range: items 0-/* for a start at 0.",
        )
    return int(match[1])


def too_large(place: str, size: int) -> Violation:
    """Return the violation of an item (or any record of a job) over 1 MiB."""
    return Violation(
        place, f"must be at most {MAX_ITEM_BYTES} bytes of JSON, got {size}", "Split it, or leave fields out.", 413
    )


#: Method of a record without one.
DEFAULT_METHOD: Final = "GET"


class RequestRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One finished request.

    ``time`` is its start and ``duration`` its length, both in milliseconds; ``rs`` the size of the response in bytes;
    ``parent`` the index of the request whose callback made this one, absent for seeds; ``fp`` its fingerprint.
    """

    time: int
    # msgspec omits a plain default when encoding, and not every server fills it in.
    method: str = msgspec.field(default_factory=lambda: DEFAULT_METHOD)
    url: str
    status: int
    duration: int
    rs: int
    parent: int | None = None
    fp: str | None = None


#: A parent that is named by its place in a stream: number of the attempt that has written it, and index.
_PARENT_PATTERN: Final = "^[0-9]{1,18}:[0-9]{1,18}$"


class StreamRequestRecord(RequestRecord, kw_only=True, omit_defaults=True):
    """A request record that is written to a stream: ``parent`` may be text, ``writer:index``."""

    parent: int | Annotated[str, msgspec.Meta(pattern=_PARENT_PATTERN)] | None = None  # type: ignore[assignment]


class StreamPlaces(msgspec.Struct):
    """The answer to a write to a stream.

    ``places``: pairs of an index in the stream and an index in the job; the records from there on follow one another in
    both. Records before the first pair are stored, and their places are not known any more. ``parents_unknown``: number
    of request records that are stored without ``parent``: that record is not stored.
    """

    places: list[tuple[int, int]]
    parents_unknown: int = 0


#: Python's log levels, DEBUG to CRITICAL.
LEVELS: Final = (10, 20, 30, 40, 50)


class LogRecord(msgspec.Struct, kw_only=True):
    """A line of a job's log, in the form of real clients; ``time`` in milliseconds."""

    time: int
    level: int
    message: str


class Sample(NamedTuple):
    """Progress and memory of a running job.

    The contract names only the path of samples; a sample is a JSON array that begins with its time (ms). The runner
    writes one every few seconds, with counts since the job began and the memory of all its processes in bytes. Arrays
    of other clients may be longer or shorter.

    For a job with several workers, ``workers`` is their number, and the memory is that of one of them.
    """

    ts: int
    requests: int
    items: int
    log_lines: int
    memory: int
    workers: int = 0


#: Elements of the sample of a job with one worker.
_OF_ONE: Final = len(Sample._fields) - 1


def sample_of(record: Sequence[Any]) -> Sample | None:
    """Parse a stored array; None when it is not one of the runner's."""
    values = record[: len(Sample._fields)]
    if len(values) < _OF_ONE or not all(
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 for value in values
    ):
        return None
    return Sample(*values)


class Totals(msgspec.Struct):
    """Number and total bytes of records."""

    input_bytes: int
    input_values: int


class Stats(msgspec.Struct):
    """Stats of records: ``counts`` maps each field (for logs: each level) to the number of records with it."""

    counts: dict[str, int]
    totals: Totals


def shortened(message: str, most: int = MAX_MESSAGE) -> str:
    """Return a message of at most ``most`` characters; of a longer one its beginning, with the number left out."""
    if len(message) <= most:
        return message
    kept = max(most - 60, 0)
    return f"{message[:kept]}… ({len(message) - kept} more characters of this line are left out)"
