"""The description and the routes say the same."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import meta

from scrapy_ext.server import platform
from scrapy_ext.server.auth.keyring import add_key
from scrapy_ext.server.openapi.document import document, operations
from scrapy_ext.server.openapi.words import FORM, MULTIPART, Operation
from scrapy_ext.server.platform import PlatformService
from scrapy_ext.server.store import Store
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
    "version": "v",
}
#: What handlers match: the parts of the path, not how many there are.
_PATH = re.compile(r"(?<!len\()\bcall\.path|^path$")
#: Parts of paths that come before those which a handler matches: module and how many.
_BEFORE = {
    ("comments", 1): ("comments",),
    ("periodic", 3): ("projects", "*", "periodicjobs"),
    ("webhooks", 3): ("projects", "*", "webhooks"),
    ("spiders", 5): ("v2", "projects", "*", "spiders", "*"),
    ("versions", 3): ("projects", "*", "versions"),
}


async def test_anyone_may_read_it(http: Http) -> None:
    answer = await http.get("/openapi.json", Authorization="Basic Og==")
    assert (answer.status, answer.json) == (200, document())
    assert answer.json["openapi"] == "3.1.0"


def test_its_schemas_are_schemas_and_its_references_lead_somewhere() -> None:
    described = document()
    for schema in described["components"]["schemas"].values():
        meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    for reference in set(_references(described)):
        there: Any = described
        for part in reference.removeprefix("#/").split("/"):
            there = there[part]
    names = [each["operationId"] for path in described["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))


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
async def there(http: Http) -> dict[str, str]:
    """Parts of paths with data at every path that is made of them; comments and schedules get new numbers."""
    project = _PARTS["project"]
    await http.post(f"/jobq/{project}/push", [{"spider": "s", "state": "running", "name": "n"}])
    record = {"time": 1, "method": "GET", "url": "u", "status": 200, "duration": 1, "rs": 1, "name": "n"}
    await http.post(f"/items/{project}/1/1?start=0", [record])
    await http.post(f"/requests/{project}/1/1?start=0", [record])
    await http.post(f"/logs/{project}/1/1?start=0", [{"time": 1, "level": 20, "message": "m", "name": "n"}])
    await http.post(f"/collections/{project}/s/c", [{"_key": "k", "value": "v"}])
    await http.post(f"/samples/{project}/1/1?start=0", [[1, 2]])
    await http.post(f"/hcf/{project}/f/s/s", [{"fp": "a"}])
    comment = (await http.post(f"/api/comments/{project}/1/1/0/name", {"text": "t"})).json["id"]
    schedule = json.dumps({"cron": "1 2 * * *", "tasks": [{"name": "s"}]}).encode()
    made = (await http.post(f"/api/projects/{project}/periodicjobs", schedule)).json["id"]
    hook = json.dumps({"url": "http://127.0.0.1:9/", "events": ["x"]}).encode()
    hooks = f"/api/projects/{project}/webhooks"  # of which a project has few
    webhook = (await http.get(hooks)).json or [(await http.post(hooks, hook)).json]
    return {**_PARTS, "comment": comment, "schedule": str(made), "webhook": str(webhook[0]["id"])}


@pytest.mark.parametrize("each", operations(), ids=lambda each: f"{each.method} {each.path}")
async def test_every_path_that_is_described_is_there(http: Http, there: dict[str, str], each: Operation) -> None:
    if "{version}" in each.path:
        # One that fails its check is there, too, and leaves the project as it was.
        await http.post(f"/api/projects/{_PARTS['project']}/versions?version=v", tar_of({"scrapy.cfg": ""}))
    answer = await http.call(each.method, _address(each, there))
    assert answer.status not in (404, 405), answer.text


async def test_every_path_refuses_strangers_and_keys_of_other_projects(server: RunningServer) -> None:
    store = await Store.open(server.where)
    try:
        elsewhere = await add_key(store, "elsewhere", frozenset({4499}), may_write=True)
    finally:
        await store.close()
    guarded = [each for each in operations() if not each.open]
    assert len(guarded) > 40
    async with Http(server.url, None) as stranger, Http(server.url, elsewhere) as other:
        await _until_known(other)
        for each in guarded:
            path = _address(each, _PARTS)
            assert (await stranger.call(each.method, path)).status == 401, path
            is_form = each.body is not None and each.body.kind in (FORM, MULTIPART)
            form = {"project": _PARTS["project"]} if is_form else None
            answer = await other.call(each.method, path, form)
            # The metrics are of all projects, and no key of the platform opens the extraction service.
            if form or _names_a_project(each) or each.path in ("/metrics", "/v1/extract"):
                assert answer.status == 403, f"{path}: {answer.text}"
            else:  # of several projects: those that the key opens; or not of the platform
                assert answer.status in (200, 401), f"{path}: {answer.text}"


async def _until_known(http: Http) -> None:
    await eventually_async(lambda: http.get("/hcf/4499/list"), lambda answer: answer.status == 200)


def _names_a_project(each: Operation) -> bool:
    return bool({"{project}", "{comment}"} & set(each.path.split("/"))) or any(
        parameter.name == "project" for parameter in each.parameters
    )


def _address(each: Operation, parts: Mapping[str, str]) -> str:
    path = re.sub(r"{(\w+)}", lambda match: parts[match[1]], each.path)
    named = [(parameter.name, _PARTS.get(parameter.name, "c")) for parameter in each.parameters if parameter.required]
    return path + "?" + "&".join(f"{name}={value}" for name, value in named)


async def test_every_resource_is_described(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    try:
        resources = set(PlatformService(store, _nobody).resources)
    finally:
        await store.close()
    assert resources <= {each.path.split("/")[1] for each in operations()}


async def _nobody(_key: str) -> None:
    return None


def test_every_path_that_a_handler_takes_is_described() -> None:
    described = {(each.method, _shape(each.path)) for each in operations()}
    missing = [
        f"{module}: {method or 'any method'} {'/'.join(shape)}"
        for module, method, shape in _taken()
        if not any(shape == other and method in (None, its) for its, other in described)
    ]
    assert missing == []


def _shape(path: str) -> tuple[str, ...]:
    """The parts behind the resource's name; ``*`` for those that vary."""
    return tuple("*" if part.startswith("{") else part for part in path.split("/")[2:])


def _taken() -> Iterator[tuple[str, str | None, tuple[str, ...]]]:
    """Module, method and shape of every path in the ``match`` statements of the handlers."""
    for file in sorted(Path(platform.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Match) or not _PATH.search(ast.unparse(node.subject)):
                continue
            sliced = re.search(r"call\.path\[(\d+):\]", ast.unparse(node.subject))
            before = _BEFORE[file.stem, int(sliced[1])] if sliced else ()
            for case in node.cases:
                for method, shape in _cases(case.pattern, case.guard):
                    yield file.stem, method, (*before, *shape)


def _cases(pattern: ast.pattern, guard: ast.expr | None) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    found = re.search(r"method == '(\w+)'", ast.unparse(guard)) if guard else None
    method = found[1] if found else None
    if isinstance(pattern, ast.MatchSequence) and len(pattern.patterns) == 2:
        first, second = pattern.patterns
        if isinstance(first, ast.MatchSequence):
            if not isinstance(second, ast.MatchValue):
                return  # (path, any method): the refusal of a method
            yield from ((str(_text(second)), shape) for shape in _shapes(first))
            return
        if isinstance(first, ast.MatchOr) and any(isinstance(each, ast.MatchSequence) for each in first.patterns):
            return
    for each in pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]:
        if isinstance(each, ast.MatchSequence):
            yield from ((method, shape) for shape in _shapes(each))


def _shapes(pattern: ast.MatchSequence) -> list[tuple[str, ...]]:
    shapes: list[tuple[str, ...]] = [()]
    for part in pattern.patterns:
        shapes = [(*shape, choice) for shape in shapes for choice in _choices(part)]
    return shapes


def _choices(part: ast.pattern) -> list[str]:
    if isinstance(part, ast.MatchAs) and part.pattern is not None:
        return _choices(part.pattern)
    if isinstance(part, ast.MatchOr):
        return [choice for each in part.patterns for choice in _choices(each)]
    return [_text(part)] if isinstance(part, ast.MatchValue) else ["*"]


def _text(part: ast.MatchValue) -> str:
    assert isinstance(part.value, ast.Constant)
    return str(part.value.value)
