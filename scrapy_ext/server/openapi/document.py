"""Makes the description of the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scrapy_ext.api.extraction.problems import PROBLEM_CONTENT_TYPE, PROBLEM_TYPES, Problem
from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.server.openapi import (
    activity,
    collections,
    comments,
    extraction,
    frontier,
    jobq,
    jobs,
    operation,
    periodic,
    projects,
    records,
    spiders,
    versions,
    webhooks,
)
from scrapy_ext.server.openapi.words import JSON, PATH_PARTS, TEXT, Many, Operation, Parameter, Schema

_GROUPS: Final = (
    records,
    collections,
    frontier,
    jobs,
    jobq,
    projects,
    spiders,
    versions,
    webhooks,
    periodic,
    comments,
    activity,
    extraction,
    operation,
)
_REFS: Final = "#/components/schemas/{name}"
#: What any call to the platform can get beside what its entry says.
_ALWAYS: Final = (400, 401, 403, 404, 408, 414, 415, 429, 431, 500, 503, 507)
_OPEN: Final = (400, 408, 414, 429, 431, 503)
_APP_ERROR: Final[Schema] = {
    "type": "object",
    "properties": {"status": {"enum": ["error", "badrequest"]}, "message": {"type": "string"}},
    "required": ["message"],
}
_JOBQ_ERROR: Final[Schema] = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
    "required": ["message"],
}


def operations() -> list[Operation]:
    """Every entry of every table."""
    return [each for group in _GROUPS for each in group.OPERATIONS]


@cache
def document() -> dict[str, Any]:
    """The description as JSON values."""
    types = {id(kind): kind for kind in _types(operations())}
    schemas, components = msgspec.json.schema_components(list(types.values()), ref_template=_REFS)
    known = dict(zip(types, schemas, strict=True))
    shared = _Shared(known)
    paths: dict[str, dict[str, Any]] = {}
    for each in operations():
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, shared)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "scrapy-ext",
            "version": _version(),
            "description": "The crawling platform and the extraction service, on one port.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "parameters": shared.parameters,
            "responses": shared.refusals,
            "securitySchemes": {
                "platform": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The platform's API key as user name, with an empty password; or a job's key as "
                    "user name and its token as password.",
                },
                "platformParameter": {"type": "apiKey", "in": "query", "name": "apikey"},
                "extraction": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The key of the extraction service as user name, with an empty password.",
                },
            },
        },
    }


def route() -> Route:
    """``GET /openapi.json``, for anyone: it has nothing that the documentation does not have."""
    return Route("/openapi.json", _answer)


async def _answer(_request: Request) -> Response:
    return Response(_encoded(), media_type="application/json; charset=UTF-8", headers={"Cache-Control": "max-age=300"})


@cache
def _encoded() -> bytes:
    return msgspec.json.encode(document())


def _version() -> str:
    try:
        return version("scrapy-ext")
    except PackageNotFoundError:  # run from its source
        return "0"


def _types(found: Sequence[Operation]) -> Iterator[Any]:
    for each in found:
        shapes = [*each.answer.bodies.values(), *([each.body.shape] if each.body else [])]
        for shape in shapes:
            inner = shape.item if isinstance(shape, Many) else shape
            if not isinstance(inner, dict):
                yield inner
    yield Problem


class _Shared:
    """What many operations have stands once, and they refer to it."""

    def __init__(self, schemas: dict[int, Schema]) -> None:
        self.schemas = schemas
        self.parameters: dict[str, Any] = {}
        self.refusals: dict[str, Any] = {}
        self._named: dict[int, str] = {}

    def parameter(self, parameter: Parameter) -> dict[str, str]:
        """A reference to a parameter."""
        name = self._named.get(id(parameter))
        if name is None:
            name = self._named[id(parameter)] = f"{parameter.name}-{len(self._named)}"
            self.parameters[name] = {
                "name": parameter.name,
                "in": parameter.place,
                "required": parameter.required,
                "description": parameter.meaning,
                "schema": parameter.schema,
            }
        return {"$ref": f"#/components/parameters/{name}"}

    def refusal(self, each: Operation, status: int) -> dict[str, str]:
        """A reference to a refusal: that of the service, or a line of text where the request did not get so far."""
        content: dict[str, Any] = {TEXT: {"schema": {"type": "string"}}}
        kind = each.host.value
        if each.tag == extraction.TAG:
            kind, content[PROBLEM_CONTENT_TYPE] = each.tag, {"schema": self.schemas[id(Problem)]}
        elif status >= 500 or each.host is Host.APP:
            content[JSON] = {"schema": _APP_ERROR}
        elif each.host is Host.JOBQ:
            content[JSON] = {"schema": _JOBQ_ERROR}
        self.refusals[f"{kind}-{status}"] = {"description": _phrase(status), "content": content}
        return {"$ref": f"#/components/responses/{kind}-{status}"}

    def schema(self, shape: Any) -> Schema:
        """The schema of a shape."""
        if isinstance(shape, Many):
            return {"type": "array", "items": self.schema(shape.item)}
        return shape if isinstance(shape, dict) else self.schemas[id(shape)]


def _operation(each: Operation, shared: _Shared) -> dict[str, Any]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARTS[name]}
        for name in re.findall(r"{(\w+)}", each.path)
    ]
    described: dict[str, Any] = {
        "operationId": "_".join([each.method.lower(), *re.findall(r"\w+", each.path)]),
        "summary": each.summary,
        "tags": [each.tag or each.path.split("/")[1]],
        "parameters": path + [shared.parameter(parameter) for parameter in each.parameters],
        "responses": {str(status): body for status, body in _answers(each, shared)},
        "security": _security(each),
    }
    if each.body is not None:
        content = {each.body.kind: {"schema": shared.schema(each.body.shape)}}
        described["requestBody"] = {"required": True, "content": content}
        if each.body.meaning:
            described["requestBody"]["description"] = each.body.meaning
    return described


def _security(each: Operation) -> list[dict[str, list[str]]]:
    if each.open:
        return []
    if each.tag == extraction.TAG:
        return [{"extraction": []}]
    return [{"platform": []}, {"platformParameter": []}]


def _answers(each: Operation, shared: _Shared) -> Iterator[tuple[int, dict[str, Any]]]:
    good: dict[str, Any] = {"description": each.answer.meaning}
    if each.answer.bodies:
        good["content"] = {kind: {"schema": shared.schema(shape)} for kind, shape in each.answer.bodies.items()}
    yield each.status, good
    always = _OPEN if each.open else () if each.tag == extraction.TAG else _ALWAYS
    for status in sorted({*always, *each.errors} - {each.status}):
        yield status, shared.refusal(each, status)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:  # of the extraction service's own
        return next(problem.title for problem in PROBLEM_TYPES.values() if problem.status == status)
