"""Files for spreadsheets and databases: ``format=parquet`` and ``format=xlsx``, and the same on the pages."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest

from scrapy_ext.api.platform.formats import CONTENT_TYPES, Format
from scrapy_ext.compatibility.python import timeout_after
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import RunningServer

ITEMS: list[dict[str, Any]] = [
    {"name": "=1+1", "price": 1, "tags": ["a"], "offer": {"currency": "EUR"}},
    {"price": 2.5, "name": "NUL \x00 and \x1b", "mixed": 1},
    {"name": "NaN", "mixed": [True], "a.b\n,c": "dots", "huge": 10**30, "tags": []},
]


async def stored(http: Http, project: int, items: list[dict[str, Any]], **job: Any) -> str:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running", **job}])
    key = str(pushed.lines[0]["key"])
    if items:
        assert (await http.post(f"/items/{key}", items)).status == 200
    return key


def sheet(body: bytes) -> list[tuple[Any, ...]]:
    return list(openpyxl.load_workbook(io.BytesIO(body)).active.values)


async def test_parquet_has_the_types_of_the_fields(http: Http, project: int) -> None:
    key = await stored(http, project, ITEMS)
    answer = await http.get(f"/items/{key}?format=parquet")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == CONTENT_TYPES[Format.PARQUET]
    assert answer.headers["Content-Disposition"] == f"Attachment; filename=items-{key.replace('/', '-')}.parquet"
    table = pq.read_table(io.BytesIO(answer.body))
    assert {field.name: str(field.type) for field in table.schema} == {
        "name": "string",
        "price": "double",
        "tags": "list<element: string>",
        "offer": "struct<currency: string>",
        "mixed": "string",
        "a.b\n,c": "string",
        "huge": "string",
    }
    assert table.column("name").to_pylist() == [item["name"] for item in ITEMS]
    assert table.column("mixed").to_pylist() == [None, "1", "[true]"]
    assert table.column("huge").to_pylist() == [None, None, str(10**30)]
    assert table.column("tags").to_pylist() == [["a"], None, []]


async def test_xlsx_has_text_where_a_spreadsheet_would_compute(http: Http, project: int) -> None:
    key = await stored(http, project, ITEMS)
    answer = await http.get(f"/items/{key}?format=xlsx&saveas=books.xlsx")
    assert answer.headers["Content-Disposition"] == "Attachment; filename=books.xlsx"
    rows = sheet(answer.body)
    assert rows[0] == ("name", "price", "tags", "offer", "mixed", "a.b\n,c", "huge")
    assert rows[1] == ("=1+1", 1, '["a"]', '{"currency":"EUR"}', None, None, None)
    assert rows[3][0] == "NaN"
    assert rows[3][6] == str(10**30)
    cells = openpyxl.load_workbook(io.BytesIO(answer.body)).active
    assert cells["A2"].data_type == "s"


@pytest.mark.parametrize("form", ["parquet", "xlsx"])
async def test_fields_choose_the_columns(http: Http, project: int, form: str) -> None:
    key = await stored(http, project, ITEMS)
    answer = await http.get(f"/items/{key}?format={form}&fields=price,absent&start={key}/1&count=1&meta=_key")
    rows = (
        [list(each.values()) for each in pq.read_table(io.BytesIO(answer.body)).to_pylist()]
        if form == "parquet"
        else [list(row) for row in sheet(answer.body)[1:]]
    )
    assert rows == [[2.5, None]]


async def test_a_job_without_items_gives_a_file_without_rows(http: Http, project: int) -> None:
    key = await stored(http, project, [])
    assert pq.read_table(io.BytesIO((await http.get(f"/items/{key}?format=parquet")).body)).num_rows == 0
    assert [row for row in sheet((await http.get(f"/items/{key}?format=xlsx")).body) if any(row)] == []


async def test_other_resources_and_their_filters_have_these_formats(http: Http, project: int) -> None:
    key = await stored(http, project, ITEMS)
    await http.post(
        f"/logs/{key}", [{"time": n, "level": 20 + 10 * (n % 2), "message": f"=line {n}"} for n in range(4)]
    )
    await http.post(
        f"/requests/{key}",
        [{"time": 1, "method": "GET", "url": "http://a.example/", "status": 200, "duration": 1, "rs": 2}],
    )
    await http.post(f"/collections/{project}/s/books", [{"_key": "a", "n": 1}, {"_key": "b", "n": "x"}])
    filtered = await http.get(f"/logs/{key}?format=parquet&filter=%5B%22level%22%2C%22%3E%22%2C%5B20%5D%5D")
    assert pq.read_table(io.BytesIO(filtered.body)).column("message").to_pylist() == ["=line 1", "=line 3"]
    requests = pq.read_table(io.BytesIO((await http.get(f"/requests/{key}?format=parquet")).body)).to_pylist()
    assert requests[0]["url"] == "http://a.example/"
    records = pq.read_table(
        io.BytesIO((await http.get(f"/collections/{project}/s/books?format=parquet&meta=_key")).body)
    )
    assert records.to_pylist() == [{"n": "1", "_key": "a"}, {"n": '"x"', "_key": "b"}]
    assert (await http.get(f"/samples/{key}?format=parquet")).status == 400


async def test_the_pages_offer_all_formats_of_all_fields(http: Http, project: int) -> None:
    key = await stored(http, project, ITEMS)
    await http.post(f"/logs/{key}", [{"time": 1, "level": 20, "message": "=line"}])
    await http.post(f"/collections/{project}/s/books", [{"_key": "a", "n": 1}, {"_key": "b,c", "m": "-x"}])
    for path, number in (
        (f"/ui/{key}/items", 3),
        (f"/ui/{key}/log", 1),
        (f"/ui/{project}/collections/s/books/records", 2),
    ):
        for form in ("csv", "xlsx", "json", "jl", "xml", "parquet"):
            answer = await http.get(f"{path}.{form}")
            assert answer.status == 200, (path, form, answer.text)
            assert answer.headers["Content-Disposition"].endswith(f".{form}")
            if form == "csv":
                assert len(list(csv.DictReader(io.StringIO(answer.text)))) == number
            elif form == "jl":
                assert len(answer.lines) == number
            elif form == "parquet":
                assert pq.read_table(io.BytesIO(answer.body)).num_rows == number
    items = list(csv.DictReader(io.StringIO((await http.get(f"/ui/{key}/items.csv")).text)))
    assert items[2]["a.b\n,c"] == "dots"
    assert items[0]["name"] == "'=1+1"
    records = list(csv.DictReader(io.StringIO((await http.get(f"/ui/{project}/collections/s/books/records.csv")).text)))
    assert records == [{"n": "1", "_key": "a", "m": ""}, {"n": "", "_key": "b,c", "m": "'-x"}]


@pytest.mark.long
async def test_all_records_of_a_long_job_are_in_the_file(http: Http, project: int) -> None:
    items = [{"n": n, "text": "x" * 300, f"field{n % 7}": n if n % 2 else str(n)} for n in range(20_000)]
    key = await stored(http, project, items)
    answer = await http.get(f"/items/{key}?format=parquet", Accept_Encoding="gzip")
    table = pq.read_table(io.BytesIO(answer.body))
    assert table.column("n").to_pylist() == list(range(20_000))
    assert table.schema.field("field1").metadata == {b"json": b"true"}
    assert [json.loads(value) for value in table.column("field1").to_pylist()[1:16:7]] == [1, "8", 15]
    rows = sheet((await http.get(f"/items/{key}?format=xlsx")).body)
    assert [row[0] for row in rows[1:]] == list(range(20_000))


@pytest.mark.long
@pytest.mark.parametrize("form", ["csv&fields=n,text", "json", "xml", "xlsx", "parquet"])
async def test_a_download_takes_little_memory_whatever_its_length(tmp_path: Path, form: str) -> None:
    with RunningServer(tmp_path / "data", options=["--no-runner"]) as server:
        async with Http(server.url, server.platform_key) as http:
            key = await stored(http, 1, [])
            for first in range(0, 240_000, 10_000):
                items = [
                    {"n": n, "text": f"text {n} " * 20, "tags": [n], "o": {"p": n / 2}}
                    for n in range(first, first + 10_000)
                ]
                assert (await http.post(f"/items/{key}?start={first}", items)).status == 200
            # What its libraries take first is theirs, and depends on how the system maps their files.
            short = await stored(http, 1, items[:100])
            assert (await http.get(f"/items/{short}?format={form}")).status == 200
            before = peak(server)
            assert (await http.get(f"/items/{key}?format={form}")).status == 200
            assert peak(server) - before < 60 * 1024 * 1024


def peak(server: RunningServer) -> int:
    """The bytes of memory that the server has had at most."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


@pytest.mark.long
async def test_a_client_that_goes_away_ends_the_work(http: Http, server: RunningServer, project: int) -> None:
    items = [{"n": n, "text": "x" * 500} for n in range(20_000)]
    key = await stored(http, project, items)
    before = unnamed_files(server)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with timeout_after(0.05):
                await http.get(f"/items/{key}?format=xlsx")
    # The memory that its answers have held is free again, and so are their files.
    await eventually_async(lambda: unnamed_files(server) == before)
    assert (await http.get(f"/items/{key}?format=xlsx")).status == 200


def unnamed_files(server: RunningServer) -> int:
    """The number of files without a name that the server has open."""
    found = 0
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += "(deleted)" in os.readlink(descriptor)
    return found
