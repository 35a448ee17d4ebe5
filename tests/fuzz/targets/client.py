"""Answers of the services, as the client reads them."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from scrapy import Request

from scrapy_ext.api.extraction import Problem
from scrapy_ext.api.platform.frontier import Batch
from scrapy_ext.api.platform.jobs import JobList
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.extraction.errors import UnexpectedAnswerError, error_of
from scrapy_ext.client.http import decompressed
from scrapy_ext.client.http1 import AnswerError
from scrapy_ext.client.platform import json_lines as lines
from scrapy_ext.client.platform.answers import Answer, _message
from scrapy_ext.client.platform.calls import get
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.retry import parse_retry_after
from scrapy_ext.crawl.extraction.cookies import cookie_field, for_browser, for_service
from scrapy_ext.crawl.extraction.response import to_response
from tests.fuzz.calls import run
from tests.fuzz.target import target

_CALL = get(Host.STORAGE, "/items/1/1/1")


@target(
    "client-lines",
    [
        b'\x03{"_key":"1/1/1/0","a":1}\n{"_key":"own","_key":"1/1/1/1"}\n',
        b'\x01{"a":{"_key":1},"_key":"k"}\r\n\n[1]\n',
        b'\x09{"\\u005fkey":"a","_key":"b"}',
        b'\x05{"_key":"a"',
        b'\x05{"_key":"\x9a"}',
    ],
    refuses=(lines.LineError,),
)
def client_lines(data: bytes) -> None:
    """Lines do not depend on how they arrived, and a record loses its key and nothing else."""
    if not data:
        return
    step, sent = max(data[0], 1), data[1:]

    async def arriving() -> Any:
        for at in range(0, len(sent), step):
            yield sent[at : at + step]

    async def read() -> list[bytes]:
        return [line async for line in lines.split(arriving())]

    found = run(read())
    assert found == [line for line in sent.split(b"\n") if line.strip()]
    for line in found:
        key, record = lines.keyed_record(line, keep_key=False)
        assert isinstance(key, str)
        pairs = json.loads(line, object_pairs_hook=list)
        assert set(record) | {"_key"} == {name for name, _ in pairs}


@target(
    "client-answer",
    [
        b'{"status":"ok","count":1,"total":1,"jobs":[{"id":"1/1/1","spider":"s","state":"running"}]}',
        b'{"status":"error","message":"Active job exists"}',
        b'{"id":"0","requests":[["a",{"x":1}],["b",null]]}\n',
        b'{"status":5,"message":[]}',
        b"<html>",
        b"[" * 2000,
        b'{"status":"\x9a"}',
    ],
    refuses=(PlatformError,),
    longest=4096,
)
def client_answer(data: bytes) -> None:
    """An answer is what it should be, or an error of the platform; what it says of an error is bounded."""
    assert len(_message(data)) <= 300
    answer = Answer(_CALL, 200, data)
    for read in (lambda: answer.json(JobList), lambda: answer.lines(Batch), answer.app):
        assert len(_fault_of(read)) < 3000


def _fault_of(read: Callable[[], object]) -> str:
    try:
        read()
    except PlatformError as error:
        return str(error)
    return ""


@target(
    "client-gunzip",
    [b"\x05" + gzip.compress(b"a" * 3000), b"\x01" + gzip.compress(b"a") + gzip.compress(b"b"), b"\x09\x1f\x8b\x08"],
    refuses=(AnswerError,),
)
def client_gunzip(data: bytes) -> None:
    """A decoded body does not depend on the pieces in which it arrived."""
    if len(data) < 2:
        return
    step, sent = max(data[0], 1), data[1:]

    async def inflated(step: int) -> bytes:
        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(sent), step):
                yield sent[at : at + step]

        return b"".join([piece async for piece in decompressed(chunks())])

    assert run(inflated(step)) == run(inflated(len(sent)))


@target(
    "retry-after",
    [
        b"120",
        b"Wed, 21 Oct 2099 07:28:00 GMT",
        b"-1",
        b"9999999999",
        b"Wed, 99 Foo 0000 99:99:99 +9999",
        b"1e5",
        b"1 Oct 0709999999999 8:00 GMT",
    ],
    longest=100,
)
def retry_after(data: bytes) -> None:
    """A wait that can be waited, or none."""
    seconds = parse_retry_after(data.decode("latin-1"))
    assert seconds is None or 0 <= seconds < 1e12


@target(
    "extract-answer",
    [
        b'{"url":"http://a.example/","statusCode":200,"httpResponseBody":"PGh0bWw+","httpResponseHeaders":'
        b'[{"name":"Content-Type","value":"text/html"},{"name":"content-encoding","value":"gzip, x"}]}',
        b'{"browserHtml":"<p>\\ud800\xc3\xa4","statusCode":true,"url":"x#y"}',
        b'{"product":{"name":"a"},"screenshot":"!!"}',
        b'{"httpResponseBody":"AAEC","httpResponseHeaders":[{"name":"\\u0000","value":"\\ud800"},1,{"name":"a"}]}',
        b'{"url":"http://[","screenshot":"","article":[]}',
    ],
    refuses=(UnexpectedAnswerError,),
    calls=(50_000, 200),
)
def extract_answer(data: bytes) -> None:
    """A result is a response with its body, or an answer that was not expected."""
    try:
        result = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    response = to_response(Request("http://a.example/b.html"), result)
    assert 100 <= response.status <= 999
    assert isinstance(response.body, bytes)
    if hasattr(response, "text"):
        assert isinstance(response.text, str)


@target(
    "extract-problem",
    [
        b'429\n5\n{"type":"/limits/over","title":"t","status":429,"detail":"d","blockedDomain":"a"}',
        b"500\n\n<html>",
        b'521\nx\n{"type":5,"detail":["a"]}',
        b"302\n\n",
        b"999\n\n[[[[",
        b'400\n\n{"detail":"\x9a"}',
    ],
)
def extract_problem(data: bytes) -> None:
    """Whatever an error says, it is one of ours."""
    status, _, rest = data.partition(b"\n")
    after, _, body = rest.partition(b"\n")
    if not status.isdigit() or not 300 <= int(status[:3]) <= 999:
        return
    Problem.from_answer(int(status[:3]), body)
    error = error_of(int(status[:3]), {"Retry-After": after.decode("latin-1")}, body)
    assert len(str(error)) < 2 * len(data) + 2000


@target(
    "cookie-header",
    [b"a=b; c=d", b"a; =b; __Host-x=1;;", b"\xff=\xc3\xa4; a=b=c", b"a=\x00; b=\x7f; " + b"x" * 2000, b"a=1;" * 300],
    longest=4096,
)
def cookie_header(data: bytes) -> None:
    """No cookie makes a request fail: those that go along can be sent."""
    request = Request("http://a.example/", headers={"Cookie": data}, cookies={"own": "1", "a": "b"})
    field = cookie_field(request, own=True, own_alone=True)
    for nameless in (False, True):
        found = for_service(field.get("requestCookies", ()), ["followRedirect"] if nameless else ())
        msgspec.json.encode(found)
        assert len(for_browser(found)) <= len(found) <= 1000
        for cookie in found:
            assert nameless or cookie["name"]
            assert ";" not in cookie["name"] + cookie["value"]
