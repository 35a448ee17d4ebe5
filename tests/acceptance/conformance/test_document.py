"""The document of the API, path by path and parameter by parameter, with a client as bare as curl.

Each test is a section of the document. What the document leaves open is held in tests/integration/server/platform.
"""

from __future__ import annotations

import gzip
import json
import re
import xmlrpc.client
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import requests

from tests.support.servers import RunningServer

ITEMS = [{"name": "a", "n": 1, "_type": "T"}, {"name": 'b"é', "n": None}, {"n": [1, {"x": True}]}]
REQUEST = {"time": 1, "method": "GET", "url": "http://a/", "status": 200, "duration": 3, "rs": 4}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")


class Answer(NamedTuple):
    """An answer, its body as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        return self.headers["Content-Type"].partition(";")[0]


class Curl:
    """Requests with the key, or with other credentials; nothing is added that a test does not name."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.session = requests.Session()
        self.session.headers.clear()

    def __call__(self, method: str, path: str, body: Any = None, auth: Any = None, **headers: str) -> Answer:
        if isinstance(body, list):
            body = "\n".join(map(json.dumps, body)).encode()
        named = {"Accept-Encoding": "identity", **{name.replace("_", "-"): value for name, value in headers.items()}}
        key = (self.server.platform_key, "") if auth is None else auth
        address = self.server.url + path
        with self.session.request(
            method, address, data=body, headers=named, auth=key or None, timeout=60, stream=True
        ) as answer:
            return Answer(answer.status_code, answer.headers, answer.raw.read(decode_content=False))

    def json(self, path: str, **headers: str) -> Any:
        answer = self("GET", path, **headers)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    def lines(self, path: str, **headers: str) -> list[Any]:
        answer = self("GET", path, **headers)
        assert answer.status == 200, answer.body
        assert answer.kind == "application/x-jsonlines"
        return [json.loads(line) for line in answer.body.splitlines()]

    def done(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The JSON of a call that must succeed, if it has any."""
        answer = self(method, path, body, **headers)
        assert answer.status in (200, 201, 202, 204), (answer.status, answer.body)
        return json.loads(answer.body) if answer.body.strip() else None


@pytest.fixture
def curl(server: RunningServer) -> Iterator[Curl]:
    curl = Curl(server)
    yield curl
    curl.session.close()


@pytest.fixture
def run(curl: Curl, project_id: int) -> Any:
    def run(**fields: Any) -> str:
        answer = curl.done("POST", "/api/run.json", {"project": project_id, "spider": "s", **fields})
        assert answer["status"] == "ok"
        key: str = answer["jobid"]
        return key

    return run


@pytest.fixture
def items(curl: Curl, project_id: int) -> str:
    """The path of a job with items."""
    path = f"/items/{project_id}/1/1"
    curl.done("POST", path, ITEMS)
    return path


# ── Common conventions ──


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("json", "application/json"),
        ("jl", "application/x-jsonlines"),
        ("xml", "application/xml"),
        ("text", "text/plain"),
        ("csv", "text/csv"),
    ],
)
def test_formats_by_parameter_and_by_header(curl, items, name, kind):
    by_parameter = curl("GET", f"{items}?fields=n&format={name}")
    by_header = curl("GET", f"{items}?fields=n", Accept=kind)
    assert by_parameter.status == by_header.status == 200
    assert by_parameter.body == by_header.body != b""
    assert by_parameter.kind == kind


def test_xml_uses_the_types_of_xml_rpc(curl, items):
    body = curl("GET", f"{items}?format=xml").body.decode()
    (value,), _ = xmlrpc.client.loads(body.replace('<?xml version="1.0" encoding="UTF-8"?>', ""))
    assert value == ITEMS


def test_csv_with_each_of_its_parameters(curl, items):
    assert curl("GET", f"{items}?format=csv").status == 400
    assert curl("GET", f"{items}?format=csv&fields=n,name").body.decode() == '1,a\n,"b""é"\n"[1,{""x"":true}]",\n'
    for flag in ("1", "Y"):
        shown = curl("GET", f"{items}?format=csv&fields=name&count=1&include_headers={flag}").body
        assert shown == b"name\na\n"
    options = "sep=%3B&quote=%27&escape=%5C&lineend=%0D%0A"
    curl.done("POST", items, [{"name": "it's;"}])
    shown = curl("GET", f"{items}?format=csv&fields=name,n&{options}&index=0&index=3").body
    assert shown == b"a;1\r\n'it\\'s;';\r\n"


def test_meta_and_nodata(curl, items, project_id):
    (first,) = curl.lines(f"{items}?count=1&meta=_key&meta=_ts")
    assert (first["_key"], first["_ts"] > 1_700_000_000_000) == (f"{project_id}/1/1/0", True)
    for flag in ("nodata", "nodata=1", "nodata=True"):
        assert curl.lines(f"{items}?{flag}&meta=_key&count=1") == [{"_key": f"{project_id}/1/1/0"}]
    curl.done("POST", items, '{"_key":"own"}')
    both = curl("GET", f"{items}/3?meta=_key").body
    assert both == f'{{"_key":"own","_key":"{project_id}/1/1/3"}}\n'.encode()


@pytest.mark.parametrize(
    "path",
    [
        *("items/{}/1/1", "items/{}/1/1/stats", "jobs/{}/1/1", "collections/{}/list", "hcf/{}/list", "jobq/{}/count"),
        *("api/jobs/list.json?project={}", "activity/{}/"),
    ],
)
def test_gzip_is_answered_when_it_is_accepted_however_short_the_answer(curl, items, run, project_id, path):
    run()
    curl.done("POST", f"/collections/{project_id}/s/c", [{"_key": "a"}])
    path = "/" + path.format(project_id)
    plain, packed = curl("GET", path), curl("GET", path, Accept_Encoding="gzip, deflate")
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert "gzip" not in curl("GET", path, Accept_Encoding="gzip;q=0").headers.get("Content-Encoding", "")


def test_saveas(curl, items):
    answer = curl("GET", f"{items}?saveas=crawl.jl")
    assert answer.headers["Content-Disposition"] == "Attachment; filename=crawl.jl"


def test_the_time_needs_no_credentials(curl):
    answer = curl("GET", "/system/ts", auth=())
    assert (answer.status, answer.kind) == (200, "text/plain")
    assert int(answer.body) > 1_700_000_000_000


# ── Jobs ──


def test_run_with_each_of_its_parameters(curl, run, project_id):
    key = run(add_tag=["a", "b"], priority=0, job_settings='{"X": 1}', units=6, argument="v")
    assert key == f"{project_id}/1/1"
    shown = curl.json(f"/jobs/{key}")
    assert (shown["tags"], shown["priority"], shown["units"]) == (["a", "b"], 0, 6)
    assert (shown["job_settings"], shown["spider_args"]) == ({"X": 1}, {"argument": "v"})
    by_number = curl.done("POST", "/api/run.json", {"project": project_id, "jobq_id": 1, "n": 2})
    assert curl.json(f"/jobs/{by_number['jobid']}")["spider"] == "s"
    assert curl.json(f"/jobs/{by_number['jobid']}")["priority"] == 2


@pytest.mark.parametrize(
    "fields",
    [
        *({"spider": ""}, {"project": ""}, {"priority": 5}, {"priority": -1}, {"units": 0}, {"units": 7}),
        *({"job_settings": "[]"}, {"job_settings": "{"}),
    ],
)
def test_a_run_that_is_not_as_written_is_refused(curl, project_id, fields):
    answer = curl("POST", "/api/run.json", {"project": project_id, "spider": "s", **fields})
    assert answer.status == 400
    assert next(iter(fields)) in answer.body.decode()


def test_the_list_of_jobs(curl, run, project_id):
    first, second = run(add_tag="a"), run(n=1, add_tag=["b", "c"])
    run(spider="other", meta='{"state": "finished", "close_reason": "finished", "version": "1"}')
    listing = f"/api/jobs/list.json?project={project_id}"
    whole = curl.json(listing)
    assert (whole["status"], whole["count"], whole["total"]) == ("ok", 3, 3)
    done = whole["jobs"][0]
    assert {"id", "spider", "spider_type", "state", "close_reason", "priority", "tags", "version"} <= set(done)
    assert {"updated_time", "responses_received", "items_scraped", "logs", "errors_count"} <= set(done)
    assert TIME.match(done["updated_time"])

    def ids(query: str) -> list[str]:
        return [job["id"] for job in curl.json(f"{listing}&{query}")["jobs"]]

    assert ids(f"job={first}") == [first]
    assert ids("spider=s") == [second, first]
    assert ids("state=pending") == ids("lacks_tag=zz&state=pending") == [second, first]
    assert ids("has_tag=a&has_tag=c") == [second, first]
    assert ids("lacks_tag=a&spider=s") == [second]
    assert ids("count=1&offset=2") == [first]
    paged = curl.json(f"{listing}&count=1&offset=1")
    assert (paged["count"], paged["total"]) == (1, 3)
    lines = curl.lines(f"/api/jobs/list.jl?project={project_id}")
    assert (lines[0], len(lines)) == ({"status": "ok", "count": 3, "total": 3}, 4)


def test_jobs_are_tagged_stopped_and_deleted(curl, run, project_id):
    one, two = run(add_tag="a"), run(n=1)
    project = {"project": project_id}
    curl.done("POST", "/api/jobs/update.json", {**project, "job": one, "add_tag": ["x", "y"], "remove_tag": "a"})
    assert curl.json(f"/jobs/{one}/tags") == ["x", "y"]
    curl.done("POST", f"/jobq/{project_id}/update", [{"key": one, "state": "running"}])
    assert curl.done("POST", "/api/jobs/stop.json", {**project, "job": one})["status"] == "ok"
    assert curl.done("POST", "/api/jobs/delete.json", {**project, "job": [one, two]})["count"] == 2
    assert [curl.json(f"/jobs/{key}/state") for key in (one, two)] == ["deleted"] * 2
    for path in ("update", "delete", "stop"):
        assert curl("POST", f"/api/jobs/{path}.json", project).status == 400


# ── Periodic jobs ──


def test_periodic_jobs(curl, project_id):
    path = f"/api/projects/{project_id}/periodicjobs"
    tasks = [{"name": "s", "priority": 4, "spider_args": {"a": "b"}}, {"name": "t"}]
    body = {"cron": "5 4 * * *", "tasks": tasks, "addtags": ["t"], "disabled": True, "description": "d"}
    made = curl.done("POST", path, json.dumps(body), Content_Type="application/json")
    assert {name: made[name] for name in ("cron", "addtags", "disabled", "description", "project", "type")} == {
        **{name: body[name] for name in ("cron", "addtags", "disabled", "description")},
        "project": project_id,
        "type": "spider",
    }
    assert made["tasks"][0] == {**tasks[0], "script_args": "", "jobq_id": made["tasks"][0]["jobq_id"]}
    assert made["tasks"][1]["priority"] == 2
    page = curl.json(path)
    assert (page["count"], page["next"], page["previous"], page["results"]) == (1, None, None, [made])
    assert 0 <= int(page["meta"]["suggested_hour"]) <= 23
    own = f"{path}/{made['id']}"
    assert curl.json(own) == made
    assert curl.done("PATCH", own, '{"disabled": false}') == {**made, "disabled": False}
    script = curl.done(
        "POST", path, json.dumps({"cron": "0 * * * *", "tasks": [{"name": "py:x.py", "script_args": "-v"}]})
    )
    assert (script["type"], script["tasks"][0]["script_args"]) == ("script", "-v")
    gone = curl("DELETE", own)
    assert (gone.status, gone.body) == (204, b"")
    assert curl("GET", own).status == 404


@pytest.mark.parametrize("cron", ["*/5 * * * *", "1-5 * * * *", "1,2 * * * *", "60 * * * *", "* * * *", "a * * * *"])
def test_cron_takes_values_and_stars_only(curl, project_id, cron):
    body = json.dumps({"cron": cron, "tasks": [{"name": "s"}]})
    answer = curl("POST", f"/api/projects/{project_id}/periodicjobs", body)
    assert (answer.status, b"cron" in answer.body) == (400, True)


# ── Items and requests ──


def test_items_are_read_at_each_level(curl, items, project_id):
    curl.done("POST", f"/items/{project_id}/1/2", [{"n": 4}])
    curl.done("POST", f"/items/{project_id}/2/1", [{"n": 5}])
    root = f"/items/{project_id}"
    assert len(curl.lines(root)) == 5
    assert len(curl.lines(f"{root}/1")) == 4
    assert curl.lines(f"{root}/1/1") == ITEMS
    assert curl.lines(f"{root}/1/1/0") == ITEMS[:1]
    assert curl.lines(f"{root}/1/1/0/name") == ["a"]
    assert curl.lines(f"{root}/1/1/name") == ["a", 'b"é']
    assert curl.lines(f"{root}/1/1?index=0&index=2") == [ITEMS[0], ITEMS[2]]
    assert curl.lines(f"{root}?start={project_id}/1/1/2&count=2") == [ITEMS[2], {"n": 4}]
    assert curl.lines(f"{root}?startafter={project_id}/1/1/2") == [{"n": 4}, {"n": 5}]


def test_items_are_inserted_where_content_range_says(curl, items):
    curl.done("POST", items, [{"n": "again"}], Content_Range="items 2-/*")
    curl.done("POST", items, [{"n": "next"}], Content_Range="items 3-/*")
    assert curl.lines(f"{items}?startafter={items[7:]}/1") == [{"n": "again"}, {"n": "next"}]
    assert curl("POST", items, [{}], Content_Range="items 9-/*").status == 400
    large = curl("POST", items, [{"t": "x" * 2**20}])
    assert (large.status, b"line 1" in large.body) == (413, True)
    assert len(curl.lines(items)) == 4


def test_stats_of_items_and_requests(curl, items, project_id):
    stats = curl.json(f"{items}/stats")
    assert (stats["counts"], stats["totals"]["input_values"]) == ({"name": 2, "n": 3}, 3)
    assert stats["totals"]["input_bytes"] > 0
    for flag in ("all", "all=1", "all=Y"):
        assert curl.json(f"{items}/stats?{flag}")["counts"] == {"name": 2, "n": 3, "_type": 1}
    curl.done("POST", f"/requests/{project_id}/1/1", [REQUEST, {**REQUEST, "parent": 0, "fp": "f"}])
    stats = curl.json(f"/requests/{project_id}/1/1/stats")
    assert (stats["counts"]["url"], stats["counts"]["parent"], stats["totals"]["input_values"]) == (2, 1, 2)


def test_request_records(curl, project_id):
    root, second = f"/requests/{project_id}", {**REQUEST, "parent": 0, "fp": "f"}
    curl.done("POST", f"{root}/1/1", [REQUEST, second])
    for level in ("", "/1", "/1/1"):
        assert curl.lines(root + level) == [REQUEST, second]
    assert curl.lines(f"{root}/1/1/1") == [second]
    assert curl.lines(f"{root}/1/1?nodata=1&meta=_key&count=1") == [{"_key": f"{project_id}/1/1/0"}]
    assert curl.lines(f"{root}?startafter={project_id}/1/1/0") == [second]
    assert curl("GET", f"{root}?format=csv&fields=url,fp").body == b"http://a/,\nhttp://a/,f\n"
    for name in REQUEST.keys() - {"method"}:
        short = {each: value for each, value in REQUEST.items() if each != name}
        answer = curl("POST", f"{root}/1/1", [short])
        assert (answer.status, name in answer.body.decode()) == (400, True)
    curl.done("POST", f"{root}/1/2", [{name: value for name, value in REQUEST.items() if name != "method"}])
    assert [record["method"] for record in curl.lines(f"{root}/1/2")] == ["GET"]


# ── Collections ──


def test_collections(curl, project_id):
    root = f"/collections/{project_id}"
    path = f"{root}/s/pages"
    records = [{"_key": "a/1", "value": "v"}, {"_key": "b1", "value": [1]}, {"_key": "b2"}, {"_key": "b3"}]
    curl.done("POST", path, records)
    assert curl.lines(f"{root}/list") == [{"type": "s", "name": "pages"}]

    def keys(query: str) -> list[str]:
        return [record["_key"] for record in curl.lines(f"{path}?meta=_key&{query}")]

    assert keys("") == ["a/1", "b1", "b2", "b3"]
    assert keys("key=b3&key=b1") == ["b1", "b3"]
    assert keys("prefix=b") == keys("startafter=a/1") == keys("start=b1") == ["b1", "b2", "b3"]
    assert keys("prefix=a&prefix=b&prefixcount=1") == ["a/1", "b1"]
    ts = curl.lines(f"{path}?meta=_ts&count=1")[0]["_ts"]
    assert (keys(f"startts={ts}&endts={ts + 1}"), keys(f"startts={ts + 1}"), keys(f"endts={ts}")) == (keys(""), [], [])
    assert curl.json(f"{path}/count") == {"count": 4, "scanned": 4}
    assert curl.json(f"{path}/count?prefix=b") == {"count": 3, "scanned": 3}
    assert curl.lines(f"{path}/a%2F1") == [{"value": "v"}]
    value = curl("GET", f"{path}/a%2F1/value")
    assert (value.body, value.kind) == (b"v", "text/plain")
    curl.done("POST", f"{path}/c", '{"n": 1}')
    assert curl.lines(f"{path}/c") == [{"n": 1}]
    curl.done("DELETE", f"{path}/c")
    assert curl("GET", f"{path}/c").status == 404
    curl.done("POST", f"{path}/deleted", '"a/1"\n"b1"\n"absent"\n')
    assert keys("") == ["b2", "b3"]
    curl.done("DELETE", f"{path}?prefix=b&prefixcount=1")
    curl.done("DELETE", f"{path}?key=b2")
    assert keys("") == ["b3"]
    curl.done("DELETE", f"{path}?startts={ts}&endts={ts + 1}")
    assert keys("") == []


def test_whole_collections(curl, project_id):
    root = f"/collections/{project_id}"
    for kind in ("s", "cs", "vs", "vcs"):
        curl.done("POST", f"{root}/{kind}/one", '{"_key": "a", "n": 1}')
    curl.done("POST", f"{root}/rename?name=one&new_name=two", "")
    assert {(each["type"], each["name"]) for each in curl.lines(f"{root}/list")} == {
        (kind, "two") for kind in ("s", "cs", "vs", "vcs")
    }
    assert curl.lines(f"{root}/vs/two") == [{"n": 1}]
    curl.done("POST", f"{root}/delete?name=two", "")
    assert curl.lines(f"{root}/list") == []


@pytest.mark.parametrize(
    ("record", "status"),
    [
        ('{"n": 1}', 400),
        ('{"_key": "a", "n": Infinity}', 400),
        ('{"_key": "a", "n": 18446744073709551616}', 400),
        ('{"_key": "a", "n": 18446744073709551615}', 200),
        ('{"_key": "a", "t": "' + "x" * 2**20 + '"}', 413),
    ],
)
def test_limits_of_a_record(curl, project_id, record, status):
    assert curl("POST", f"/collections/{project_id}/s/c", record).status == status


# ── Frontier ──


def test_frontier(curl, project_id):
    slot = f"/hcf/{project_id}/f/s/0"
    queued = [{"fp": "/a", "qdata": {"x": 1}, "fdata": {"y": 2}, "p": 1}, {"fp": "/b"}, {"fp": "/a"}]
    assert curl.done("POST", slot, queued) == {"newcount": 2}
    batches = curl.lines(f"{slot}/q")
    assert [batch["requests"] for batch in batches] == [[["/b", None]], [["/a", {"x": 1}]]]
    assert all(isinstance(batch["id"], str) for batch in batches)
    assert curl.lines(f"{slot}/q?mincount=1") == batches[:1]
    assert curl.lines(f"{slot}/f") == [{"fp": "/a"}, {"fp": "/b"}]
    assert (curl.json(f"/hcf/{project_id}/list"), curl.json(f"/hcf/{project_id}/f/list")) == (["f"], ["0"])
    curl.done("POST", f"{slot}/q/deleted", json.dumps(batches[0]["id"]))
    assert curl.lines(f"{slot}/q") == batches[1:]
    curl.done("POST", f"{slot}/q/deleted", [["x", batches[1]["id"]], batches[0]["id"]])
    assert curl.lines(f"{slot}/q") == []
    assert curl.done("POST", slot, queued) == {"newcount": 0}
    curl.done("DELETE", slot)
    assert curl.json(f"/hcf/{project_id}/list") == []


# ── Activity, the job queue, comments and logs ──


def test_activity(curl, project_id):
    path = f"/activity/{project_id}/"
    for event in ("job:completed", "job:cancelled"):
        curl.done("POST", path, [{"event": event, "job": f"{project_id}/1/1", "user": "u"}])
    assert [each["event"] for each in curl.lines(path)] == ["job:cancelled", "job:completed"]
    assert len(curl.lines(f"{path}?count=1")) == 1
    other = 10**18 + project_id
    curl.done("POST", f"/activity/{other}/", [{"n": 1}, {"n": 2}])
    several = f"/activity/projects/?p={project_id}&p={other}&meta=_project"
    assert [each["_project"] for each in curl.lines(several)] == [other, other, project_id, project_id]
    assert [each["_project"] for each in curl.lines(f"{several}&pcount=1")] == [other, project_id]
    assert len(curl.lines(f"{several}&count=3")) == 3


def test_the_job_queue(curl, run, project_id):
    keys = [run(n=n, add_tag=f"t{n}", meta='{"state": "finished"}') for n in range(3)]
    pending = run(spider="other")
    root = f"/jobq/{project_id}"
    answer = curl("GET", f"{root}/count")
    assert (answer.body, answer.kind) == (b"3", "text/plain")

    def found(query: str) -> list[str]:
        listed = [entry["key"] for entry in curl.lines(f"{root}/list?{query}")]
        if not re.search("count|start=|stop|key", query):
            assert int(curl("GET", f"{root}/count?{query}").body) == len(listed)
        return listed

    assert found("") == keys[::-1]
    assert all(isinstance(entry["ts"], int) for entry in curl.lines(f"{root}/list"))
    assert found("spider=s&state=finished") == keys[::-1]
    assert found("state=pending") == found("spider=other&state=pending") == [pending]
    assert found("has_tag=t0&has_tag=t2") == [keys[2], keys[0]]
    assert found("lacks_tag=t0&lacks_tag=t2") == [keys[1]]
    assert found("count=1&start=1") == [keys[1]]
    assert found(f"stop={keys[0]}") == [keys[2], keys[1]]
    assert found(f"key={keys[0]}&key={pending}") == [pending, keys[0]]
    newest = curl.lines(f"{root}/list?count=1")[0]["ts"]
    assert found(f"startts={newest + 1}") == found("endts=1") == []
    assert keys[2] in found(f"startts={newest}&endts={newest + 1}")


def test_comments_and_logs(curl, run, project_id):
    job = run(meta='{"state": "running"}')
    curl.done("POST", f"/logs/{job}", [{"time": 1, "level": 20, "message": "m"}])
    for slash in ("", "/"):
        assert curl.lines(f"/logs/{job}{slash}") == [{"time": 1, "level": 20, "message": "m"}]
    made = curl.done("POST", f"/api/comments/{job}/0", {"text": "hello"})
    curl.done("POST", f"/api/comments/{job}/0/name", {"text": "there"})
    assert curl.json(f"/api/comments/{made['id']}")["text"] == "hello"
    assert set(curl.json(f"/api/comments/{job}")) == {"0", "0/name"}
    assert curl.json(f"/api/comments/{project_id}/stats") == {job: 1}


# ── Authentication ──


@pytest.mark.parametrize("path", ["/items/1/1/1", "/jobq/1/count", "/api/jobs/list.json?project=1"])
def test_the_two_ways_to_give_the_key(curl, server, path):
    assert curl("GET", path, auth=()).status == 401
    assert curl("GET", path, auth=(server.extract_key, "")).status == 401
    assert curl("GET", path).status == 200
    joined = f"{path}{'&' if '?' in path else '?'}apikey={server.platform_key}"
    assert curl("GET", joined, auth=()).status == 200


# ── One rule for numbers ──


@pytest.mark.parametrize("number", [2**63 - 1, 10**18])
def test_the_largest_project_is_the_same_in_every_place(curl, number):
    curl.done("POST", "/api/run.json", {"project": number, "spider": "s"})
    assert curl.json(f"/api/jobs/list.json?project={number}")["total"] == 1
    assert [each["id"] for each in curl.json(f"/api/spiders/list.json?project={number}")["spiders"]] == ["s"]
    assert curl.json(f"/jobq/{number}/count?state=pending") == 1
    assert curl.json(f"/jobs/{number}/1/1/state") == "pending"
    assert curl.lines(f"/activity/projects/?p={number}&count=1") != []
    curl.done("POST", "/api/jobs/delete.json", {"project": number, "job": f"{number}/1/1"})


@pytest.mark.parametrize(
    "path", ["/items/{}", "/jobq/{}/count", "/api/jobs/list.json?project={}", "/activity/projects?p={}", "/hcf/{}/list"]
)
@pytest.mark.parametrize("number", ["9223372036854775808", "99999999999999999999", "-1", "x"])
def test_beyond_it_every_place_says_so(curl, path, number):
    answer = curl("GET", path.format(number))
    assert (answer.status, "9223372036854775807 at most" in answer.body.decode()) == (400, True)
