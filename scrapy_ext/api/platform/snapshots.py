"""Snapshots: pages whose callback raised, with their screenshots, in a collection of the project.

A snapshot of a job is a record with the key ``job-<spider>-<job>/snapshots/<id>``, and pieces of its content before it:
``job-<spider>-<job>/parts/<id>/<part>.<n>``, since a record has a limit. The record is written last, so that a reader
who finds it finds the pieces. IDs are in the order of time. Records expire after a month, and are removed with the job.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
import pybase64
from msgspec import Meta

from scrapy_ext.api import compression
from scrapy_ext.api.platform.job_data import OWNED_COLLECTIONS, SNAPSHOTS_COLLECTION, snapshots_prefix
from scrapy_ext.api.platform.keys import JobKey

COLLECTION: Final = SNAPSHOTS_COLLECTION
TYPE: Final = OWNED_COLLECTIONS[COLLECTION].type

#: Snapshots of a crawl by default, and the highest number that a user can set.
USUAL: Final = 100
MOST: Final = 1000
#: Bytes of a page, in UTF-8, after which it is cut, and bytes of the largest screenshot that is kept.
MAX_PAGE: Final = 4 * 2**20
MAX_SCREENSHOT: Final = 8 * 2**20
#: Characters of a URL and of a message.
MAX_URL: Final = 2000
MAX_MESSAGE: Final = 1000
#: Characters of the name of an error or a callback.
MAX_NAME: Final = 200
#: The last millisecond with a year of four digits.
_LAST_TIME: Final = 253_402_300_799_999
#: Base64 characters of one piece, below the limit of a record to leave room for its other members.
_PIECE: Final = 900_000
#: The most pieces: those of a screenshot, whose Base64 has a third more bytes. A page is compressed.
_MOST_PIECES: Final = MAX_SCREENSHOT * 4 // 3 // _PIECE + 1
ID_PATTERN: Final = "[0-9]{13}-[0-9a-f]{8}"
_ID: Final = re.compile(ID_PATTERN, re.ASCII)
#: First bytes of the images that are shown, and their media types.
_IMAGES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)


class Part(str, Enum):
    """A part of a snapshot's content. Pages are compressed, screenshots are by their format."""

    PAGE = "page"
    SCREENSHOT = "screenshot"


class Missing(str, Enum):
    """Reason for which a snapshot lacks a part."""

    EMPTY = "empty"
    BINARY = "binary"
    DIRECT = "direct"
    HTTP = "http"
    NOT_REQUESTED = "not-requested"
    NO_IMAGE = "no-image"
    TOO_LARGE = "too-large"


#: Reasons in whole sentences.
REASONS: Final[dict[str, str]] = {
    Missing.EMPTY: "The response has no body.",
    Missing.BINARY: "The body is not text.",
    Missing.DIRECT: "There is no result of the extraction API: the request went direct to the site, or the HTTP cache "
    "has not kept it.",
    Missing.HTTP: "The page was fetched by HTTP; screenshots need the browser.",
    Missing.NOT_REQUESTED: 'The request did not have the field "screenshot": True in its meta extract_api.',
    Missing.NO_IMAGE: "The screenshot is not an image in PNG, JPEG or WebP.",
    Missing.TOO_LARGE: f"The screenshot has more than {MAX_SCREENSHOT // 2**20} MiB.",
}


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part that is there: its bytes, and its pieces in the collection. ``cut``: the rest of it was left out."""

    bytes: Annotated[int, Meta(ge=0, le=MAX_SCREENSHOT)]
    pieces: Annotated[int, Meta(ge=1, le=_MOST_PIECES)] = 1
    cut: bool = False


_Name = Annotated[str, Meta(max_length=MAX_NAME)]


class Snapshot(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A page whose callback or errback raised. ``time`` in milliseconds. A record with other values is no snapshot."""

    time: Annotated[int, Meta(ge=0, le=_LAST_TIME)]
    url: Annotated[str, Meta(max_length=MAX_URL)]
    status: Annotated[int, Meta(ge=0, le=999)]
    #: Name of the exception's class, and its text.
    error: _Name
    message: Annotated[str, Meta(max_length=MAX_MESSAGE)] = ""
    #: Name of the callback or errback that raised.
    callback: _Name = ""
    #: Format of the page: html, xml, json or txt.
    format: _Name = "txt"
    page: Content | None = None
    no_page: _Name = ""
    screenshot: Content | None = None
    no_screenshot: _Name = ""

    def content(self, part: Part) -> Content | None:
        return self.page if part is Part.PAGE else self.screenshot


class StoredSnapshot(msgspec.Struct, frozen=True):
    """A snapshot of a job with its ID."""

    job: JobKey
    id: str
    snapshot: Snapshot

    def keys_of(self, part: Part) -> list[str]:
        """Return the keys of the pieces of a part; none if it is missing."""
        content = self.snapshot.content(part)
        return [_part_key(self.job, self.id, part, number) for number in range(content.pieces if content else 0)]


class _Piece(msgspec.Struct):
    data: str


def new_id(time: int) -> str:
    """Return an ID for a snapshot that is taken at a time (ms), unique among those of its job."""
    return f"{time:013}-{secrets.token_hex(4)}"


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def list_prefix(job: JobKey) -> str:
    """Return the start of the keys of a job's snapshots, without their pieces."""
    return f"{snapshots_prefix(job)}snapshots/"


def snapshot_key(job: JobKey, id: str) -> str:
    return list_prefix(job) + id


def _part_key(job: JobKey, id: str, part: Part, number: int) -> str:
    return f"{snapshots_prefix(job)}parts/{id}/{part.value}.{number}"


def stored(job: JobKey, key: str, record: bytes) -> StoredSnapshot | None:
    """Return the snapshot of a record; None for a record that is no snapshot, since any client may write there."""
    name = key.removeprefix(list_prefix(job))
    try:
        return StoredSnapshot(job, name, _decode(record)) if is_id(name) else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


_decode: Final = msgspec.json.Decoder(Snapshot).decode
_decode_piece: Final = msgspec.json.Decoder(_Piece).decode


# ── content: some milliseconds for large pages ──


class DamagedPartError(ValueError):
    """The pieces of a part are missing or no content."""


def lines_of(job: JobKey, id: str, snapshot: Snapshot, parts: Mapping[Part, bytes]) -> list[bytes]:
    """Return the records of a snapshot as JSON lines, in the order in which they are written."""
    lines = []
    stored_parts = {}
    for part, data in parts.items():
        text = pybase64.b64encode_as_string(compression.gzip(data) if part is Part.PAGE else data)
        pieces = [text[first : first + _PIECE] for first in range(0, len(text), _PIECE)]
        lines += [_line(_part_key(job, id, part, number), {"data": piece}) for number, piece in enumerate(pieces)]
        content = snapshot.content(part)
        if content is not None:
            stored_parts[part.value] = msgspec.structs.replace(content, pieces=len(pieces))
    record = msgspec.structs.replace(snapshot, **stored_parts)
    return [*lines, _line(snapshot_key(job, id), msgspec.to_builtins(record))]


def _line(key: str, record: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"_key": key, **record}) + b"\n"


def unpack(part: Part, records: Iterable[bytes]) -> bytes:
    """Return the content of a part from the records of its pieces; raises :class:`DamagedPartError`."""
    try:
        packed = pybase64.b64decode("".join(_decode_piece(record).data for record in records), validate=True)
        data = compression.gunzip(packed, MAX_PAGE) if part is Part.PAGE else packed
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedPartError(f"the {part.value} of the snapshot is damaged: {error}") from None
    if part is Part.SCREENSHOT and image_type(data) is None:
        raise DamagedPartError("the screenshot of the snapshot is no image")
    return data


def image_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes; None for anything that is not shown as an image."""
    return next((media_type for first, media_type in _IMAGES if first.match(data)), None)
