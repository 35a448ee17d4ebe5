"""The OpenAPI 3.1 document of a table of routes: ``GET /openapi.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.extraction.problems import PROBLEM_CONTENT_TYPE, PROBLEM_TYPES, Problem
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Access, Route, Routes
from scrapy_ext.server.http.schemas import (
    JSON,
    OBJECT,
    PATH_PARTS,
    SAVE_AS,
    STRING,
    TEXT,
    Many,
    Parameter,
    Schema,
    record,
    value,
)

ROUTES: Final = Routes(tag="server")

_REFS: Final = "#/components/schemas/{name}"
#: Statuses of refusals that any call can get, beside those of its declaration.
_REFUSALS: Final = (400, 401, 403, 404, 408, 410, 414, 415, 429, 431, 500, 503, 507)
_ALWAYS: Final[Mapping[Access, Sequence[int]]] = {Access.ANYONE: (400, 408, 414, 429, 431, 503), Access.EXTRACTION: ()}
_APP_ERROR: Final = record({"status": {"enum": ["error", "badrequest"]}, "message": STRING}, "message")
_JOBQ_ERROR: Final = record({"error": STRING, "message": STRING}, "message")


class Description:
    """The document of a server, generated on first use."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes

    @cached_property
    def encoded(self) -> bytes:
        return msgspec.json.encode(document(self._routes))


@ROUTES.add(
    "GET /openapi.json",
    "Return this OpenAPI document.",
    value("The document.", OBJECT),
    access=Access.ANYONE,
)
async def _describe(call: Call) -> Response:
    # Public: everything in it is in the documentation.
    encoded = call.service(Description).encoded
    return Response(encoded, media_type="application/json; charset=UTF-8", headers={"Cache-Control": "max-age=300"})


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document of routes, without those for agents."""
    routes = [each for each in routes if each.access is not Access.AGENT]
    types = {id(kind): kind for kind in _types(routes)}
    schemas, components = msgspec.json.schema_components(list(types.values()), ref_template=_REFS)
    known = dict(zip(types, schemas, strict=True))
    shared = _Shared(known)
    paths: dict[str, dict[str, Any]] = {}
    for each in routes:
        # OpenAPI has no words for a part that is not a number: its path would be that of another route.
        if ":name}" not in each.path:
            paths.setdefault(each.shown, {})[each.method.lower()] = _operation(each, shared)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "scrapy-ext",
            "version": package_version(),
            "description": "The crawling platform and the extraction service, on one port.",
        },
        "paths": paths,
        "components": {
            "schemas": _with_arrays(components),
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


def _with_arrays(schema: Any) -> Any:
    """Return a schema with tuples of one type as arrays of that length: most generators of clients know no others."""
    if isinstance(schema, list):
        return [_with_arrays(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    elements = schema.get("prefixItems")
    if elements and elements == elements[:1] * schema.get("maxItems", 0):
        schema = {**schema, "items": elements[0]}
        del schema["prefixItems"]
    return {name: _with_arrays(each) for name, each in schema.items()}


def package_version() -> str:
    """Return the version of this package, 0 when it runs from source."""
    from importlib.metadata import PackageNotFoundError, version  # a megabyte of memory, with what it imports

    try:
        return version("scrapy-ext")
    except PackageNotFoundError:  # running from source
        return "0"


def _types(found: Sequence[Route]) -> Iterator[Any]:
    for each in found:
        shapes = [*each.answer.bodies.values(), *([each.body.shape] if each.body else [])]
        for shape in shapes:
            inner = shape.item if isinstance(shape, Many) else shape
            if not isinstance(inner, dict):
                yield inner
    yield Problem


class _Shared:
    """Parameters and refusals that several operations reference."""

    def __init__(self, schemas: dict[int, Schema]) -> None:
        self.schemas = schemas
        self.parameters: dict[str, Any] = {}
        self.refusals: dict[str, Any] = {}
        self._named: dict[int, str] = {}

    def parameter(self, parameter: Parameter) -> dict[str, str]:
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

    def refusal(self, each: Route, status: int) -> dict[str, str]:
        """Return a reference to a refusal in the form of the service; middleware may answer with a line of text."""
        content: dict[str, Any] = {TEXT: {"schema": {"type": "string"}}}
        kind = each.host.value
        if each.access is Access.EXTRACTION:
            kind, content[PROBLEM_CONTENT_TYPE] = "extraction", {"schema": self.schemas[id(Problem)]}
        elif status >= 500 or each.host is Host.APP:
            content[JSON] = {"schema": _APP_ERROR}
        elif each.host is Host.JOBQ:
            content[JSON] = {"schema": _JOBQ_ERROR}
        self.refusals[f"{kind}-{status}"] = {"description": _phrase(status), "content": content}
        return {"$ref": f"#/components/responses/{kind}-{status}"}

    def schema(self, shape: object) -> Schema:
        if isinstance(shape, Many):
            return {"type": "array", "items": self.schema(shape.item)}
        return shape if isinstance(shape, dict) else self.schemas[id(shape)]


def _operation(each: Route, shared: _Shared) -> dict[str, Any]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARTS[name]}
        for name in re.findall(r"{(\w+)}", each.shown)
    ]
    described: dict[str, Any] = {
        "operationId": "_".join([each.method.lower(), *re.findall(r"\w+", each.shown)]),
        "summary": each.summary,
        "tags": [each.tag or each.first],
        "parameters": path + [shared.parameter(parameter) for parameter in _parameters(each)],
        "responses": {str(status): body for status, body in _answers(each, shared)},
        "security": _security(each),
    }
    if each.body is not None:
        content = {each.body.kind: {"schema": shared.schema(each.body.shape)}}
        described["requestBody"] = {"required": True, "content": content}
        if each.body.meaning:
            described["requestBody"]["description"] = each.body.meaning
    return described


def _parameters(each: Route) -> Sequence[Parameter]:
    return (*each.parameters, SAVE_AS) if each.method == "GET" and SAVE_AS not in each.parameters else each.parameters


def _security(each: Route) -> list[dict[str, list[str]]]:
    if each.access is Access.ANYONE:
        return []
    if each.access is Access.EXTRACTION:
        return [{"extraction": []}]
    return [{"platform": []}, {"platformParameter": []}]


def _answers(each: Route, shared: _Shared) -> Iterator[tuple[int, dict[str, Any]]]:
    good: dict[str, Any] = {"description": each.answer.meaning}
    if each.answer.bodies:
        good["content"] = {kind: {"schema": shared.schema(shape)} for kind, shape in each.answer.bodies.items()}
    yield each.status, good
    always = _ALWAYS.get(each.access, _REFUSALS)
    too_large = (413,) if each.body is not None else ()
    for status in sorted({*always, *too_large, *each.errors} - {each.status}):
        yield status, shared.refusal(each, status)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:  # a status of the extraction service
        return next(problem.title for problem in PROBLEM_TYPES.values() if problem.status == status)
