"""Files of records that were made to break them."""

from __future__ import annotations

import csv
import io
import json
import xmlrpc.client
from collections.abc import Sequence
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest

from scrapy_ext.api.platform.formats import Format
from scrapy_ext.formats import ColumnsChangedError, Compression, Schema, format_of_name, open_writer, writer, xlsx

DEEP: Any = 1
for _ in range(60):
    DEEP = [{"d": DEEP}]

HOSTILE: list[dict[str, Any]] = [
    {"text": text}
    for text in ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "NaN", "1e5", "007", "", " a ", "_x0041_")
] + [
    {"text": 'NUL \x00, bell \x07, \ufffe, CR \r LF \n, quote ", comma ,'},
    {"text": None, "number": 2**53 + 1, "long": -(2**63), "huge": 2**64},
    {"text": "\U0001f600" * 3, "number": 0.1, "long": 1, "huge": 1},
    {"any": None, "a.b": 1, "a\nb": 2, "=x": 3, "": 4, "deep": DEEP},
    {"any": True, "list": [], "object": {}, "only": {"a": {}}},
    {"any": "x", "list": [[1], [], None], "only": {"a": {"b": [1, "x"]}}},
    {"any": {"x": [1]}, "list": [[2]], "_other": 1},
    {},
]


def lines(records: Sequence[Any]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def file(kind: Format, records: Sequence[bytes], **options: Any) -> bytes:
    sink = io.BytesIO()
    with open_writer(kind, sink, **options) as made:
        for first in range(0, len(records), 3):
            made.write(records[first : first + 3])
    assert made.size == len(sink.getvalue())
    return sink.getvalue()


def table(records: Sequence[Any], **options: Any) -> Any:
    return pq.read_table(io.BytesIO(file(Format.PARQUET, lines(records), **options)))


def sheets(data: bytes) -> list[list[tuple[Any, ...]]]:
    return [list(sheet.values) for sheet in openpyxl.load_workbook(io.BytesIO(data)).worksheets]


def test_parquet_keeps_every_value() -> None:
    found = table(HOSTILE)
    kept = {field.name for field in found.schema if field.metadata == {b"json": b"true"}}
    for column in set(found.column_names) - {"only", "list", "deep"}:
        for value, record in zip(found.column(column).to_pylist(), HOSTILE, strict=True):
            assert (json.loads(value) if column in kept and value is not None else value) == record.get(column)
    assert {"number", "huge", "any", "object"} <= kept
    # Types are nested to a depth of eight, and what is deeper is JSON.
    deep = found.column("deep").to_pylist()[HOSTILE.index(next(each for each in HOSTILE if "deep" in each))]
    for _ in range(4):
        deep, whole = deep[0]["d"], DEEP
    for _ in range(4):
        whole = whole[0]["d"]
    assert json.loads(deep) == whole
    assert str(found.schema.field("long").type) == "int64"
    assert found.column("list").to_pylist()[-4:] == [[], [[1], [], None], [[2]], None]


def test_the_types_of_parquet_do_not_depend_on_the_order_of_records() -> None:
    forward, backward = table(HOSTILE), table(HOSTILE[::-1])
    assert {field.name: field.type for field in forward.schema}.keys() == set(backward.column_names)
    for name in set(forward.column_names) - {"only"}:
        assert forward.schema.field(name).type == backward.schema.field(name).type


def test_xlsx_computes_nothing_and_keeps_all_digits() -> None:
    data = file(Format.XLSX, lines(HOSTILE))
    ((header, *rows),) = sheets(data)
    texts = [row[header.index("text")] for row in rows]
    assert texts[:8] == [record["text"] for record in HOSTILE[:8]]
    assert texts[10] == "_x005F_x0041_"  # the escape of text that reads like an escape
    assert texts[11] == 'NUL _x0000_, bell _x0007_, _xFFFE_, CR _x000D_ LF \n, quote ", comma ,'
    assert rows[12][header.index("number")] == str(2**53 + 1)
    for sheet in openpyxl.load_workbook(io.BytesIO(data)).worksheets:
        assert not [cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]


def test_csv_is_read_back() -> None:
    written = file(Format.CSV, lines(HOSTILE)).decode()
    assert "\0" in written
    # The reader of Python 3.10 reads no NUL.
    found = list(csv.DictReader(io.StringIO(written.replace("\0", "NUL"), newline="")))
    assert len(found) == len(HOSTILE)
    for row, record in zip(found, HOSTILE, strict=True):
        for name, value in record.items():
            wanted = (
                "" if value is None else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            )
            assert row[name] == wanted.replace("\0", "NUL")


def test_xml_is_read_back() -> None:
    usual = [{"text": "a < b & c", "n": 1, "list": [1.5, None]}, {}]
    (found,), _ = xmlrpc.client.loads(file(Format.XML, lines(usual)), use_builtin_types=True)
    assert found == usual


@pytest.mark.parametrize("kind", Format)
def test_no_records_are_a_file_and_the_same_records_the_same_file(kind: Format) -> None:
    file(kind, [])
    assert file(kind, lines(HOSTILE[:11])) == file(kind, lines(HOSTILE[:11]))


def test_rows_beyond_a_sheet_continue_on_further_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MAX_ROWS", 4)
    found = sheets(file(Format.XLSX, lines([{"n": n} for n in range(7)])))
    assert found == [[("n",), (0,), (1,), (2,)], [("n",), (3,), (4,), (5,)], [("n",), (6,)]]


def test_text_too_long_for_a_cell_is_cut_and_says_so() -> None:
    long = "\U0001f600" * 20_000  # two UTF-16 units each
    ((_, (fits,), (cut,)),) = sheets(file(Format.XLSX, lines([{"t": "x" * 32_767}, {"t": long}])))
    assert fits == "x" * 32_767
    assert cut.endswith("… (cut: 20000 characters)")
    assert len(cut.encode("utf-16-le")) // 2 <= 32_767


def test_more_fields_than_columns_are_in_the_last_one() -> None:
    records: list[dict[str, int]] = [{f"f{n}": n for n in range(999)}, *({f"f{n}": n} for n in range(999, 1020))]
    found = table(records)
    assert found.column_names[-2:] == ["f999", "_other"]
    assert json.loads(found.column("_other").to_pylist()[15]) == {"f1013": 1013}
    ((header, *rows),) = sheets(file(Format.XLSX, lines(records)))
    assert json.loads(rows[15][len(header) - 1]) == {"f1013": 1013}


def test_objects_with_data_for_names_become_json() -> None:
    found = table([{"by_id": {f"id{n}-{m}": m for m in range(100)}} for n in range(5)])
    assert json.loads(found.column("by_id").to_pylist()[4])["id4-99"] == 99


@pytest.mark.parametrize("late", [{"new": 1}, {"n": "text"}, {"o": {"x": 1, "y": 2}}, {"n": 2**70}])
def test_a_record_that_a_schema_does_not_have_is_never_left_out(late: dict[str, Any]) -> None:
    known = lines([{"n": 1, "o": {"x": 1}}])
    schema = Schema()
    schema.add(known)
    with pytest.raises(ColumnsChangedError):
        file(Format.PARQUET, [*known, *lines([late])], schema=schema)
    assert pq.read_table(io.BytesIO(file(Format.PARQUET, [*known, *lines([late])]))).num_rows == 2


def test_columns_come_from_records_from_stats_or_from_a_choice() -> None:
    records = lines([{"b": 1, "a": 2}, {"a": 3, "c": None}])
    assert file(Format.CSV, records) == b"b,a,c\r\n1,2,\r\n,3,\r\n"
    assert file(Format.CSV, records, schema=Schema.of_counts({"a": 2, "b": 1})) == b"a,b\r\n2,1\r\n3,\r\n"
    assert file(Format.CSV, records, schema=Schema.of(["c", "a"])) == b"c,a\r\n,2\r\n,3\r\n"
    assert pq.read_table(io.BytesIO(file(Format.PARQUET, records, schema=Schema.of(["a"])))).to_pylist() == [
        {"a": 2},
        {"a": 3},
    ]


def test_names_of_files_have_their_format() -> None:
    assert format_of_name("a.b.JSONL.gz") == (Format.JSON_LINES, Compression.GZIP)
    assert format_of_name("x.parquet") == (Format.PARQUET, Compression.NONE)
    for unknown in ("a.txt", "a.xlsx.gz", "gz", ""):
        assert format_of_name(unknown) is None


def test_parquet_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "find_spec", lambda _: None)
    with pytest.raises(RuntimeError, match=r"pip install 'scrapy-ext\[parquet\]'"):
        open_writer(Format.PARQUET, io.BytesIO())
