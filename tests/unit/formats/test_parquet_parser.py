"""Parquet by Arrow's parser of JSON, beside Parquet of values that were decoded one by one."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_ext.api.platform.formats import Format
from scrapy_ext.formats import Schema, arrow, open_writer, recognizer

#: Numbers as JSON texts that other servers and hands write.
_NUMBERS = """
0 -0 -0.0 0.0 1 -1 1.0 1e3 1E-2 2.5 0.1 4.35 0.30000000000000004 123456789.123456789 -1e-7 -2.5e-320 1e-400 5e-324
1.7976931348623157e308 9007199254740991 9007199254740992 9007199254740993 -9007199254740993 9223372036854775807
-9223372036854775808 9223372036854775808 18446744073709551616 123456789012345678901234567890 9e15 1e16 1e19 1e22
"""
_STRINGS = r'''"" "a" "1" "-0" "-0," "2020-01-01" "\u0000" "\ud83d\ude00" "é😀" "\"\\\/\n"'''
NUMBERS, STRINGS = _NUMBERS.split(), _STRINGS.split()
NAMES = ['"a"', r'"\u0061"', '"b"', '"c"', '""', '"_other"', r'"x\ny"']

scalars = st.sampled_from([*NUMBERS, *STRINGS, "null", "true", "false"])
#: The default alphabet of Hypothesis takes seconds of processor time to make.
texts = st.text(st.one_of(st.integers(32, 126), st.integers(0, 0xFFFF)).map(chr))
#: Usual columns have values of one kind.
kinds = st.one_of(
    st.sampled_from(NUMBERS),
    st.integers(-(2**54), 2**54).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(STRINGS),
    texts.map(json.dumps).filter(lambda text: "\\ud" not in text),
    st.sampled_from(["true", "false"]),
    scalars,
)


def nested(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(values, max_size=3).map(lambda each: "[" + ", ".join(each) + "]")
    return st.one_of(lists, objects(values))


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # A name may be there twice.
    members = st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=4)
    return members.map(lambda each: "{" + ",".join(f"{name} : {value}" for name, value in each) + "}")


@st.composite
def pages(draw: st.DrawFn) -> list[bytes]:
    """Records whose fields have a kind each, and some that differ."""
    kind = st.sampled_from(
        [
            st.sampled_from(NUMBERS[:16]),
            st.sampled_from(["1", "-5", "9007199254740992", "9223372036854775807"]),
            st.sampled_from(["0.5", "1", "-0", "null"]),
            st.sampled_from(STRINGS),
            st.sampled_from(["true", "null"]),
            st.sampled_from(["[]", "[1]", "[1.5, 2]", "[null]", "null"]),
            st.sampled_from(["{}", '{"x":1}', '{"y":{"z":[2.5]},"x":null}', '{"x":-0}']),
        ]
    )
    columns = {name: draw(kind) for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))}
    usual = st.fixed_dictionaries({}, optional=columns).map(
        lambda record: "{" + ",".join(f"{name}:{value}" for name, value in record.items()) + "}"
    )
    odd = st.one_of(objects(st.recursive(kinds, nested, max_leaves=8)), scalars)
    chances = draw(st.sampled_from([[usual], [usual, usual, usual, odd], [odd]]))
    return [record.encode() for record in draw(st.lists(st.one_of(chances), max_size=12))]


def parquet(lines: Sequence[bytes], schema: Schema | None) -> Any:
    sink = io.BytesIO()
    with open_writer(Format.PARQUET, sink, schema=schema) as writer:
        for first in range(0, len(lines), 5):
            writer.write(lines[first : first + 5])
    return pq.read_table(sink)


def discovered(lines: Sequence[bytes], schema: Schema) -> Schema:
    for first in range(0, len(lines), 4):
        schema.add(lines[first : first + 4])
    return schema


def by_all_ways(lines: Sequence[bytes]) -> list[tuple[Any, str]]:
    """Return the schema and values of a file of a temporary file, of two passes, and of chosen columns."""
    tables = [
        parquet(lines, None),
        parquet(lines, discovered(lines, Schema())),
        parquet(lines, discovered(lines, Schema.of(["b", "a", "none"], typed=True))),
    ]
    # The text of values has the sign of zero.
    return [(table.schema, repr(table.to_pylist())) for table in tables]


def compare_both_ways(lines: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recognizer, "_MIN_RECORDS", 1)
        patch.setattr(recognizer, "_BYTES_PER_TYPE", 0)
        parsed = by_all_ways(lines)
        patch.setattr(arrow.Parser, "table", lambda *_, **__: None)
        patch.setattr(recognizer.Recognizer, "recognizes", lambda *_: False)
        assert parsed == by_all_ways(lines)


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"a":1.5}', b'{"a":-0}'],
        [b"{}", b"{}", b"{}", b'{"a":{}}', b'{"c":0,"a":{"x":1}}'],
        [b'{"b":1,"a":[{"a":0},{"a":"","b":0.5}]}'],
        [b"{}", b"{}", b"{}", b'{"a":-0,"b":-0.0}', b'{"a":0,"b":0}'],
        [b'{"a":1}', b"{}", b"{}", b"{}", b"null", b"null", b"{}"],
        [b'{"a":1.5}', b'{"a":2}', b'{"a":3}', b'{"a":3}', b'{"a":9007199254740993}'],
        [b'{"a":1}', b'{"a":2}', b'{"a":3}', b'{"a":3}', b'{"a":9007199254740993}', b'{"a":0.5}'],
        [
            b'{"a":[{"b":1}]}',
            b'{"a":[{"b":2}]}',
            b"{}",
            b"{}",
            b'{"a":[null,{"b":9007199254740993}]}',
            b'{"a":[{"b":0.5}]}',
        ],
        [b'{"a":1}', b'{"a":"1"}', b'{"a":2, "b": "x"}', b'{"b":"y"}'],
        [b'{"a":[]}', b'{"a":[null, null]}', b'{"a":[]}', b"{}", b'{"a":[[]]}'],
    ],
)
def test_both_ways_give_the_same_types_and_values(lines: list[bytes]) -> None:
    compare_both_ways(lines)


@pytest.mark.parametrize("examples", [15, pytest.param(200, marks=pytest.mark.long)])
def test_both_ways_give_the_same_of_random_records(examples: int) -> None:
    random = settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    random(given(pages())(compare_both_ways))()


def test_usual_records_are_parsed() -> None:
    """Otherwise the comparison would compare nothing."""
    lines = [
        json.dumps({"number": n, "fraction": n / 4, "text": str(n) * 9, "l": [n], "o": {"x": None}}).encode()
        for n in range(50)
    ]
    schema = discovered(lines, Schema())
    made = recognizer.Recognizer(schema.columns)
    assert made.recognizes(lines)
    assert not made.recognizes([*lines, b'{"number":0.5}'])
