"""Lines of input from the command line, a file or standard input, and their extraction requests.

A line is a URL, or a JSON object with the fields of an extraction request. Lines are numbered from 1, including empty
ones, as in an editor. Memory holds a few lines at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from w3lib.url import safe_url_string

from scrapy_ext.api.extraction import OUTPUTS, check
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.api.extraction.fields import MAX_BODY_BYTES
from scrapy_ext.api.extraction.rules import InvalidJsonError, body_too_large, repeated_fields
from scrapy_ext.api.violations import Violation
from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.commands.output_files import BINARY
from scrapy_ext.crawl.extraction.doubtful import params_for
from scrapy_ext.crawl.extraction.fingerprint import IGNORED
from scrapy_ext.crawl.extraction.rule_files import SiteRules, UsedRules


class CallError(Exception):
    """Invalid arguments, files or settings; nothing was sent."""


class StopError(Exception):
    """The run cannot continue; the remaining lines are not processed."""


#: A body has at most 5 MiB; JSON with escaped characters may be several times longer.
MAX_LINE_BYTES: Final = 4 * MAX_BODY_BYTES
_READ_BYTES: Final = 64 * 1024

_NOT_PLAIN: Final = re.compile(r"[^!-~]")
#: Fields of EXTRACT_API_PARAMS that a request for ``serp`` accepts.
_SERP: Final = ("serp", "serpOptions")


class InputLine(msgspec.Struct, frozen=True):
    """A line that is not empty, stripped. Of a line that is too long, the text is the beginning."""

    number: int
    text: bytes
    is_too_long: bool = False


class LineSplitter:
    """Incremental splitter of a file into lines."""

    def __init__(self) -> None:
        self._number = 0
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[InputLine]:
        """Return the lines that end in this piece."""
        *ends, rest = data.split(b"\n")
        lines = [line for end in ends if (line := self._ended(end)) is not None]
        self._keep(rest)
        return lines

    def end(self) -> list[InputLine]:
        """Return the last line if it has no line break."""
        line = self._ended(b"")
        return [] if line is None else [line]

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if piece and self._size <= MAX_LINE_BYTES:
            self._begun.append(piece)

    def _ended(self, piece: bytes) -> InputLine | None:
        self._number += 1
        if self._begun or self._size:
            self._keep(piece)
            piece = b"".join(self._begun)
        is_too_long = max(self._size, len(piece)) > MAX_LINE_BYTES
        self._begun, self._size = [], 0
        if self._number == 1:
            piece = piece.removeprefix(BOM_UTF8)
        text = piece[:_READ_BYTES] if is_too_long else piece.strip()
        return InputLine(self._number, text, is_too_long) if text else None


def read_lines(read: Callable[[int], bytes]) -> Iterator[list[InputLine]]:
    """Yield the lines of the data that ``read(size)`` returns."""
    splitter = LineSplitter()
    while data := read(_READ_BYTES):
        if lines := splitter.feed(data):
            yield lines
    if lines := splitter.end():
        yield lines


class LineRequest(msgspec.Struct, frozen=True):
    number: int
    #: The URL as written; None without one.
    url: str | None
    fields: dict[str, Any]
    #: Differs for requests of different content.
    fingerprint: str
    #: Bytes of the line.
    size: int
    #: Reasons why the line cannot be parsed; the rules of the service are checked later.
    faults: tuple[Violation, ...] = ()
    #: The rules of its site for the kind of item that it requests.
    rules: UsedRules | None = None

    @property
    def domain(self) -> str:
        """The host name, to which the limits of a site apply."""
        try:
            return urlsplit(self.fields["url"]).hostname or ""
        except (KeyError, ValueError, AttributeError, TypeError):
            return ""

    def violations(self, extra_fields: Collection[str], *, strict: bool = False) -> list[Violation]:
        """Return all rules that the request breaks."""
        if self.faults:
            return [*self.faults]
        broken = check(self.fields, extra_fields=extra_fields, strict=strict)
        size = len(msgspec.json.encode(self.fields))
        return [*broken, body_too_large(size)] if size > MAX_BODY_BYTES else broken


class LineParser:
    """Parser of lines. ``params`` are the fields of EXTRACT_API_PARAMS, ``given`` those of the command line, ``rules``
    those of sites.

    Fields of a line take precedence over both; None removes a field.
    """

    def __init__(self, params: Mapping[str, Any], given: Mapping[str, Any], rules: SiteRules | None = None) -> None:
        self._rules = rules or SiteRules()
        self._params = params
        self._given = given
        #: Fields for a line that is a URL.
        self._plain = self._merged({})

    def parse(self, line: InputLine) -> LineRequest:
        try:
            if not line.is_too_long and not line.text.startswith(b"{"):
                return self._of_url(line, line.text.decode())
        except UnicodeDecodeError as error:
            fault = Violation("input", f"must be UTF-8, and byte {error.start + 1} is not", "Convert the file.")
            return _unread(line, fault)
        own = _own_fields(line)
        if isinstance(own, Violation):
            return _unread(line, own)
        fields, url = self._merged(own), own.get("url")
        known = url if isinstance(url, str) else None
        return self._request(line, known, fields, own)

    def _of_url(self, line: InputLine, url: str) -> LineRequest:
        fields = {**self._plain, "url": sent_url(url)}
        return self._request(line, url, fields, {})

    def _request(self, line: InputLine, url: str | None, fields: dict[str, Any], own: Mapping[str, Any]) -> LineRequest:
        sent = fields.get("url")
        has_own = any(EXTRACT_RULES in each for each in (self._params, self._given, own))
        used = self._rules.for_request(sent, fields) if isinstance(sent, str) and not has_own else None
        content = {**fields, EXTRACT_RULES: used.rules} if used is not None else fields
        return LineRequest(line.number, url, fields, _fingerprint(content), len(line.text), rules=used)

    def _merged(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return all fields, with the default outputs of a routed request of a crawl."""
        asked = {**self._given, **own}
        params = self._params
        if asked.get("serp"):
            params = {name: params[name] for name in _SERP if name in params}
        fields = {**params_for(params, asked), **asked}
        if not any(fields.get(name) for name in OUTPUTS):
            fields.setdefault("httpResponseBody", True)
        if fields.get("httpResponseBody"):
            fields.setdefault("httpResponseHeaders", True)
        return {name: value for name, value in fields.items() if value is not None}


def sent_url(url: str) -> str:
    """Return a URL as it is sent: escaped, as in :class:`scrapy.Request`."""
    if _NOT_PLAIN.search(url):
        with contextlib.suppress(ValueError):  # The rules report the error.
            return safe_url_string(url)
    return url


def _own_fields(line: InputLine) -> dict[str, Any] | Violation:
    if line.is_too_long:
        return Violation("input", f"must be at most {MAX_LINE_BYTES} bytes", "Shorten it.")
    try:
        fields: dict[str, Any] = msgspec.json.decode(line.text, type=dict[str, Any])
        repeated = repeated_fields(line.text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidJsonError) as error:
        return Violation("input", f"is not JSON: {error}", 'Write a URL, or {"url": "https://example.com/", ...}.')
    return repeated[0] if repeated else fields


def _unread(line: InputLine, fault: Violation) -> LineRequest:
    return LineRequest(line.number, None, {}, _hashed(line.text), len(line.text), (fault,))


def _fingerprint(fields: Mapping[str, Any]) -> str:
    content = {name: value for name, value in fields.items() if name not in IGNORED and value not in (False, [], {})}
    try:
        return _hashed(msgspec.json.encode(content, order="deterministic"))
    except (TypeError, ValueError, RecursionError):
        return _hashed(repr(content).encode("utf-8", "replace"))


def _hashed(data: bytes) -> str:
    # It distinguishes lines with the same number, for which 32 bits suffice.
    return f"{zlib.crc32(data):08x}"


class Source(msgspec.Struct, frozen=True):
    """``urls`` of the command line, or the file at ``path``, or standard input."""

    urls: Sequence[str] = ()
    path: str | None = None

    @property
    def name(self) -> str:
        return "the command line" if self.urls else self.path or "standard input"

    @property
    def can_be_read_twice(self) -> bool:
        if self.urls:
            return True
        return self.path is not None and stat.S_ISREG(os.stat(self.path).st_mode)

    @property
    def size(self) -> int:
        """The size of the file in bytes, 0 without one."""
        return os.stat(self.path).st_size if self.path is not None else 0

    def check_readable(self) -> None:
        """Raise :class:`CallError` for a missing or unreadable file."""
        if self.path is None:
            return
        try:
            if stat.S_ISDIR(os.stat(self.path).st_mode):
                raise CallError(f"{self.path} is a folder; give a file of URLs")
            if not os.access(self.path, os.R_OK):
                raise CallError(f"{self.path} cannot be read: permission denied; change its permissions")
        except OSError as error:
            raise CallError(f"{self.path} cannot be read: {error.strerror}") from None

    def lines(self) -> Iterator[list[InputLine]]:
        """Yield the lines in small groups; raises :class:`OSError`."""
        if self.urls:
            given = ((number, url.strip()) for number, url in enumerate(self.urls, 1))
            yield [InputLine(number, url.encode("utf-8", "surrogateescape")) for number, url in given if url]
            return
        with self._opened() as file:
            # A thread blocked in sys.stdin would hold a lock that the process needs to exit.
            yield from read_lines(lambda size: os.read(file, size))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        if self.path is None:
            yield sys.stdin.fileno()
            return
        file = os.open(self.path, os.O_RDONLY | BINARY)
        try:
            yield file
        finally:
            os.close(file)


class SourceReader:
    """Reader of a source in a thread, a few lines at a time.

    ``on_read`` is called after each read, with the error that ended the input, if any.
    """

    def __init__(self, source: Source, on_read: Callable[[OSError | None], None]) -> None:
        self._batches = source.lines()
        self._on_read = on_read
        self._calls = BlockingCalls("input")
        self._lines: Iterator[InputLine] = iter(())
        self._reading: asyncio.Task[None] | None = None
        self.has_ended = False
        #: Number of the last returned line.
        self.last = 0

    def next(self) -> InputLine | None:
        """Return the next line, None when no read line is left."""
        line = next(self._lines, None)
        if line is not None:
            self.last = line.number
        return line

    def read(self) -> None:
        """Begin to read the next lines, unless a read is in progress."""
        if self._reading is None and not self.has_ended:
            self._reading = asyncio.create_task(self._read())

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._calls.close()

    async def _read(self) -> None:
        error = None
        try:
            lines = await self._calls(lambda: next(self._batches, None))
        except OSError as raised:
            lines, error = None, raised
        self._reading = None
        self.has_ended = lines is None
        self._lines = iter(lines or ())
        self._on_read(error)
