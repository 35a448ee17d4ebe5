"""Declaration, parameters and answers that the calls of Scrapyd's API share.

As in Scrapyd, an answer has ``node_name`` and ``status``, and a call that cannot be done is answered with 200,
``"status": "error"`` and a ``message``. Keys are those of the platform. Times are UTC.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import Refusal, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.scrapyd.naming import Projects

#: Statuses of refusals that Scrapyd answers with 200.
_AS_ERROR: Final = (400, 404, 409, 410, 413, 422)
NODE: Final = socket.gethostname()

Fields = dict[str, Any]

PROJECT: Final = schemas.Parameter("project", "name or number of the project", schemas.STRING, required=True)
ANY_PROJECT: Final = schemas.Parameter("project", "only this project: its name or number", schemas.STRING)
VERSION: Final = schemas.Parameter("_version", "the version; default: the current one", schemas.STRING)
ENVELOPE: Final[schemas.Schema] = {"node_name": schemas.STRING, "status": {"enum": ["ok", "error"]}}


def service(
    routes: Routes,
    call: str,
    summary: str,
    *parameters: schemas.Parameter,
    body: schemas.Body | None = None,
    action: Action | None = None,
    event: str = "",
) -> Callable[[Callable[[Call], Awaitable[Fields]]], Callable[[Call], Awaitable[Response]]]:
    """Declare a call whose handler returns the fields of the answer beside the envelope."""
    shape = schemas.record({**ENVELOPE, "message": schemas.STRING}, "node_name", "status")

    def declare(handler: Callable[[Call], Awaitable[Fields]]) -> Callable[[Call], Awaitable[Response]]:
        @functools.wraps(handler)
        async def answer(call: Call) -> Response:
            try:
                return json(answered(await handler(call)))
            except (ContractError, Refusal) as error:
                return failed(call, error)

        declared = routes.add(
            call,
            f"{summary} As in Scrapyd's API.",
            schemas.value("The result.", shape),
            parameters=parameters,
            body=body,
            action=action,
            event=event,
        )
        return declared(answer)

    return declare


def answered(fields: Fields) -> Fields:
    return {"node_name": NODE, "status": "ok", **fields}


def failed(call: Call, error: ContractError | Refusal) -> Response:
    """Return the answer to a call that cannot be done; raise what concerns the key or the server."""
    # Of several versions, some may have been removed before the one that stays.
    call.has_failed = not call.noted.get("versions")
    if error.status not in _AS_ERROR:
        raise error
    message = "; ".join(map(str, error.violations)) if isinstance(error, ContractError) else error.message
    return json({"node_name": NODE, "status": "error", "message": message})


def form_of(*required: str, **fields: schemas.Schema) -> schemas.Body:
    return schemas.Body(schemas.FORM, schemas.record({"project": schemas.STRING, **fields}, "project", *required))


async def posted(call: Call, *required: str) -> tuple[Form, Projects, int]:
    """Return the form of a call, the projects, and the project that it names."""
    form = Form([*await call.form(), *call.query.items()])
    for name in ("project", *required):
        if form.get(name) is None:
            raise missing(name)
    projects = await Projects.of(call)
    return form, projects, projects.find(call, form.get("project") or "")


def asked(call: Call, name: str) -> str:
    text = call.query.get(name)
    if text is None:
        raise missing(name)
    return text


def missing(name: str) -> ContractError:
    return refused(name, "is required", "Send this parameter.")
