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
from scrapy_ext.server.openapi import (
    activity,
    collections,
    extraction,
    frontier,
    jobq,
    jobs,
    operation,
    records,
)
from scrapy_ext.server.openapi.words import JSON, PATH_PARTS, TEXT, Many, Operation, Parameter, Schema
from scrapy_ext.server.platform.answers import Host

_GROUPS: Final = (records, collections, frontier, jobs, jobq, activity, extraction, operation)
_REFS: Final = "#/components/schemas/{name}"
#: What any call to the platform can get beside what its entry says.
_ALWAYS: Final = (400, 401, 403, 404, 408, 414, 415, 429, 431, 500, 503, 507)
_OPEN: Final = (400, 408, 414, 431, 503)
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
    paths: dict[str, dict[str, Any]] = {}
    for each in operations():
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, known)
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


def _operation(each: Operation, known: dict[int, Schema]) -> dict[str, Any]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARTS[name]}
        for name in re.findall(r"{(\w+)}", each.path)
    ]
    described: dict[str, Any] = {
        "operationId": _id(each),
        "summary": each.summary,
        "tags": [each.tag or each.path.split("/")[1]],
        "parameters": path + [_parameter(parameter) for parameter in each.parameters],
        "responses": {str(status): body for status, body in _answers(each, known)},
        "security": _security(each),
    }
    if each.body is not None:
        content = {each.body.kind: {"schema": _schema(each.body.shape, known)}}
        described["requestBody"] = {"required": True, "content": content}
        if each.body.meaning:
            described["requestBody"]["description"] = each.body.meaning
    return described


def _id(each: Operation) -> str:
    return "_".join([each.method.lower(), *re.findall(r"\w+", each.path)])


def _security(each: Operation) -> list[dict[str, list[str]]]:
    if each.open:
        return []
    if each.tag == extraction.TAG:
        return [{"extraction": []}]
    return [{"platform": []}, {"platformParameter": []}]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.meaning,
        "schema": parameter.schema,
    }


def _answers(each: Operation, known: dict[int, Schema]) -> Iterator[tuple[int, dict[str, Any]]]:
    good: dict[str, Any] = {"description": each.answer.meaning}
    if each.answer.bodies:
        good["content"] = {kind: {"schema": _schema(shape, known)} for kind, shape in each.answer.bodies.items()}
    yield each.status, good
    always = _OPEN if each.open else () if each.tag == extraction.TAG else _ALWAYS
    for status in sorted({*always, *each.errors} - {each.status}):
        yield status, _refusal(each, status, known)


def _refusal(each: Operation, status: int, known: dict[int, Schema]) -> dict[str, Any]:
    """What a refusal looks like: that of the service, or a line of text where the request did not get so far."""
    content: dict[str, Any] = {TEXT: {"schema": {"type": "string"}}}
    if each.tag == extraction.TAG:
        content[PROBLEM_CONTENT_TYPE] = {"schema": known[id(Problem)]}
    elif status >= 500 or each.host is Host.APP:
        content[JSON] = {"schema": _APP_ERROR}
    elif each.host is Host.JOBQ:
        content[JSON] = {"schema": _JOBQ_ERROR}
    return {"description": _phrase(status), "content": content}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:  # of the extraction service's own
        return next(problem.title for problem in PROBLEM_TYPES.values() if problem.status == status)


def _schema(shape: Any, known: dict[int, Schema]) -> Schema:
    if isinstance(shape, Many):
        return {"type": "array", "items": _schema(shape.item, known)}
    return shape if isinstance(shape, dict) else known[id(shape)]
