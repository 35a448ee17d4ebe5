"""Items, request records and logs over HTTP."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
import xmlrpc.client
import zlib
from typing import Any

import pytest

from tests.support.http import Http, lines, longest_wait
from tests.support.servers import RunningServer

ITEMS = [
    {"name": "a", "price": 1.5},
    {"name": 'b,"c"\n', "tags": ["x"], "price": None},
    {"_type": "T", "deep": {"a": 1}},
]
REQUEST = {"time": 1, "method": "GET", "url": "http://a/", "status": 200, "duration": 3, "rs": 4}
LOG = {"time": 1, "level": 20, "message": "Spider opened"}


@pytest.fixture
async def job(http: Http, project: int) -> str:
    """A job with the items above."""
    key = f"{project}/1/1"
    assert (await http.post(f"/items/{key}", ITEMS)).status == 200
    return key


async def test_items_come_back_as_the_bytes_that_were_sent(http: Http, project: int) -> None:
    body = b'{ "b" : 1.0,"a":"\\u00e9\xc3\xa9", "a":2, "n":12345678901234567890123 }\n{"x":1e3}'
    assert (await http.post(f"/items/{project}/1/1", body)).status == 200
    answer = await http.get(f"/items/{project}/1/1")
    assert answer.headers["Content-Type"] == "application/x-jsonlines; charset=UTF-8"
    assert answer.body == body + b"\n"


async def test_a_write_answers_with_an_empty_200(http: Http, project: int) -> None:
    answer = await http.post(f"/items/{project}/1/1", [{"a": 1}])
    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, b"", "text/plain; charset=UTF-8")


@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_trailing_slash_does_not_matter(http: Http, job: str, slash: str) -> None:
    assert (await http.get(f"/items/{job}{slash}")).lines == ITEMS
    assert (await http.post(f"/items/{job}{slash}?start=3", [{"a": 1}])).status == 200


async def test_every_level_of_the_path_reads_what_it_names(http: Http, project: int) -> None:
    for spider, number in ((1, 1), (1, 2), (2, 1)):
        items = [{"n": f"{spider}/{number}/{n}"} for n in range(2)]
        await http.post(f"/items/{project}/{spider}/{number}", items)

    async def names(path: str) -> list[Any]:
        return [item["n"] for item in (await http.get(f"/items/{project}{path}")).lines]

    assert await names("") == ["1/1/0", "1/1/1", "1/2/0", "1/2/1", "2/1/0", "2/1/1"]
    assert await names("/1") == ["1/1/0", "1/1/1", "1/2/0", "1/2/1"]
    assert await names("/1/2") == ["1/2/0", "1/2/1"]
    assert await names("/1/2/1") == ["1/2/1"]
    assert (await http.get(f"/items/{project}/1/2/1/n")).lines == ["1/2/1"]
    assert (await http.get(f"/items/{project}/1/2/n")).lines == ["1/2/0", "1/2/1"]
    assert (await http.get(f"/items/{project}/1/2/2")).status == 404
    assert (await http.get(f"/items/{project}/9")).body == b""


async def test_pages_by_count_start_startafter_and_index(http: Http, project: int) -> None:
    for number in (1, 2):
        await http.post(f"/items/{project}/1/{number}", [{"n": n} for n in range(600)])
    after, found = "", []
    while page := (await http.get(f"/items/{project}?count=170&meta=_key{after}")).lines:
        found += page
        after = f"&startafter={page[-1]['_key']}"
    assert [item["_key"] for item in found] == [f"{project}/1/{j}/{n}" for j in (1, 2) for n in range(600)]
    first = (await http.get(f"/items/{project}/1/1?start={project}/1/1/599")).lines
    assert first == [{"n": 599}]
    assert (await http.get(f"/items/{project}/1/2?index=3&index=599&index=600")).lines == [{"n": 3}, {"n": 599}]
    assert (await http.get(f"/items/{project}?count=0")).body == b""


async def test_meta_is_added_last_beside_a_field_of_the_same_name(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/1/1", b'{"_key":"mine"}\n{}')
    before = int((await http.get("/system/ts")).text)
    answer = await http.get(f"/items/{project}/1/1?meta=_key&meta=_ts")
    first, second = answer.body.splitlines()
    assert first.startswith(b'{"_key":"mine","_key":"%d/1/1/0","_ts":' % project)
    assert abs(json.loads(second)["_ts"] - before) < 60_000
    only = await http.get(f"/items/{project}/1/1?meta=_key&nodata=1")
    assert only.lines == [{"_key": f"{project}/1/1/0"}, {"_key": f"{project}/1/1/1"}]


async def test_requests_and_logs_put_their_key_first(http: Http, project: int) -> None:
    await http.post(f"/requests/{project}/1/1", [{**REQUEST, "parent": None, "fp": None}])
    await http.post(f"/logs/{project}/1/1", [LOG])
    answer = await http.get(f"/requests/{project}/1/1?meta=_key")
    assert answer.lines == [{"_key": f"{project}/1/1/0", **REQUEST}]
    assert answer.body.startswith(b'{"_key":')
    assert (await http.get(f"/logs/{project}/1/1?meta=_key")).body.startswith(b'{"_key":')


async def test_json(http: Http, job: str) -> None:
    for answer in (
        await http.get(f"/items/{job}?format=json"),
        await http.get(f"/items/{job}", Accept="application/json"),
    ):
        assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"
        assert answer.json == ITEMS
    assert (await http.get(f"/items/{job}?format=json&count=0")).json == []


async def test_xml_is_read_by_an_xml_rpc_library(http: Http, project: int) -> None:
    items = [{"a": 1, "b": -(2**40), "c": 1.5, "d": None, "e": True, "f": ["<&>", {"g": "\u00e9\r\n"}]}, {"h": "\x01"}]
    await http.post(f"/items/{project}/1/1", items)
    answer = await http.get(f"/items/{project}/1/1?format=xml")
    assert answer.headers["Content-Type"] == "application/xml; charset=UTF-8"
    ((found,), _) = xmlrpc.client.loads(answer.text)
    assert found == [items[0], {"h": "\ufffd"}]


async def test_xml_of_a_record_that_is_nested_too_deeply_is_refused(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/1/1", b'{"a":' + b"[" * 600 + b"]" * 600 + b"}")
    answer = await http.get(f"/items/{project}/1/1?format=xml")
    assert answer.status == 400
    assert "nested" in answer.text


@pytest.mark.long
async def test_others_are_answered_while_a_large_record_is_written_as_xml(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/1/1", b'{"a":[' + b"1," * 500_000 + b"1]}")
    assert await longest_wait(http, lambda: http.get(f"/items/{project}/1/1?format=xml")) < 0.6


async def test_csv(http: Http, job: str) -> None:
    answer = await http.get(f"/items/{job}?format=csv&fields=name,price,tags,none&include_headers=1")
    assert answer.headers["Content-Type"] == "text/csv; charset=UTF-8"
    assert list(csv.reader(io.StringIO(answer.text, newline=""))) == [
        ["name", "price", "tags", "none"],
        ["a", "1.5", "", ""],
        ['b,"c"\n', "", '["x"]', ""],
        ["", "", "", ""],
    ]
    own = await http.get(f"/items/{job}?format=csv&fields=name,price&sep=%7C&quote='&escape=%5C&lineend=%0D%0A&count=1")
    assert own.text == "a|1.5\r\n"


async def test_text_gives_a_field_as_it_is(http: Http, job: str) -> None:
    answer = await http.get(f"/items/{job}/0/name", Accept="text/plain")
    assert (answer.headers["Content-Type"], answer.text) == ("text/plain; charset=UTF-8", "a\n")


async def test_saveas_names_the_file(http: Http, job: str) -> None:
    answer = await http.get(f"/items/{job}?saveas=items.jl")
    assert answer.headers["Content-Disposition"] == "Attachment; filename=items.jl"
    assert (await http.get(f"/items/{job}?saveas=a%0D%0Ab")).status == 400


async def test_saveas_names_the_file_of_every_read(http: Http, job: str, project: int) -> None:
    await http.post(f"/collections/{project}/s/books", [{"_key": "a", "value": "b"}])
    for path in (
        f"/items/{job}/stats",
        f"/jobs/{job}",
        f"/jobs/{job}/tags",
        f"/collections/{project}/s/books/count",
        f"/collections/{project}/s/books/a/value",
        f"/hcf/{project}/list",
        f"/jobq/{project}/count",
        f"/api/projects/{project}/periodicjobs",
        "/system/ts",
    ):
        answer = await http.get(f"{path}?saveas=some.file")
        assert answer.headers["Content-Disposition"] == "Attachment; filename=some.file", path
        assert (await http.get(f"{path}?saveas=..%2Ffile")).status == 400, path
        assert "Content-Disposition" not in (await http.get(path)).headers, path
    assert "Content-Disposition" not in (await http.get(f"/items/{job}/99?saveas=some.file")).headers


async def test_index_needs_the_path_of_a_job(http: Http, job: str) -> None:
    for path in (job.partition("/")[0], job.rpartition("/")[0]):
        answer = await http.get(f"/items/{path}?index=0")
        assert (answer.status, answer.text[:32]) == (400, "index: needs the path of a job. ")


async def test_gzip_both_ways(http: Http, project: int) -> None:
    items = [{"n": n, "text": "x" * 300} for n in range(5000)]
    for job, body in (
        (1, gzip.compress(lines(items))),
        (2, gzip.compress(lines(items[:9])) + gzip.compress(lines(items[9:]))),
    ):
        assert (await http.post(f"/items/{project}/1/{job}", body, Content_Encoding="gzip")).status == 200
        answer = await http.get(f"/items/{project}/1/{job}", Accept_Encoding="deflate, gzip")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert [json.loads(line) for line in gzip.decompress(answer.body).splitlines()] == items
    assert (
        "Content-Encoding" not in (await http.get(f"/items/{project}/1/1?count=1", Accept_Encoding="gzip;q=0")).headers
    )


@pytest.mark.long
async def test_a_damaged_or_endless_body_is_refused_and_nothing_stored(http: Http, project: int) -> None:
    body = gzip.compress(lines(ITEMS))
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    line = b'{"a":"' + b"x" * 1_000_000 + b'"}\n'
    endless = b"".join(bomb.compress(line) for _ in range(270)) + bomb.flush()
    blank = gzip.compress(b"\n" * 1_000_001)
    for damaged, status in ((body[:-9], 400), (b"plain", 400), (endless, 413), (blank, 413)):
        answer = await http.post(f"/items/{project}/1/1", damaged, Content_Encoding="gzip")
        assert answer.status == status
    assert (await http.post(f"/items/{project}/1/1", b"x", Content_Encoding="br")).status == 415
    assert (await http.get(f"/items/{project}/1/1")).body == b""


async def test_a_write_sent_again_is_stored_once(http: Http, project: int) -> None:
    key = f"{project}/1/1"
    for path, headers in ((f"/items/{key}?start=0", {}), (f"/items/{key}", {"Content_Range": "items 0-/*"})):
        for _ in range(2):
            assert (await http.post(path, ITEMS, **headers)).status == 200
    assert (await http.get(f"/items/{key}")).lines == ITEMS
    assert (await http.get(f"/items/{key}/stats")).json["totals"]["input_values"] == 3


async def test_without_a_position_items_are_appended(http: Http, job: str) -> None:
    await http.post(f"/items/{job}", [{"last": 1}])
    assert (await http.get(f"/items/{job}/3")).lines == [{"last": 1}]


async def test_writers_of_one_job_at_once_lose_nothing(http: Http, project: int) -> None:
    key = f"{project}/1/1"
    await asyncio.gather(*(http.post(f"/items/{key}", [{"n": n * 10 + i} for i in range(10)]) for n in range(30)))
    items = [item["n"] for item in (await http.get(f"/items/{key}")).lines]
    assert sorted(items) == list(range(300))
    assert all(items[i : i + 10] == list(range(items[i], items[i] + 10)) for i in range(0, 300, 10))


async def test_stats_count_fields_and_hide_internal_ones(http: Http, job: str) -> None:
    stats = (await http.get(f"/items/{job}/stats")).json
    assert stats["counts"] == {"name": 2, "price": 2, "tags": 1, "deep": 1}
    assert stats["totals"]["input_values"] == 3
    assert (await http.get(f"/items/{job}/stats?all=1")).json["counts"]["_type"] == 1
    assert (await http.get("/items/1/1/424242/stats")).json == {
        "counts": {},
        "totals": {"input_bytes": 0, "input_values": 0},
    }


async def test_stats_of_items_are_those_of_the_hosted_service(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/1/1", [{"x": n} for n in range(111)])
    stats = (await http.get(f"/items/{project}/1/1/stats")).json
    assert stats == {"counts": {"x": 111}, "totals": {"input_bytes": 444, "input_values": 111}}


async def test_stats_of_logs_count_levels_and_of_requests_their_fields(http: Http, project: int) -> None:
    await http.post(f"/logs/{project}/1/1", [LOG, {**LOG, "level": 40, "message": "\u00e9"}])
    await http.post(f"/requests/{project}/1/1", [REQUEST, {**REQUEST, "parent": 0, "fp": None}])
    logs = (await http.get(f"/logs/{project}/1/1/stats")).json
    assert logs == {"counts": {"20": 1, "40": 1}, "totals": {"input_bytes": 14 + 3, "input_values": 2}}
    requests = (await http.get(f"/requests/{project}/1/1/stats")).json
    assert requests["counts"] == {"url": 2, "method": 2, "status": 2, "duration": 2, "rs": 2, "parent": 1}


async def test_lines_may_be_laid_out_in_any_way(http: Http, project: int) -> None:
    body = b'\n\r\n  {"a":1}  \r\n\n{ "b" : [1,\t2] }\n\t{"c":"}{"}\r\n{"d":{}}\n\n'
    assert (await http.post(f"/items/{project}/1/1", body)).status == 200
    assert (await http.get(f"/items/{project}/1/1")).lines == [{"a": 1}, {"b": [1, 2]}, {"c": "}{"}, {"d": {}}]


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1}{"b":2}',
        b'{"a":1}{"b":2}\n{"c":\n3}',
        b'{"a":1,\n"b":2}\n{"c":1}{"d":1}',
        b'{"a":[{}\n,{}]}\n{"b":1}{"c":1}',
        b'{"a":"}\n{"}\n{}',
    ],
)
async def test_a_line_is_one_record_whatever_the_lines_add_up_to(http: Http, project: int, body: bytes) -> None:
    answer = await http.post(f"/items/{project}/1/1", body)
    assert answer.status == 400
    assert "Error parsing data, line " in answer.text


async def test_a_body_in_small_pieces_is_the_same_body(http: Http, project: int) -> None:
    body = lines([{"n": n, "text": "\u00e9" * (n % 50)} for n in range(400)])

    async def dripping() -> Any:
        for at in range(0, len(body), 997):
            yield body[at : at + 997]

    assert (await http.post(f"/items/{project}/1/1", dripping())).status == 200
    assert (await http.get(f"/items/{project}/1/1")).lines == [json.loads(line) for line in body.splitlines()]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b" "])
async def test_what_was_sent_compressed_comes_back_the_same(http: Http, project: int, end: bytes) -> None:
    body = lines(ITEMS).rstrip() + end
    key = f"{project}/1/1"
    for start in (0, 3, 3):
        sent = gzip.compress(body, 9 if start else 1)
        assert (await http.post(f"/items/{key}?start={start}", sent, Content_Encoding="gzip")).status == 200
    assert (await http.get(f"/items/{key}")).lines == ITEMS * 2
    assert (await http.get(f"/items/{key}/5")).lines == ITEMS[2:]
    assert (await http.get(f"/items/{key}/6")).status == 404
    assert (await http.get(f"/items/{key}/stats")).json["totals"]["input_values"] == 6


async def test_an_empty_body_stores_nothing(http: Http, project: int) -> None:
    assert (await http.post(f"/items/{project}/1/1", b"")).status == 200
    assert (await http.post(f"/items/{project}/1/1", gzip.compress(b"\n"), Content_Encoding="gzip")).status == 200
    assert (await http.get(f"/items/{project}/1/1")).body == b""


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("items/1", b"{not json}", 400, "line 1"),
        ("items/1", b'{"a":1}\n\n[1]', 400, "line 3"),
        ("items/1", b'{"a":NaN}', 400, "line 1"),
        ("items/1", b'{"a":1e999}', 400, "line 1"),
        ("items/1", b'{"a":"\xff"}', 400, "line 1"),
        ("items/1", b'{"a":1}\n{"a":' + b"[" * 3000 + b"]" * 3000 + b"}", 400, "line 2"),
        ("items/1", b'{"a":1}\n{"a":"' + b"x" * 1048576 + b'"}\n', 413, "line 2"),
        ("items/1", b'{"a":"' + b"x" * 5_000_000, 413, "max 1048576 bytes"),
        ("items/1?start=x", b"{}", 400, "start: must be a whole number"),
        ("items/1?start=7", b"{}", 400, "the job has 0 records"),
        ("requests/1", b'{"url":"http://a/"}', 400, "missing required field"),
        ("logs/1", b'{"message":1,"time":1,"level":10}', 400, "line 1: is not a log record"),
        ("items/x", b"{}", 400, "job: must be a whole number"),
        ("items", b"{}", 405, "GET"),
    ],
)
async def test_bad_writes_are_named_and_store_nothing(
    http: Http, project: int, path: str, body: bytes, status: int, said: str
) -> None:
    resource, _, rest = path.partition("/")
    answer = await http.post(f"/{resource}/{project}/1/{rest}" if rest else f"/{resource}/{project}/1", body)
    assert answer.status == status
    assert said in answer.text
    assert answer.headers["Content-Type"] == "text/plain; charset=UTF-8"
    assert (await http.get(f"/{resource}/{project}")).body == b""


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("format=yaml", "format: must be one of"),
        ("format=csv", "fields: is required"),
        ("count=many", "count: must be a whole number"),
        ("start=5", "start: must be <project>/<spider>/<job>/<number>"),
        ("startafter=99999/1/1/1", "startafter: is a key of project 99999"),
        ("start={project}/1/99/0", "start: is a key of job {project}/1/99. Read /{project}/1/99 for that."),
        ("meta=_colour", "meta: must be one of"),
        ("filter=%5B%5D", "filter: must be an array of a field"),
        ("index=-1", "index: must be a whole number"),
    ],
)
async def test_bad_parameters_are_named(http: Http, job: str, query: str, said: str) -> None:
    project = job.partition("/")[0]
    answer = await http.get(f"/items/{job}?{query.replace('{project}', project)}")
    assert answer.status == 400
    assert said.replace("{project}", project) in answer.text


async def test_a_client_that_goes_away_in_the_middle_stores_nothing(
    server: RunningServer, http: Http, project: int
) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST /items/{project}/1/1?apikey={server.platform_key} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
    )
    writer.write(head.encode() + b'{"a":1}\n' * 1000)
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await http.get(f"/items/{project}/1/1")).body == b""


@pytest.mark.parametrize("parameter", ["", "?start=500"])
async def test_content_range_sets_the_index_of_the_first_items(http: Http, project: int, parameter: str) -> None:
    key = f"{project}/1/1"
    for _ in range(2):  # Sent again as after a lost answer.
        assert (await http.post(f"/items/{key}{parameter}", ITEMS, Content_Range="items 500-/*")).status == 200
    assert (await http.post(f"/items/{key}", [{"last": 1}])).status == 200
    read = (await http.get(f"/items/{key}?meta=_key")).lines
    assert [item["_key"] for item in read] == [f"{key}/{index}" for index in range(500, 504)]
    assert (await http.get(f"/items/{key}/503")).lines == [{"last": 1}]
    assert (await http.get(f"/items/{key}/0")).status == 404
    assert (await http.get(f"/items/{key}?index=3&index=500")).lines == ITEMS[:1]
    assert (await http.get(f"/items/{key}?start={key}/502&count=1")).lines == ITEMS[2:]
    assert (await http.get(f"/items/{key}?startafter={key}/502")).lines == [{"last": 1}]
    assert (await http.get(f"/items/{project}?count=2")).lines == ITEMS[:2]
    assert (await http.get(f"/items/{key}/stats")).json["totals"]["input_values"] == 4
    refused = await http.post(f"/items/{key}", ITEMS, Content_Range="items 505-/*")
    assert refused.status == 400
    assert "the job has 4 records, so that records 504 to 504 would be missing" in refused.text


async def test_a_request_record_without_a_method_is_one_of_get(http: Http, project: int) -> None:
    key = f"{project}/1/1"
    bare = {name: value for name, value in REQUEST.items() if name != "method"}
    for _ in range(2):
        assert (await http.post(f"/requests/{key}?start=0", [REQUEST | {"method": "PUT"}, bare, REQUEST])).status == 200
    read = (await http.get(f"/requests/{key}")).lines
    assert [record["method"] for record in read] == ["PUT", "GET", REQUEST["method"]]
    assert read[1] == {name: value for name, value in bare.items() if value is not None} | {"method": "GET"}
    stats = (await http.get(f"/requests/{key}/stats")).json
    assert (stats["counts"]["method"], stats["totals"]["input_values"]) == (3, 3)
    assert (await http.post(f"/requests/{key}", [bare | {"method": 7}])).status == 400
