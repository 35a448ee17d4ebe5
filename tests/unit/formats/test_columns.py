"""Records that are written a column at a time, beside the same records one by one."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Sequence
from typing import Any

import pytest

from scrapy_ext.api.platform.formats import CsvOptions, Format
from scrapy_ext.compatibility.zip_files import compress_with
from scrapy_ext.formats import ColumnsChangedError, Schema, columns, encoder_of, recognizer
from scrapy_ext.formats.csv import CsvEncoder
from tests.unit.formats.test_formats import HOSTILE, file, lines

_LONG = "\U0001f600" * 17_000
_VALUES: list[list[Any]] = [
    [
        "",
        "a",
        "=1+1",
        "-5",
        "a,b",
        'a "quote"',
        "two\nlines",
        "\r",
        "\x00",
        "\ufffe",
        "<a & b>",
        "_x0041_",
        " pad ",
        _LONG,
    ],
    ["usual text", "more of it"],
    [0, 1, -(2**31), 2**31],
    [1, 10**15, -(10**15), 2**70],
    [0.5, 1e22, 5e-324, -0.0],
    [1, 0.5, 10**20],
    [True, False],
    [None],
    [[], [1, None], ["a,b"], [[]], [{"a": 1}]],
    [{}, {"a": 1}, {"b": "x", "a": None}, {"a": [True]}],
    ["text", 1, None, [1], {"a": "&"}, True, 0.5],
]
_ALONE: dict[str, Any] = {
    "csv": lambda: CsvEncoder(CsvOptions(("a", "b", "a", "c"), include_headers=True)),
    "csv for people": lambda: CsvEncoder(CsvOptions(("a",)), escape_formulas=True),
    "csv with an escape": lambda: CsvEncoder(CsvOptions(("a", "b"), sep=";", quote="'", escape="\\", lineend=";")),
    "csv of columns": lambda: CsvEncoder(CsvOptions((), include_headers=True), Schema.of(["c", "b"])),
    "xml": lambda: encoder_of(Format.XML),
    "xlsx": lambda: encoder_of(Format.XLSX, Schema.of(["b", "a", "c"])),
}


def pages(seed: int) -> list[bytes]:
    """Records whose fields have some values each, and may be missing; now and then one that differs."""
    chance = random.Random(seed)
    fields = {name: chance.choice(_VALUES) for name in ("a", "b", "c")}
    missing, odd = chance.choice([0, 0, 0.3]), chance.choice([0, 0, 0.1])
    return lines(
        [
            chance.choice(HOSTILE)
            if chance.random() < odd
            else {name: chance.choice(values) for name, values in fields.items() if chance.random() >= missing}
            for _ in range(chance.randint(1, 30))
        ]
    )


@pytest.mark.parametrize("kind", _ALONE)
def test_records_together_are_what_they_are_one_by_one(kind: str) -> None:
    for seed in range(30):
        records = pages(seed)
        assert together(kind, records, len(records)) == together(kind, records, 1)


def together(kind: str, records: Sequence[bytes], step: int) -> bytes:
    encoder = _ALONE[kind]()
    parts = [encoder.begin(), *(encoder.page(records[at : at + step]) for at in range(0, len(records), step))]
    data = b"".join([*parts, encoder.end()])
    if kind != "xlsx":
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize("kind", [Format.CSV, Format.XLSX])
def test_a_reader_of_columns_gives_the_values_of_decoded_records(kind: Format) -> None:
    for seed in range(30):
        records = pages(seed)
        read = file(kind, records)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "_MAX_NAMES", 0)
            assert file(kind, records) == read


@pytest.mark.parametrize("kind", [Format.CSV, Format.XLSX])
def test_a_field_that_the_columns_do_not_have_is_never_left_out(kind: Format) -> None:
    records = lines([*[{"a": n, "b": None} for n in range(20)], {"a": 1, "new": 2}])
    with pytest.raises(ColumnsChangedError, match="'new' is new"):
        file(kind, records, schema=Schema.of_counts({"a": 21}))


def test_records_that_are_decoded_at_once_are_few_and_short() -> None:
    records = [b"x" * size for size in (*[10] * 3000, 300_000, *[20_000] * 9, 1, 300_000)]
    found = list(columns.blocks(records))
    assert [record for block in found for record in block] == records
    assert all(len(block) <= 500 for block in found)
    assert all(len(block) == 1 or sum(map(len, block)) <= 32 * 1024 for block in found)
    assert len(found) < 40


def test_records_with_known_columns_are_recognized_without_their_types() -> None:
    schema = Schema(typed=False)
    schema.add(lines([{"a": 1, "b": None}]))
    made = recognizer.Recognizer(schema.columns, typed=False)
    usual = lines([{"a": n * 10**20 if n % 2 else "text of an item"} for n in range(50)])
    assert made.recognizes(usual)
    for other in ({"a": 1, "c": None}, [1], "text"):
        assert not made.recognizes([*usual, json.dumps(other).encode()])


def test_sheets_are_compressed_by_the_library_of_the_package() -> None:
    with zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive, archive.open("part", "w") as part:
        used = []

        class Compressor:
            def compress(self, data: bytes) -> bytes:
                used.append(data)
                return b""

            def flush(self) -> bytes:
                return b"\x03\x00"

        assert compress_with(part, Compressor())
        part.write(b"text")
    assert used == [b"text"]
