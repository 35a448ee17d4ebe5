"""Bodies of requests to the platform."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from scrapy_ext.api.platform.periodic import blank, edited
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http import bodies, form_bodies, json_bodies
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.forms import Form, check_job, run_metadata
from scrapy_ext.server.platform import frontier
from scrapy_ext.server.platform import ingestion as intake
from scrapy_ext.server.store.collections.writes import checked
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.records.chunks import (
    ITEMS,
    LOGS,
    REQUESTS,
    SAMPLES,
    RecordKind,
    tally_of_lines,
    unpack_lines,
)
from scrapy_ext.server.store.records.segments import growth, time_at, unpack_segments
from tests.fuzz.calls import request_of, run
from tests.fuzz.target import target

REFUSED = (ContractError, Refusal)

_KINDS: list[tuple[intake.RecordChecker, RecordKind]] = [
    (intake.ITEM, ITEMS),
    (intake.REQUEST, REQUESTS),
    (intake.LOG, LOGS),
    (intake.SAMPLE, SAMPLES),
]
_PACK: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("identity", bytes),
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("gzip", bytes),
    ("deflate", bytes),
    ("br", bytes),
]

_ITEMS = b'{"name":"a","price":1.5}\n{"name":"\xc3\xbc","price":2}\n\n {"name":null, "price":-0.0}\r\n'
_REQUEST = b'{"time":1,"method":"GET","url":"u","status":200,"duration":1,"rs":1,"parent":0,"fp":"f"}\n'
_LOG = b'{"time":1,"level":20,"message":"m\xc3\xbc"}\n{"time":2,"level":40,"message":"\\ud83d\\ude00"}'


@target(
    "body-records",
    [
        b"\x00\x00" + _ITEMS,
        b"\x00\x01" + _ITEMS,
        b"\x01\x00" + _REQUEST * 2 + _REQUEST.replace(b'"method":"GET",', b""),
        b"\x02\x02" + _LOG,
        b'\x03\x00[1,2,null]\n[2,"x"]\n',
        b"\x00\x03" + gzip.compress(_ITEMS)[:30],
        b'\x00\x00{"a":18446744073709551616}\n{"a":1e400}\n',
        b'\x00\x00{"a":1,"a":2}\n{"a":1}\n{"\\u0061":1}',
        b"\x00\x00" + b'{"a":' * 300 + b"1" + b"}" * 300,
        b'\x00\x00{"_type":"x","b":[{"c":[]}]}\n' * 30,
    ],
    refuses=REFUSED,
    calls=(20_000, 400),
)
def records(data: bytes) -> None:
    """The stored records are those that were sent, and their tally is the same however they are read."""
    if len(data) < 2:
        return
    form, kind = _KINDS[data[0] % len(_KINDS)]
    coding, pack = _PACK[data[1] % len(_PACK)]
    body = data[2:]
    chunks = run(intake.packed(request_of(pack(body), coding), form, kind))
    lines = [line for chunk in chunks for line in unpack_lines(chunk.body)]
    assert len(lines) == sum(chunk.records for chunk in chunks)
    if pack is bytes and coding != "identity":
        return
    # White space that is none of JSON's may stand around a record.
    sent = [line.strip() for line in body.split(b"\n") if line.strip()]
    decoded = [msgspec.json.decode(line) for line in sent]
    if form is intake.REQUEST:
        decoded = [{"method": "GET", **record} for record in decoded]
    assert [msgspec.json.decode(line) for line in lines] == decoded
    at = 0
    for chunk in chunks:
        tally = tally_of_lines(kind, lines[at : at + chunk.records])
        at += chunk.records
        assert (tally.counts, tally.size) == (chunk.tally.counts, chunk.tally.size)


async def _all_strings(data: bytes) -> list[str]:
    return [text async for some in json_bodies.strings(request_of(data)) for text in some]


@target("body-strings", [b'"a"\n["b","c"]\n\n"\\u0000"', b'["a",1]', b'"' + b"x" * 900 + b'"'], refuses=REFUSED)
def strings(data: bytes) -> None:
    """All of them are text, and none is left out."""
    found = run(_all_strings(data))
    assert all(isinstance(text, str) for text in found)
    expected: list[str] = []
    for line in data.split(b"\n"):
        if line.strip():
            value = json.loads(line)
            expected += value if isinstance(value, list) else [value]
    assert found == expected


@target(
    "body-form",
    [
        b"project=1&spider=a&add_tag=x&add_tag=y&priority=3&job_settings=%7B%22A%22%3A1%7D",
        b'project=1&spider=py:a.py&cmd_args=--x&meta={"state":"running","priority":[]}&units=7',
        b"project=99999999999999999999&job=1/2/3&job=2/3/4",
        b"a=%zz&%=&=&&b=%c3%28",
    ],
    refuses=REFUSED,
)
def form(data: bytes) -> None:
    """A job's metadata made of a form can be written as JSON."""
    fields = Form(run(form_bodies.form(request_of(data))))
    assert len(fields.fields) <= len(data)
    metadata, state = run_metadata(fields)
    check_job(fields.get("spider") or "s", metadata)
    assert msgspec.json.decode(msgspec.json.encode(metadata)) is not None
    assert state.value
    assert all(key.project == fields.key_number("project") for key in fields.jobs())


@target("body-inflated", [bytes([n]) + pack(_ITEMS) for n, (_, pack) in enumerate(_PACK[:3])], refuses=(Refusal,))
def inflated(data: bytes) -> None:
    """A body never becomes more than its limit, and is what another library makes of it."""
    if not data:
        return
    coding = ("identity", "gzip", "deflate")[data[0] % 3]
    limit = 5000
    body = run(bodies.whole(request_of(data[1:], coding), limit))
    assert len(body) <= limit
    if coding != "identity":
        expected, rest = b"", data[1:]
        while rest:
            stream = zlib.decompressobj(47)
            expected += stream.decompress(rest)
            assert stream.eof, "a stream that is cut off was taken"
            rest = stream.unused_data
        assert body == expected


@target(
    "collection-records",
    [
        b'{"_key":"a","v":1}\n{"_key":"b"}\n{"v":{"_key":"x"},"_key":"c"}\n',
        b'{"_key":"a","\\u005fkey":"b","v":[1,2]}',
        b'{"v":1e400,"_key":"k"}\n{"_key":"","v":1}\n{"_key":5}',
        b'{"_key":"a","v":1,"_key":"b"}',
        b'{"\\u005fkey":"\\ud83d\\ude00","v":18446744073709551615}',
    ],
    refuses=REFUSED,
)
def collection_records(data: bytes) -> None:
    """The stored record and its key are the record that was sent."""
    given = run(json_bodies.objects(request_of(data)))
    before = [msgspec.json.decode(line) for _, line, _ in given]
    for record, (key, value) in zip(before, checked(given, None), strict=True):
        decoded = msgspec.json.decode(value)
        assert {"_key": key.decode(), **decoded} == record
        assert "_key" not in decoded


#: Decodes JSON with numbers as their text: a member that is passed over may hold a number that no float has.
_exact = partial(json.loads, parse_int=str, parse_float=str)


@target(
    "frontier-requests",
    [
        b'{"fp":"a","qdata":{"x":[1,2]},"fdata":null,"p":-3}',
        b'{"fp":"\xc3\xbc\\n","qdata":"\\u0000"}',
        b'{"fp":"","p":1}',
        b'{"fp":"x","p":2147483648}',
        b'{"fp":"a","fp":"b","qdata":1.50}',
        b'{"fp":"x","0":2147e483647}',
    ],
    refuses=REFUSED,
)
def frontier_requests(data: bytes) -> None:
    """A pair that is read again is what was sent."""
    (queued,) = frontier._queued_of(data, 1)
    try:
        sent = _exact(data)
    except UnicodeDecodeError:  # in the name of a member that is passed over
        return
    assert queued.fp == sent["fp"].encode()
    assert queued.fp
    assert _exact(queued.pair) == [sent["fp"], sent.get("qdata")]
    assert -(2**31) <= queued.priority < 2**31


@target(
    "periodic-job",
    [
        b'{"cron":"30 4 * * *","tasks":[{"name":"s"}]}',
        b'{"cron":"0 0 29 2 *","tasks":[{"name":"py:a.py","script_args":"x"}],"addtags":["a"],"disabled":true}',
        b'{"cron":"* * * * *","tasks":[],"id":5}',
        b'{"tasks":[{"name":"s","x":1}]}',
        b'{"tasks":[{"name":"s","spider_args":{"a":null}}],"cron":"61 4 * * *","type":"script"}',
    ],
    refuses=REFUSED,
)
def periodic_job(data: bytes) -> None:
    """A schedule that is taken can be stored and read again."""
    fields = json_bodies.value(data)
    if not isinstance(fields, dict):
        return
    schedule = edited(blank(1), fields)
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=type(schedule)) == schedule


@target(
    "stored-chunk",
    [
        b"\x00" + zlib.compress(b'{"a":1}\n{"a":2}'),
        b"\x08" + msgspec.msgpack.encode([(1, 0), (1, 5)])[:7].ljust(8, b"\x00") + zlib.compress(b"1\n2"),
        bytes([5]) + msgspec.msgpack.encode([(2, 300)])[:5] + gzip.compress(b"1\n2\n"),
        b"\x03" + msgspec.msgpack.encode([(1,)])[:3] + zlib.compress(b"1"),
    ],
    refuses=(StoreError,),
)
def stored_chunk(data: bytes) -> None:
    """A damaged row is reported as one, and a whole one is read the same in every way."""
    if not data:
        return
    size = data[0]
    times = data[1 : 1 + size] if size else None
    body = data[1 + size :]
    segments = unpack_segments(7, times, body)
    lines = [line for segment in segments for line in segment.lines]
    for place in range(min(len(lines), 20)):
        assert isinstance(time_at(7, times, place), int)
    assert all(isinstance(number, int) for _, number in growth(7, times, len(lines)))


def finite(value: Any) -> bool:
    """Return True if no number in a decoded value is infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    return all(map(finite, value)) if isinstance(value, list) else True
