"""Output of a line: one JSON record, and optionally files with its bodies.

``{"line": 1, "url": …, "fingerprint": …, "result": …}`` or ``"error"`` in place of ``"result"``. The files of a record
are written before it, so that each file that a record names exists.
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

from scrapy_ext.api.extraction.fields import MARKDOWN
from scrapy_ext.api.violations import Violation
from scrapy_ext.client.extraction.errors import ExtractError, TooLargeError
from scrapy_ext.client.extraction.retry_policy import NETWORK, NO_CONNECTION, UNEXPECTED, row_of
from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.commands.extraction.input_lines import LineRequest
from scrapy_ext.commands.text import printable_json
from scrapy_ext.crawl.extraction.response import to_response

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

#: Seconds to wait for the last write: one into a file takes less, one into an unread pipe never ends.
_CLOSE_SECONDS: Final = 1.0

#: Files of a record: path and content.
Files = list[tuple[str, bytes]]


class Recorder(msgspec.Struct, frozen=True):
    """Encoder of records. ``decode``: text bodies are text; ``bodies`` and ``screenshots``: folders of files."""

    decode: bool = False
    bodies: str | None = None
    screenshots: str | None = None
    #: Folder of files with the Markdown of pages.
    markdown: str | None = None

    def computes(self, result: Mapping[str, Any]) -> bool:
        """Return whether the record of an answer takes computing: its Markdown is made here."""
        return self.markdown is not None and result.get(MARKDOWN) is None

    def answered(self, request: LineRequest, result: Mapping[str, Any]) -> tuple[bytes, Files]:
        """Return the record of an answer, and its files.

        Raises :class:`~scrapy_ext.client.extraction.errors.UnexpectedAnswerError` for an answer with invalid content.
        """
        changes = self._changes(result)
        if not changes:
            return _encoded({**_head(request), "result": result}), []
        shown, forms, files = dict(result), {}, []
        # The response class and the encoding are those of a crawl.
        response = to_response(Request(request.fields["url"]), result)
        for name, folder in changes.items():
            if name == MARKDOWN and not _has_markdown(response, result):
                continue
            content, suffix = _content(response, name)
            if folder is not None:
                # The path has nothing from a web site.
                shown[name] = os.path.join(folder, f"{request.number:07}{suffix}")
                files.append((shown[name], content))
                forms[name] = "file"
            elif isinstance(response, TextResponse):
                shown[name], forms[name] = response.text, "text"
            else:
                forms[name] = "base64"
        return _encoded({**_head(request), "forms": forms, "result": shown}), files

    def _changes(self, result: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the outputs that are not left unchanged, with the folder of their file, None for text."""
        changes: dict[str, str | None] = {}
        for name in ("httpResponseBody", "browserHtml"):
            if result.get(name) is not None and (self.bodies or (self.decode and name == "httpResponseBody")):
                changes[name] = self.bodies
        if result.get("screenshot") is not None and self.screenshots:
            changes["screenshot"] = self.screenshots
        if self.markdown:
            changes[MARKDOWN] = self.markdown
        return changes


def failed(request: LineRequest, error: ExtractError) -> bytes:
    kind = type_of(error)
    shown: dict[str, Any] = {
        "status": error.status,
        "type": kind,
        "title": error.title or _TITLES.get(kind, ""),
        "detail": error.detail,
    }
    if error.blocked_domain is not None:
        shown["blockedDomain"] = error.blocked_domain
    if error.retry_after is not None:
        shown["retryAfter"] = error.retry_after
    return _encoded({**_head(request), "error": shown})


def type_of(error: ExtractError) -> str:
    """Return the type of the problem, or a word for another failure."""
    return TOO_LARGE if isinstance(error, TooLargeError) else error.type or row_of(error) or f"http-{error.status}"


def refused(request: LineRequest, violations: Sequence[Violation]) -> bytes:
    """Return the record of a line that breaks a rule."""
    shown = {
        "status": None,
        "type": NOT_SENT,
        "title": _TITLES[NOT_SENT],
        "detail": " ".join(str(violation) for violation in violations),
        "violations": [{"field": each.field, "rule": each.rule, "remedy": each.remedy} for each in violations],
    }
    return _encoded({**_head(request), "error": shown})


def _head(request: LineRequest) -> dict[str, Any]:
    return {"line": request.number, "url": request.url, "fingerprint": request.fingerprint}


def _encoded(record: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:
        # A lone surrogate from a page or from the input.
        mended = {name: _whole(value) for name, value in record.items()}
        return msgspec.json.encode(mended) + b"\n"


def _whole(value: object) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_whole(name): _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


def _has_markdown(response: Response, result: Mapping[str, Any]) -> bool:
    """Return whether there is Markdown of an answer, or HTML to make it of."""
    return result.get(MARKDOWN) is not None or (isinstance(response, HtmlResponse) and bool(response.body))


def _content(response: Response, name: str) -> tuple[bytes, str]:
    """Return the bytes of an output, and the suffix of its file."""
    if name == MARKDOWN:
        made: str = response.markdown()  # type: ignore[attr-defined]
        return made.encode("utf-8", "replace"), ".md"
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
    """Writer of records to a file, in a thread."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._is_terminal = os.isatty(file)
        self._calls = BlockingCalls("records")
        #: Called before a record is written to a terminal.
        self.before_terminal: Callable[[], None] = lambda: None

    async def write(self, record: bytes, files: Files | None = None) -> None:
        """Write the files of a record, then the record; raises :class:`OSError`."""
        if self._is_terminal:
            # A terminal would act on control characters from web sites.
            record = printable_json(record.decode()).encode()
            self.before_terminal()

        def work() -> None:
            for path, content in files or ():
                Path(path).write_bytes(content)
            write_all(self._file, record)

        await self._calls(work)

    def close(self) -> None:
        """End the thread after the current write, unless that is blocked."""
        self._calls.close(_CLOSE_SECONDS)


def write_all(file: int, data: bytes) -> None:
    """Write all data; raises :class:`OSError`."""
    # A thread blocked in sys.stdout would hold a lock that the process needs to exit.
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
