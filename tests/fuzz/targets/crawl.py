"""Input of a crawl that is resumed: stored requests, journals, the ledger of answers."""

from __future__ import annotations

import functools
import sqlite3
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware

from scrapy_ext.api.platform.frontier import Batch
from scrapy_ext.client.extraction.ledger_entries import LedgerChanges as Answers
from scrapy_ext.client.extraction.ledger_file import LedgerError, LedgerFile
from scrapy_ext.commands.extraction.input_lines import CallError
from scrapy_ext.commands.extraction.resume import OutputFile
from scrapy_ext.crawl.commit.assignment import Assignment
from scrapy_ext.crawl.commit.events import Checkpoint
from scrapy_ext.crawl.commit.journal import Journal, Place, Record, UnreadableJournal, to_data
from scrapy_ext.crawl.extraction.cookies import CrawlCookies
from scrapy_ext.crawl.extraction.response import to_response
from scrapy_ext.crawl.frontier.serialize import (
    NotSerializableError,
    UnreadableRequestError,
    request_from_json,
    request_to_json,
)
from tests.fuzz.calls import run
from tests.fuzz.target import target
from tests.support.crawlers import get_crawler


class _Spider(Spider):
    name = "fuzzed"

    def parse_item(self, response: Any) -> None:
        """A callback."""


_SPIDER = _Spider()


@target(
    "stored-request",
    [
        b'{"v":1,"url":"http://a.example/"}',
        b'{"v":1,"url":"http://a.example/\xc3\xa4","class":"JsonRequest","method":"POST","callback":"parse_item",'
        b'"headers":{"A":["b"]},"body":{"$type":"bytes","value":"AAE="},"parent":[3,"1/1/1"],"priority":-2}',
        b'{"v":1,"url":"data:,","meta":{"a":{"$type":"tuple","value":[1,{"$type":"set","value":[1]}]},'
        b'"d":{"$type":"datetime","value":"2026-01-02T03:04:05"}},"cb_kwargs":{"x":{"$type":"decimal","value":"NaN"}}}',
        b'{"v":1,"url":"http://a","cookies":[{"name":"a","value":1}],"flags":["x"],"dont_filter":true}',
        b'{"v":1,"url":"http://a","callback":"__init__","encoding":"nope"}',
        b'{"v":1,"url":"http://a","meta":{"$type":"dict","value":[[{"$type":"float","value":"nan"},1]]}}',
        b'{"v":1,"url":"http://a","meta":{"x":{"$type":"int","value":"99999999999999999999"}}}',
        b'{"v":2}',
    ],
    refuses=(UnreadableRequestError,),
    calls=(30_000, 300),
)
def stored_request(data: bytes) -> None:
    """A request that can be read is stored again as the same request."""
    try:
        stored = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    request = request_from_json(stored, _SPIDER)
    assert isinstance(request, Request)
    try:
        again = request_to_json(request, _SPIDER)
    except NotSerializableError:
        return
    restored = request_from_json(msgspec.json.decode(msgspec.json.encode(again)), _SPIDER)
    twice = request_to_json(restored, _SPIDER)
    # Scrapy escapes what is hardly a URL once more each time.
    assert {**twice, "url": ""} == {**again, "url": ""}


@target(
    "checkpoint",
    [
        b'{"worker":"w","slots":[1,2],"turns":3,"progress":{"done":{"1":{"a":"ff"}}}}',
        b'{"redo":{"job":"1/1/1","owner":"o","chunks":[[1,0,5]],"acknowledge":{"3":["a"]}}}',
        b'{"owners":{"a":[1]},"left":{"done":{"x":{}}},"start":"s"}',
        b'{"slots":["1"],"idle":1}',
    ],
    refuses=(UnreadableJournal,),
)
def checkpoint(data: bytes) -> None:
    """A record that can be read is written as it was read."""
    try:
        given = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    for kind in (Checkpoint, Assignment):
        read = Record(1, "writer", given).read(kind)
        written = msgspec.json.decode(msgspec.json.encode(to_data(read)))
        assert Record(1, "writer", written).read(kind) == read


class _Stored:
    """A frontier with these batches in the slot of a journal."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    async def read(self, *_place: Any) -> list[Batch]:
        return self._batches


@target(
    "journal",
    [
        b'[{"id":"a","requests":[["3",{"writer":"w#1","worker":"x"}]]},{"id":"b","requests":[["1",{"writer":"v"}]]}]',
        b'[{"id":"a","requests":[["x",{"writer":"w"}]]}]',
        b'[{"id":"a","requests":[["1",null],["2",[]],["3","writer"]]}]',
        b'[{"id":"a","requests":[["2",["writer"]]]}]',
        b'[{"id":"a","requests":[["\\u0661",{"writer":{}}]]}]',
        b"[]",
    ],
    refuses=(UnreadableJournal,),
)
def journal(data: bytes) -> None:
    """The newest record is found, or the slot is no journal."""
    try:
        batches = msgspec.json.decode(data, type=list[Batch])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    client: Any = _Stored(batches)
    retry: Any = None
    head = run(Journal(client, Place(1, "f", "commits"), "w", retry).head())
    numbers = [int(fp) for batch in batches for fp, _ in batch.requests]
    assert (head.number if head else None) == max(numbers, default=None)


@functools.cache
def _ledger() -> bytes:
    """A ledger with two answers, without the pages that are empty."""
    with tempfile.TemporaryDirectory(prefix="scrapy-ext-fuzz-") as folder:
        path = Path(folder, "ledger")
        file = LedgerFile(path, 2**20)
        file.open()
        file.write(Answers({b"k1": b"answer", b"k2": b"other"}, 2, 0.5, 1))
        file.close(remove=False)
        return path.read_bytes()


@target("ledger", [b"", b"\x00\x00\x00", b"\x00\x10\x41", b"\x40\x00\xff\x40\x07\x05", b"\x80\x00\x00" * 4])
def ledger(data: bytes) -> None:
    """A ledger whose bytes were changed is read, or named as one that must not be used."""
    image = bytearray(_ledger())
    for at in range(0, len(data) - 2, 3):  # a place, in the pages and not only at their beginning, and a byte
        image[(data[at] << 8 | data[at + 1]) * 7 % len(image)] = data[at + 2]
    with tempfile.TemporaryDirectory(prefix="scrapy-ext-fuzz-") as folder:
        path = Path(folder, "ledger")
        path.write_bytes(bytes(image))
        file = LedgerFile(path, 2**20)
        try:
            opened = file.open()
            for key in opened.keys:
                assert file.read(key) in (b"answer", b"other", None)
            file.write(Answers({b"k3": b"new"}, 3, 1.0, 0))
            assert file.read(b"k3") == b"new"
        except (LedgerError, sqlite3.Error):
            return
        finally:
            file.close(remove=False)


@target(
    "resume-output",
    [
        b'{"line":1,"fingerprint":"0123abcd","url":"http://a","result":{"x":1}}\n',
        b'{"line":1,"fingerprint":"0123abcd","error":{}}\n{"line":2,"fingerprint":"00000000","result":{}}\n{"line":3,"fi',
        b'{"line":281474976710656,"fingerprint":"0123abcd","result":1}',
        b'{"line":1,"fingerprint":"0123abcd","result":1}\n{"line":1,"fingerprint":"0123abcd","result":1}\n',
        b"\x9a\n",
        b'"\x9a',
    ],
    refuses=(CallError,),
)
def resume_output(data: bytes) -> None:
    """The output of an earlier run says which lines are done, or is refused; what is whole in it stays."""
    with tempfile.TemporaryDirectory(prefix="scrapy-ext-fuzz-") as folder:
        path = Path(folder, "output")
        path.write_bytes(data)
        output = OutputFile(str(path))
        try:
            output.read_done(drop_failed=False)
            assert path.read_bytes().rstrip(b"\n") in data
            done = len(output.done)
            output.read_done(drop_failed=False)
            assert len(output.done) == done
        finally:
            output.close()


@target(
    "response-cookies",
    [
        b'[{"name":"a","value":"b","domain":"www.a.example","path":"/","httpOnly":true,"secure":false}]',
        b'[{"name":"a","value":"1","domain":".a.example","path":"/x","expires":1e300},{"name":"a","value":"2"}]',
        b'[{"name":"a;b","value":"1"},{"name":"","value":"1"},{"name":"a","value":1},7,{"name":"a\\n","value":""}]',
        b'[{"name":"a","value":"b","domain":"other.example"},{"name":"a","value":"b","domain":".example"}]',
        b'[{"name":"a","value":"b","domain":"[::1"},{"name":"a","value":"b","domain":"a b/c?d#e@f","expires":-1}]',
        b'{"name":"a"}',
    ],
)
def response_cookies(data: bytes) -> None:
    """Cookies that a service returns are in the jar only for the page's own host and those above it."""
    try:
        returned = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    crawler, middleware = _with_cookies()
    middleware.jars.clear()
    cookies = CrawlCookies(crawler)
    request = Request("http://www.a.example/x")
    response = to_response(request, {"url": request.url, "browserHtml": "", "responseCookies": returned})
    cookies.store(request, response, {}, ("responseCookies",))
    kept = list(middleware.jars[None])
    assert all(cookie.domain in ("www.a.example", ".www.a.example", ".a.example", "a.example") for cookie in kept)
    if kept:
        middleware.process_request(request)
        assert not any(character in b"\r\n" for character in request.headers.get("Cookie", b""))


@functools.cache
def _with_cookies() -> tuple[Any, CookiesMiddleware]:
    crawler = get_crawler()
    middleware = CookiesMiddleware.from_crawler(crawler)
    return SimpleNamespace(get_downloader_middleware=lambda _kind: middleware), middleware
