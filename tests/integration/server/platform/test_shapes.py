"""Large bodies, most of whose records have the same fields: the server counts those in another way."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from typing import Any

import msgpack
import pytest

from tests.support.http import Http

#: More than the server looks at in one go, and more than a chunk.
MANY = 1500
ODD = 1200


def _record(n: int) -> dict[str, Any]:
    return {"n": n, "_type": "T", "текст": "é" * 40, "deep": {"a": [n, None, 1.5]}, "url": f"http://a/{n}" * 10}


def _body(odd: bytes | None = None) -> bytes:
    records = [json.dumps(_record(n), ensure_ascii=False).encode() for n in range(MANY)]
    if odd is not None:
        records[ODD] = odd
    return b"\n".join(records) + b"\n"


def _line(**changes: Any) -> bytes:
    return json.dumps({**_record(ODD), **changes}, ensure_ascii=False).encode()


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(
    "odd",
    [
        None,
        _line(more=1),
        b'{"n":1}',
        b"{}",
        _line().replace(b'"n"', b'"\\u006e"'),
        _line().replace(b'{"n"', b'{"n":0,"n"'),
        b'{"url":"u","deep":1,"n":2,"_type":3,"' + "текст".encode() + b'":null}',
        b"  " + _line() + b"\r",
        _line(**{'a "quoted" name': 1}),
    ],
    ids=["none", "more", "less", "empty", "escaped", "twice", "order", "blanks", "quoted"],
)
@pytest.mark.long(keep=6)
async def test_stats_are_exact_whatever_one_record_is_like(
    http: Http, project: int, odd: bytes | None, coding: str
) -> None:
    body = _body(odd)
    sent = gzip.compress(body, 1) if coding == "gzip" else body
    assert (await http.post(f"/items/{project}/1/1", sent, Content_Encoding=coding)).status == 200
    records = [json.loads(line) for line in body.splitlines()]
    answer = await http.get(f"/items/{project}/1/1")
    assert answer.body.splitlines() == [line.strip() for line in body.splitlines()]
    stats = (await http.get(f"/items/{project}/1/1/stats?all=1")).json
    assert stats["counts"] == Counter(name for record in records for name in record)
    size = sum(len(msgpack.packb(record)) for record in records)
    assert stats["totals"] == {"input_bytes": size, "input_values": MANY}


async def test_fields_with_quotes_in_their_names_are_counted(http: Http, project: int) -> None:
    records = [{'a "b"\\': n, "text": "x" * 200} for n in range(MANY)]
    assert (await http.post(f"/items/{project}/1/1", records)).status == 200
    stats = (await http.get(f"/items/{project}/1/1/stats")).json
    assert stats["counts"] == {'a "b"\\': MANY, "text": MANY}


async def test_whole_numbers_of_any_length_are_kept(http: Http, project: int) -> None:
    body = _body(_line(n=2**70))
    assert (await http.post(f"/items/{project}/1/1", body)).status == 200
    assert (await http.get(f"/items/{project}/1/1/{ODD}")).lines[0]["n"] == 2**70
    assert (await http.get(f"/items/{project}/1/1/stats")).json["counts"]["n"] == MANY


@pytest.mark.parametrize(
    ("odd", "status"),
    [
        (_line().replace(b"1.5", b"NaN"), 400),
        (_line().replace(b"1.5", b"1e999"), 400),
        (_line().replace("é".encode(), b"\xff"), 400),
        (_line().replace("é".encode(), b"\\ud800"), 400),
        (_line().replace(b"1.5", b"[" * 3000 + b"]" * 3000), 400),
        (_line() + _line(), 400),
        (_line()[:-1], 400),
        (b"[1]", 400),
        (_line(text="x" * 2**20), 413),
    ],
    ids=["NaN", "1e999", "not UTF-8", "lone surrogate", "deep", "two on a line", "cut off", "array", "too large"],
)
async def test_one_bad_line_is_named_and_nothing_is_stored(http: Http, project: int, odd: bytes, status: int) -> None:
    answer = await http.post(f"/items/{project}/1/1", gzip.compress(_body(odd), 1), Content_Encoding="gzip")
    assert answer.status == status
    assert f"line {ODD + 1}:" in answer.text
    assert (await http.get(f"/items/{project}/1/1")).body == b""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
async def test_sizes_equal_those_of_the_encoder_whatever_the_values_and_posts(
    http: Http, project: int, seed: int
) -> None:
    chance = random.Random(seed)

    def value(depth: int = 0) -> Any:
        kind = chance.randrange(8 if depth < 2 else 6)
        match kind:
            case 0:
                return chance.choice([0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1])
            case 1:
                return chance.choice([-1, -32, -33, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, -(2**63)])
            case 2:
                return chance.choice([None, True, False, 0.0, 1.5, -2e300])
            case 3 | 4 | 5:
                return chance.choice("xé\n") * chance.choice([0, 1, 15, 16, 31, 32, 127, 128, 255, 256])
            case 6:
                return [value(depth + 1) for _ in range(chance.choice([0, 1, 15, 16]))]
            case _:
                return {f"k{n}": value(depth + 1) for n in range(chance.choice([0, 1, 15, 16]))}

    size = stored = 0
    fields = ["a", "b"]
    for _ in range(12):
        if chance.random() < 0.5:
            fields = [f"f{n}" for n in range(chance.choice([1, 2, 15, 16]))]
        records = [{name: value() for name in fields} for _ in range(chance.choice([1, 2, 31, 33, 400, 1000]))]
        if chance.random() < 0.3:
            chance.choice(records)["more"] = value()
        assert (await http.post(f"/items/{project}/1/1?start={stored}", records)).status == 200
        stored += len(records)
        size += sum(len(msgpack.packb(record)) for record in records)
    stats = (await http.get(f"/items/{project}/1/1/stats?all=1")).json
    assert stats["totals"] == {"input_bytes": size, "input_values": stored}
