"""Bodies of requests: whatever they become is counted, and long ones that are right need little memory."""

from __future__ import annotations

import functools
import gzip
import json
import re
import time
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.json_decoder import decoder, weight
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.http import json_bodies
from scrapy_ext.server.http.schemas import FORM, JSON, MULTIPART
from scrapy_ext.server.routes import ROUTES
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.raw_connection import Raw
from tests.support.servers import RunningServer

MIB = 2**20
#: What the server of these tests has for requests.
MEMORY = 64 * MIB
_PARTS = {"project": "1", "spider": "1", "job": "1", "type": "s", "index": "0", "version": "v", "schedule": "1"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that has little memory for requests."""
    options = ["--memory", str(MEMORY // MIB)]
    with RunningServer(tmp_path_factory.mktemp("small"), options=options) as server:
        yield server


def highest(server: RunningServer) -> int:
    """The most memory that the server ever had."""
    text = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found
    return int(found[1]) * 1024


async def held(http: Http) -> float:
    """Bytes that requests hold."""
    found = re.search(r"^scrapy_ext_body_bytes_held (\S+)$", (await http.get("/metrics")).text, re.MULTILINE)
    assert found
    return float(found[1])


def gzipped(piece: bytes, size: int, head: bytes = b"", tail: bytes = b"") -> bytes:
    """A gzip body of repeated pieces, of so many bytes when it is inflated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = piece * (MIB // len(piece))
    parts = [packer.compress(head), *(packer.compress(block) for _ in range(size // len(block)))]
    return b"".join([*parts, packer.compress(tail), packer.flush()])


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * 30_000 + b"[]]",
        b"[" + b"{}," * 30_000 + b"{}]",
        b"[" + b'{"a":{}},' * 10_000 + b"{}]",
        b"[" + b",".join(b'{"name%d":{"n%d":[]}}' % (n, n) for n in range(10_000)) + b"]",
        b"{" + b",".join(b'"%d":%d' % (n, n + 10**9) for n in range(50_000)) + b"}",
        b"[" + b",".join(b'"%d"' % n for n in range(50_000)) + b"]",
        b"[" + b"1.5," * 50_000 + b"0]",
        b"[" + b"123456789012345678," * 10_000 + b"0]",
        '["{}"]'.format("a" * 100_000 + "😀").encode(),
        b'["' + b"\\ud83d\\ude00" * 10_000 + b'"]',
        b"[[[[[[[[[[]]]]]]]]]]",
        b'"a"',
    ],
    ids=range(12),
)
def test_what_is_decoded_takes_no_more_than_was_counted(text: bytes) -> None:
    decode = msgspec.json.Decoder().decode
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        decoded = decode(text)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert decoded is not None
    assert taken <= weight(text)


@functools.cache
def _bombs(kind: str) -> Sequence[tuple[bytes, str]]:
    """Bodies of a kind, each with its content type; they are compressed once for all paths."""
    size = 10 * MIB
    if kind == FORM:
        return [
            (gzipped(b"a=%41%41%41&", size), FORM),
            (gzipped(b"%41", 3 * MIB, b"project=1&spider="), FORM),
        ]
    if kind == MULTIPART:
        boundary = b'--b\r\nContent-Disposition: form-data; name="version"\r\n\r\n'
        return [(gzipped(b"v", size, boundary), f"{MULTIPART}; boundary=b")]
    return [
        (gzipped(b"[],", size, b"[", b"0]"), JSON),
        (gzipped(b'{"_key":"k","fp":"f","a":[' + b"{}," * 100_000 + b"0]}\n", size), JSON),
    ]


@pytest.mark.long
async def test_a_bomb_at_any_path_takes_no_more_memory_than_there_is(small: RunningServer) -> None:
    taking = [(each, each.body.kind) for each in ROUTES if each.body is not None]
    assert len(taking) > 20
    async with Http(small.url, small.platform_key) as http, Http(small.url, small.extract_key) as extract:
        assert (await http.post("/jobq/1/push", [{"spider": "s", "state": "running"}])).status == 200
        before = highest(small)
        for each, kind_of_route in taking:
            path = re.sub(r"\{(\w+)\}", lambda match: _PARTS.get(match[1], "c"), each.shown)
            for bomb, kind in _bombs(kind_of_route):
                client = extract if path.startswith("/v1/") else http
                answer = await client.call(each.method, path, bomb, Content_Encoding="gzip", Content_Type=kind)
                assert answer.status < 500 or (answer.status == 503 and "Retry-After" in answer.headers), path
                assert (await http.get("/healthz")).status == 200
        assert highest(small) - before < MEMORY + 120 * MIB
        assert not await held(http)


@pytest.mark.long
async def test_a_long_body_that_can_be_handled_in_pieces_needs_little_memory(small: RunningServer) -> None:
    async with Http(small.url, small.platform_key) as http:
        before = highest(small)
        keys = gzipped(b"[" + b'"key",' * 100_000 + b'"key"]\n', 30 * MIB)
        for path in ("/hcf/2/f/s/s/q/deleted", "/collections/2/s/c/deleted"):
            assert (await http.post(path, keys, Content_Encoding="gzip")).status == 200
        requests = b"".join(b'{"fp":"/%d"}\n' % number for number in range(100_000))
        answer = await http.post("/hcf/2/f/s/s", requests)
        assert (answer.status, answer.json["newcount"]) == (200, 100_000)
        item = gzipped(b'{"a":"' + b"b" * 400 + b'"}\n', 100 * MIB)
        assert (await http.post("/items/2/1/1", item, Content_Encoding="gzip")).status == 200
        assert highest(small) - before < MEMORY + 120 * MIB


async def test_a_body_that_alone_takes_too_much_is_refused_for_good(small: RunningServer) -> None:
    async with Http(small.url, small.platform_key) as http:
        answer = await http.post("/jobs/1/1/1", b'{"a":[' + b"[]," * 500_000 + b"0]}")
        assert answer.status == 413
        assert "64 MiB" in answer.text
        assert "Send less" in answer.text


@pytest.mark.long
async def test_a_body_that_finds_no_room_may_come_again(small: RunningServer) -> None:
    record = b'{"_key":"%d","value":"' + b"v" * 1000 + b'"}\n'
    records = b"".join(record % number for number in range(30_000))
    document = b'{"a":[' + b"[]," * 110_000 + b"0]}"
    async with (
        Http(small.url, small.platform_key) as http,
        Raw(small.url, small.platform_key) as first,
    ):
        assert (await http.post("/jobs/9/1/1", document)).status == 404  # there is room, and no such job
        await first.head("POST", "/collections/3/s/first", Content_Length=str(len(records)))
        await first.send(records[:-1])
        await eventually_async(lambda: held(http), lambda bytes_held: bytes_held >= 40_000_000)
        answer = await http.post("/jobs/9/1/1", document)
        assert (answer.status, int(answer.headers["Retry-After"])) == (503, 2)
        assert (await http.get("/healthz")).status == 200
        await first.send(records[-1:])
        assert (await first.answer()).status == 200
        assert (await http.post("/jobs/9/1/1", document)).status == 404


async def test_what_comes_before_a_wrong_line_is_kept_only_where_the_body_is_long(small: RunningServer) -> None:
    async with Http(small.url, small.platform_key) as http:
        wrong = b'{"fp":"/a"}\n{"fp":1}\n'
        assert (await http.post("/hcf/4/f/s/s", wrong)).status == 400
        assert (await http.get("/hcf/4/f/s/s/q")).body == b""
        assert (await http.post("/collections/4/s/c", [{"_key": "a"}, {"_key": "b"}])).status == 200
        assert (await http.post("/collections/4/s/c/deleted", b'"a"\n1\n')).status == 400
        assert len((await http.get("/collections/4/s/c")).lines) == 2


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16"])
async def test_a_byte_order_mark_is_named(small: RunningServer, coding: str) -> None:
    async with Http(small.url, small.platform_key) as http:
        for path in ("/collections/1/s/marked", "/activity/1", "/hcf/1/f/s/0", "/api/projects/1/periodicjobs"):
            answer = await http.post(path, '{"_key": "a"}'.encode(coding))
            assert answer.status == 400
            assert "begins with a byte order mark" in answer.text


async def test_json_in_place_of_a_form_is_named(small: RunningServer) -> None:
    async with Http(small.url, small.platform_key) as http:
        for path in ("/api/run.json", "/schedule.json", "/api/jobs/stop.json", "/cancel.json"):
            answer = await http.post(path, b'{\n "project": 1, "spider": "s"}', Content_Type="application/json")
            assert "body: is JSON, and must be a form" in answer.text


@pytest.mark.long
async def test_members_that_inflate_to_nothing_are_bounded_by_what_is_sent(small: RunningServer) -> None:
    members = gzip.compress(b"", mtime=0) * 3000
    for path, limit in (("/jobs/1/1/1", 8 * MIB), ("/collections/1/s/c", 64 * MIB), ("/api/run.json", 4 * MIB)):
        kind = FORM if path.startswith("/api") else JSON
        async with Raw(small.url, small.platform_key) as raw:
            await raw.head("POST", path, Content_Encoding="gzip", Transfer_Encoding="chunked", Content_Type=kind)
            for _ in range(limit // len(members) + 1):
                await raw.chunk(members)
            assert (await raw.answer()).status == 413
    async with Http(small.url, small.platform_key) as http:
        assert (await http.post("/jobq/7/push", [{"spider": "s", "state": "running"}])).status == 200
        before = highest(small)
        body = gzip.compress(b" ", mtime=0) * 300_000 + gzip.compress(b'{"a":1}')
        assert (await http.post("/jobs/7/1/1", body, Content_Encoding="gzip")).status == 200
        assert highest(small) - before < 10 * MIB


@pytest.mark.parametrize(
    ("path", "piece", "count"),
    [
        ("/jobs/1/1/1", b"[]," * 10_000, 60),
        ("/jobs/1/1/1", b" " * 100_000, 90),
        ("/jobq/1/push", b'{"a":1}\n' * 1000, 6),
    ],
    ids=["values", "bytes", "lines"],
)
@pytest.mark.long(keep=1)
async def test_a_document_that_is_too_large_is_refused_before_it_ends(
    small: RunningServer, path: str, piece: bytes, count: int
) -> None:
    async with Raw(small.url, small.platform_key) as raw:
        await raw.head("POST", path, Transfer_Encoding="chunked")
        await raw.chunk(b"[" if path.startswith("/jobs/") else b"\n")
        for _ in range(count):
            await raw.chunk(piece)
        assert (await raw.answer()).status == 413
        async with timeout_after(60), Http(small.url, small.platform_key) as http:
            while await held(http):
                pass  # although its sender may still send


def test_any_document_of_a_mebibyte_may_be_sent() -> None:
    assert json_bodies.value(b'"' + b"," * (MIB - 2) + b'"') == "," * (MIB - 2)


@pytest.mark.parametrize(
    "number", ["9e300", "1.7976931348623157e308", "9e-320", "2.2250738585072011e-308", "1.2345678901234567e-300"]
)
def test_numbers_take_no_more_time_than_texts_however_they_are_written(number: str) -> None:
    def took(entry: str) -> float:
        count = MIB // (len(entry) + 1)
        text = f"[{','.join([entry] * count)}]".encode()
        began = time.process_time()
        found = json_bodies.value(text)
        seconds = time.process_time() - began
        assert found == [json.loads(entry)] * count
        return seconds

    assert took(number) < 25 * took(json.dumps(number))


def test_numbers_that_no_float_can_be_are_refused() -> None:
    for short in (b"[1e999]", b"[-1e999]"):
        for text in (short, short + b" " * MIB):
            with pytest.raises(msgspec.DecodeError, match="out of range"):
                decoder(Any)(text)
    assert decoder(dict, lines=True)(b'{"a":1.5}\n' * 50_000) == [{"a": 1.5}] * 50_000
