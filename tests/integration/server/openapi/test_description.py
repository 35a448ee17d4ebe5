"""Routes seen from outside: each answers those for whom it is declared, and nothing else does."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
from jsonschema_rs import meta

from scrapy_ext.api.platform.deliveries import rule_of as delivery_rule
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.http.openapi import document
from scrapy_ext.server.http.routes import Access, Route
from scrapy_ext.server.http.schemas import FORM, MULTIPART
from scrapy_ext.server.routes import ROUTES
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.users import Account
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.packed_projects import tar_of
from tests.support.servers import RunningServer

#: One record of everything, so that each path leads somewhere.
_PARTS = {"project": "4400", "spider": "1", "job": "1", "index": "0", "field": "name", "key": "k", "type": "s"} | {
    "collection": "c",
    "frontier": "f",
    "slot": "s",
    "name": "c",
    "state": "running",
    "item": "0",
    "comment": "4400-1",
    "schedule": "1",
    "webhook": "1",
    "rule": "1",
    "user": "1",
    "target": "1",
    "number": "1",
    "version": "v",
}
#: Scrapyd's calls have rules of their own, and their tests in ``server/scrapyd``.
_OWN = tuple(each for each in ROUTES if each.tag != "scrapyd")
_DELIVERIES = (f"/api/projects/{_PARTS['project']}/deliveries", "/api/deliveries")
_RETENTION = (f"/api/projects/{_PARTS['project']}/retention", "/api/retention")
_MONITORS = (f"/api/projects/{_PARTS['project']}/monitors", "/api/monitors")


async def test_anyone_may_read_it(http: Http) -> None:
    answer = await http.get("/openapi.json", Authorization="Basic Og==")
    assert (answer.status, answer.json) == (200, json.loads(json.dumps(document(ROUTES))))
    assert answer.json["openapi"] == "3.1.0"


def test_its_schemas_are_schemas_and_its_references_lead_somewhere() -> None:
    described = document(ROUTES)
    for schema in described["components"]["schemas"].values():
        meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    for reference in set(_references(described)):
        there: Any = described
        for part in reference.removeprefix("#/").split("/"):
            there = there[part]
    names = [each["operationId"] for path in described["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))


def test_pairs_of_indexes_are_arrays_of_two_integers() -> None:
    schemas = document(ROUTES)["components"]["schemas"]
    pair = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    assert schemas["BegunImport"]["properties"]["indexes"]["additionalProperties"] == pair


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from _references(member)
    elif isinstance(value, list):
        for member in value:
            yield from _references(member)


@pytest.fixture
async def there(server: RunningServer, http: Http) -> AsyncIterator[dict[str, str]]:
    """Parts of paths with data at every path that is made of them; comments and schedules get new numbers."""
    project = _PARTS["project"]
    # A new job for each path, since one of them deletes it.
    pushed = (await http.post(f"/jobq/{project}/push", [{"spider": "s", "state": "running", "name": "n"}])).lines
    job = pushed[0]["key"].rpartition("/")[2]
    record = {"time": 1, "method": "GET", "url": "u", "status": 200, "duration": 1, "rs": 1, "name": "n"}
    await http.post(f"/items/{project}/1/{job}?start=0", [record])
    await http.post(f"/requests/{project}/1/{job}?start=0", [record])
    await http.post(f"/logs/{project}/1/{job}?start=0", [{"time": 1, "level": 20, "message": "m", "name": "n"}])
    await http.post(f"/collections/{project}/s/c", [{"_key": "k", "value": "v"}])
    await http.post(f"/samples/{project}/1/{job}?start=0", [[1, 2]])
    await http.post(f"/hcf/{project}/f/s/s", [{"fp": "a"}])
    comment = (await http.post(f"/api/comments/{project}/1/{job}/0/name", {"text": "t"})).json["id"]
    schedule = json.dumps({"cron": "1 2 * * *", "tasks": [{"name": "s"}]}).encode()
    made = (await http.post(f"/api/projects/{project}/periodicjobs", schedule)).json["id"]
    hook = json.dumps({"url": "http://127.0.0.1:9/", "events": ["x"]}).encode()
    hooks = f"/api/projects/{project}/webhooks"  # of which a project has few
    webhook = (await http.get(hooks)).json or [(await http.post(hooks, hook)).json]
    store = await Store.open(server.where)  # a rule needs a target, which this server does not have
    delivery = delivery_rule({"target": "file:///nowhere"})
    rules = {  # of which projects and servers have few
        path: (await store.deliveries.listed(owner) or [await store.deliveries.add(owner, delivery)])[0].id
        for path, owner in zip(_DELIVERIES, (int(project), None), strict=True)
    }
    user = (await store.users.log_in(Account("https://login.example", "1", "Ada", "", ()))).number
    await store.close()
    rule = json.dumps({"what": ["items"], "older_than": 1}).encode()
    for path in _RETENTION:
        rules[path] = ((await http.get(path)).json or [(await http.post(path, rule)).json])[0]["id"]
    for path in reversed(_MONITORS):  # a project lists those of the server, too
        monitor = json.dumps({"checks": ["items >= 0"]}).encode()
        own = [each for each in (await http.get(path)).json if (each["project"] is None) == (path == _MONITORS[1])]
        rules[path] = (own or [(await http.post(path, monitor)).json])[0]["id"]
    target = json.dumps({"name": "a", "url": "json://127.0.0.1:9/"}).encode()
    targets = f"/api/projects/{project}/alerts"
    added = (await http.get(targets)).json or [(await http.post(targets, target)).json]
    yield {
        **_PARTS,
        "job": job,
        **{f"{path} rule": str(number) for path, number in rules.items()},
        "comment": comment,
        "user": str(user),
        "schedule": str(made),
        "webhook": str(webhook[0]["id"]),
        "target": str(added[0]["id"]),
    }
    # The rules of the server are about the projects of other tests, too.
    for path in (_RETENTION[1], _DELIVERIES[1], _MONITORS[1]):
        await http.delete(f"{path}/{rules[path]}")


@pytest.mark.parametrize("each", _OWN, ids=lambda each: f"{each.method} {each.shown}")
@pytest.mark.long(keep=40)
async def test_every_path_that_is_described_is_there(http: Http, there: dict[str, str], each: Route) -> None:
    if "{version}" in each.path:
        # One that fails its check is there, too, and leaves the project as it was.
        await http.post(f"/api/projects/{_PARTS['project']}/versions?version=v", tar_of({"scrapy.cfg": ""}))
    if "{number}" in each.path:
        there = {**there, "number": await _given_up(http, _address(each, there).partition("/1/resend")[0])}
    for path in (*_RETENTION, *_DELIVERIES, *_MONITORS):
        if _address(each, there).startswith(path):
            there = {**there, "rule": there[f"{path} rule"]}
    answer = await http.call(each.method, _address(each, there))
    assert answer.status not in (404, 405), answer.text


async def _given_up(http: Http, rows: str) -> str:
    """Return the number of a row that was given up, such as a test to an address that is not public."""
    await http.post(f"{rows.rpartition('/')[0]}/test")
    found = await eventually_async(
        lambda: http.get(rows), lambda answer: [each["id"] for each in answer.json if each["state"] == "given up"]
    )
    return str(next(each["id"] for each in found.json if each["state"] == "given up"))


async def test_every_path_refuses_strangers_and_keys_of_other_projects(server: RunningServer) -> None:
    store = await Store.open(server.where)
    try:
        elsewhere = await add_key(store, "elsewhere", frozenset({4499}), may_write=True)
    finally:
        await store.close()
    guarded = [each for each in _OWN if each.access is not Access.ANYONE]
    assert len(guarded) > 40
    assert {each.access for each in guarded} | {Access.ANYONE} == set(Access)
    async with Http(server.url, None) as stranger, Http(server.url, elsewhere) as other:
        await _until_known(other)
        for each in _OWN:
            if each.access is Access.ANYONE:
                assert (await stranger.call(each.method, each.path)).status == 200, each.path
        for each in guarded:
            path = _address(each, _PARTS)
            assert (await stranger.call(each.method, path)).status == 401, path
            is_form = each.body is not None and each.body.kind in (FORM, MULTIPART)
            form = {"project": _PARTS["project"]} if is_form else None
            answer = await other.call(each.method, path, form)
            # The metrics are of all projects, and no key of the platform opens the extraction service.
            if form or _names_a_project(each) or each.access in (Access.SERVER, Access.EXTRACTION):
                assert answer.status == 403, f"{path}: {answer.text}"
            else:  # of several projects: those that the key opens; or not of the platform
                expected = (415,) if each.access is Access.AGENT else (200, 401)
                assert answer.status in expected, f"{path}: {answer.text}"


async def _until_known(http: Http) -> None:
    await eventually_async(lambda: http.get("/hcf/4499/list"), lambda answer: answer.status == 200)


def _names_a_project(each: Route) -> bool:
    return bool({"{project}", "{comment}"} & set(each.shown.split("/"))) or any(
        parameter.name == "project" for parameter in each.parameters
    )


def _address(each: Route, parts: Mapping[str, str]) -> str:
    path = re.sub(r"{(\w+)}", lambda match: parts[match[1]], each.shown)
    named = [(parameter.name, _PARTS.get(parameter.name, "c")) for parameter in each.parameters if parameter.required]
    return path + "?" + "&".join(f"{name}={value}" for name, value in named)


async def test_another_method_is_refused_with_those_that_a_path_has(http: Http) -> None:
    methods: dict[str, set[str]] = {}
    for each in _OWN:
        methods.setdefault(_address(each, _PARTS).partition("?")[0], set()).add(each.method)
    assert len(methods) > 80
    for path, declared in methods.items():
        answer = await http.call("PURGE", path)
        assert answer.status == 405, path
        assert declared <= set(answer.headers["Allow"].split(", ")), path


async def test_what_no_route_declares_is_not_there(http: Http, server: RunningServer) -> None:
    resources = {each.first for each in _OWN if len(each.parts) > 1}
    assert len(resources) > 10
    async with Http(server.url, None) as stranger:
        for name in resources:
            for below in ("", "1/1/no/such/path/at/all/here"):
                # A key or a field may have slashes: what comes before it is wrong here.
                expected = 400 if below and name in ("collections", "jobs") else 404
                if below or name not in ("jobs", "logs", "items"):  # pages as in Scrapyd
                    assert (await http.get(f"/{name}/{below}")).status == expected, f"/{name}/{below}"
            # Without a key nobody learns which paths there are. Extraction and the time have one each, which all know.
            expected = 404 if name in {"v1", "system"} else 401
            assert (await stranger.get(f"/{name}/1/no/such/path")).status == expected, name
    assert (await http.get("/v1")).json["status"] == 404
    assert (await http.get("/healthz/")).status == (await http.get("/nothing/at/all")).status == 404


async def test_a_record_may_be_named_as_a_path_is(http: Http, project: int) -> None:
    collection, frontier = f"/collections/{project}/s/c", f"/hcf/{project}/list"
    assert (await http.post(f"{collection}/count", [{"value": 1}])).status == 200
    assert (await http.get(f"{collection}/count")).json["count"] == 1
    assert (await http.call("DELETE", f"{collection}/count")).status == 200
    assert (await http.get(f"{collection}/count")).json["count"] == 0
    assert (await http.post(f"{frontier}/s/s", [{"fp": "a"}])).json == {"newcount": 1}
    assert (await http.get(f"{frontier}/list")).json == ["s"]
    assert (await http.get(f"/hcf/{project}/list")).json == ["list"]
    assert (await http.get(f"/ids/{project}/spider/with/slashes?create=1")).json == 1
