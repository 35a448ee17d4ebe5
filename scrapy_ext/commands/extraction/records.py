"""What goes out for a line: one JSON record, and files beside it where they are asked for.

``{"line": 1, "url": …, "fingerprint": …, "result": …}`` or ``"error"`` in place of ``"result"``. The files of a record
are written before it, so that a file that a record names is there, whatever happens.
"""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse

from scrapy_ext.api.violations import Violation
from scrapy_ext.client.extraction.errors import ExtractError, TooLargeError
from scrapy_ext.client.extraction.retry_policy import NETWORK, NO_CONNECTION, UNEXPECTED, row_of
from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.commands.extraction.input_lines import Wanted
from scrapy_ext.commands.terminal.text import printable_json
from scrapy_ext.crawl.extraction.results import to_response

#: The type of the error of a line that breaks a rule.
NOT_SENT: Final = "not-sent"
TOO_LARGE: Final = "too-large"
_TITLES: Final[Mapping[str, str]] = {
    NO_CONNECTION: "No Connection",
    NETWORK: "No Whole Answer",
    UNEXPECTED: "Unexpected Answer",
    TOO_LARGE: "Too Large",
    NOT_SENT: "Not Sent",
}
_SUFFIXES: Final[Sequence[tuple[type[Response], str]]] = (
    (HtmlResponse, ".html"),
    (XmlResponse, ".xml"),
    (JsonResponse, ".json"),
)
_PICTURES: Final[Sequence[tuple[bytes, str]]] = ((b"\x89PNG", ".png"), (b"\xff\xd8", ".jpg"), (b"RIFF", ".webp"))

#: Seconds to wait for a write at the end: into a file it takes less, into a pipe that nobody reads it never ends.
_PATIENCE: Final = 1.0

#: Files of a record: path and content.
Files = list[tuple[str, bytes]]


class Recorder(msgspec.Struct, frozen=True):
    """Makes records. ``decode``: bodies that are text as text; ``bodies`` and ``screenshots``, the folders that take
    them, if they are to be files."""

    decode: bool = False
    bodies: str | None = None
    screenshots: str | None = None

    def answered(self, wanted: Wanted, result: Mapping[str, Any]) -> tuple[bytes, Files]:
        """The record of an answer, and its files; raises
        :class:`~scrapy_ext.client.extraction.errors.UnexpectedAnswerError` for one that does not hold what it says.
        """
        changes = self._changes(result)
        if not changes:
            return _encoded({**_head(wanted), "result": result}), []
        shown, forms, files = dict(result), {}, []
        # As in a crawl: the same look for the kind of a body and for its encoding.
        response = to_response(Request(wanted.fields["url"]), result)
        for name, folder in changes.items():
            content, suffix = _content(response, name)
            if folder is not None:
                # Made of the line's number alone: nothing that a site sent becomes part of a path.
                shown[name] = os.path.join(folder, f"{wanted.number:07}{suffix}")
                files.append((shown[name], content))
                forms[name] = "file"
            elif isinstance(response, TextResponse):
                shown[name], forms[name] = response.text, "text"
            else:
                forms[name] = "base64"
        return _encoded({**_head(wanted), "forms": forms, "result": shown}), files

    def _changes(self, result: Mapping[str, Any]) -> dict[str, str | None]:
        """What is not shown as it came: the folder of a file, None for text."""
        changes: dict[str, str | None] = {}
        for name in ("httpResponseBody", "browserHtml"):
            if result.get(name) is not None and (self.bodies or (self.decode and name == "httpResponseBody")):
                changes[name] = self.bodies
        if result.get("screenshot") is not None and self.screenshots:
            changes["screenshot"] = self.screenshots
        return changes


def failed(wanted: Wanted, error: ExtractError) -> bytes:
    """The record of a failure."""
    kind = type_of(error)
    told: dict[str, Any] = {
        "status": error.status,
        "type": kind,
        "title": error.title or _TITLES.get(kind, ""),
        "detail": error.detail,
    }
    if error.blocked_domain is not None:
        told["blockedDomain"] = error.blocked_domain
    if error.retry_after is not None:
        told["retryAfter"] = error.retry_after
    return _encoded({**_head(wanted), "error": told})


def type_of(error: ExtractError) -> str:
    """The type of the problem, or a word for a failure that has none."""
    return TOO_LARGE if isinstance(error, TooLargeError) else error.type or row_of(error) or f"http-{error.status}"


def refused(wanted: Wanted, violations: Sequence[Violation]) -> bytes:
    """The record of a line that breaks a rule."""
    told = {
        "status": None,
        "type": NOT_SENT,
        "title": _TITLES[NOT_SENT],
        "detail": " ".join(str(violation) for violation in violations),
        "violations": [{"field": each.field, "rule": each.rule, "remedy": each.remedy} for each in violations],
    }
    return _encoded({**_head(wanted), "error": told})


def _head(wanted: Wanted) -> dict[str, Any]:
    return {"line": wanted.number, "url": wanted.url, "fingerprint": wanted.fingerprint}


def _encoded(record: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:
        # Half a character, from a page or an input that says it is one.
        mended = {name: _whole(value) for name, value in record.items()}
        return msgspec.json.encode(mended) + b"\n"


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_whole(name): _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


def _content(response: Response, name: str) -> tuple[bytes, str]:
    """The bytes of an output, and how the name of their file ends."""
    if name == "screenshot":
        picture: bytes = response.extract_result["screenshot"]  # type: ignore[attr-defined]
        return picture, next((suffix for magic, suffix in _PICTURES if picture.startswith(magic)), ".bin")
    return response.body, _suffix(response)


def _suffix(response: Response) -> str:
    for kind, suffix in _SUFFIXES:
        if isinstance(response, kind):
            return suffix
    header = (response.headers.get("Content-Type") or b"").decode("latin-1").partition(";")[0].strip()
    return mimetypes.guess_extension(header) or (".txt" if isinstance(response, TextResponse) else ".bin")


class RecordWriter:
    """Writes records to a file, one after the other, beside the event loop."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._is_terminal = os.isatty(file)
        self._calls = BlockingCalls("records")
        #: Told before the first byte goes to a terminal.
        self.before_terminal: Callable[[], None] = lambda: None

    async def write(self, record: bytes, files: Files | None = None) -> None:
        """Write the files of a record, then the record; raises :class:`OSError`."""
        if self._is_terminal:
            # It would obey the control characters in what web sites sent.
            record = printable_json(record.decode()).encode()
            self.before_terminal()

        def work() -> None:
            for path, content in files or ():
                Path(path).write_bytes(content)
            write_all(self._file, record)

        await self._calls(work)

    def close(self) -> None:
        """End the thread. A write that is under way is waited for, unless it is blocked."""
        self._calls.close(_PATIENCE)


def write_all(file: int, data: bytes) -> None:
    """Write all of it; raises :class:`OSError`."""
    # Not sys.stdout: a thread that is blocked in it would hold a lock that the end of the process needs.
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
