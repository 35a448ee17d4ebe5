"""Projects: their settings and numbers of jobs (as the real clients of the API use them).

On the storage host ``/projects/jobsummaries``, ``/projects/<project>/jobsummary`` and
``/projects/<project>/settings[/<name>]``; on the app host ``/api/scrapyd/listprojects.json``. Names of projects
(``/api/projects``) are this package's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.formats import is_true
from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.projects import MAX_PROJECT_NAME, NAME_PATTERN, Project, name_of_project
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import empty, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import check_project_settings, parse_state
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.store.jobs.states import ACTIVE

ROUTES: Final = Routes()

#: Names of what a key may do.
_RIGHTS: Final = {"read": Action.READ, "run": Action.RUN, "manage": Action.MANAGE}
_STATES: Final = [state.value for state in SHOWN_STATES]
_SUMMARY: Final[schemas.Schema] = schemas.whole(
    project=schemas.NUMBER, **dict.fromkeys(_STATES, schemas.COUNTER), has_capacity={"type": "boolean"}
)
_SETTINGS: Final = "/projects/{project}/settings"
_ONE: Final = f"{_SETTINGS}/{{name:path}}"
_MAX_BODY: Final = 4096
_NAMED: Final[schemas.Schema] = schemas.record(
    {
        "name": {
            "anyOf": [
                {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": MAX_PROJECT_NAME},
                {"type": "null"},
            ]
        }
    },
    "name",
    only=True,
)


@ROUTES.add(
    "GET /api/projects",
    "List the projects with data or a name that the key may read.",
    schemas.value("Their numbers and names.", schemas.Many(Project)),
    parameters=(
        schemas.Parameter("name", "only the project with this name", schemas.NAME),
        schemas.Parameter("limited", "also those without data that the key is limited to", schemas.FLAG),
    ),
)
async def _all(call: Call) -> Response:
    call.may_read(0)  # the answer has only projects that the key may read
    names = await call.store.projects.names()
    wanted = call.query.get("name")
    known = await call.store.jobs.projects()
    if is_true(call.query.get("limited")):
        known = sorted(call.grant.named_projects.union(known))
    found = [Project(project, names.get(project)) for project in known]
    return json([each for each in found if call.may_read(each.id) and (wanted is None or each.name == wanted)])


@ROUTES.add("GET /api/projects/{project}", "Read the name of a project.", schemas.value("The project.", Project))
async def _one(call: Call) -> Response:
    return json(await _project(call))


@ROUTES.add(
    "PATCH /api/projects/{project}",
    "Name a project; null removes its name. No two projects have the same name.",
    schemas.value("The project.", Project),
    body=schemas.Body(schemas.JSON, _NAMED),
    errors=(409,),
    event=ChangeEvents.SETTINGS_CHANGED,
)
async def _rename(call: Call) -> Response:
    project = call.project
    fields = await json_bodies.known_fields(call.request, ["name"], '{"name": "books"}', _MAX_BODY)
    if "name" not in fields:
        raise refused("name", "is required", 'Write {"name": "books"}, or null for no name.')
    name = fields["name"]
    await call.store.projects.name(project, None if name is None else name_of_project(name))
    call.noted["name"] = name
    return json(await _project(call))


async def _project(call: Call) -> Project:
    return Project(call.project, (await call.store.projects.names()).get(call.project))


@ROUTES.add(
    "GET /api/scrapyd/listprojects.json",
    "List the projects with jobs that the key may read.",
    schemas.value("Their numbers.", schemas.whole(status={"const": "ok"}, projects=schemas.array(schemas.NUMBER))),
)
async def _listed(call: Call) -> Response:
    call.may_read(0)  # the answer has only projects that the key may read
    found = await call.store.jobs.projects()
    return json({"projects": [project for project in found if call.may_read(project)], "status": "ok"})


@ROUTES.add(
    "GET /api/v2/users/me",
    "Return the name of the key.",
    schemas.value(
        "The name of the key.",
        schemas.record({"username": schemas.STRING, "rights": schemas.array({"enum": [*_RIGHTS]})}, "username"),
    ),
    parameters=(
        schemas.Parameter("rights", "what the key may do in a project at least, which is an extension", schemas.FLAG),
    ),
)
async def _me(call: Call) -> Response:
    if not is_true(call.query.get("rights")):
        return json({"username": call.who})
    rights = [right for right, action in _RIGHTS.items() if call.grant.may_somewhere(action)]
    return json({"username": call.who, "rights": rights})


@ROUTES.add(
    "GET /projects/{project}/jobsummary",
    "Count the jobs of a project.",
    schemas.value("A count for each state.", _SUMMARY),
)
async def _job_summary(call: Call) -> Response:
    return json(_summary(call.project, await call.store.jobs.states(call.project)))


@ROUTES.add(f"GET {_SETTINGS}", "Read the settings.", schemas.value("All of them.", schemas.OBJECT))
async def _settings(call: Call) -> Response:
    stored = await call.store.projects.settings(call.project)
    return json({name: msgspec.Raw(text) for name, text in stored.items()})


@ROUTES.add(
    f"POST {_SETTINGS}",
    "Write settings; others are unchanged.",
    schemas.DONE,
    body=schemas.Body(schemas.JSON, {"type": "object", "propertyNames": schemas.NAME}),
    event=ChangeEvents.SETTINGS_CHANGED,
)
async def _write_settings(call: Call) -> Response:
    return await _merge(call, await json_bodies.document(call.request, by_hand=True))


@ROUTES.add(f"GET {_ONE}", "Read a setting; null if absent.", schemas.value("Its value.", schemas.ANY))
async def _setting(call: Call) -> Response:
    return json(msgspec.Raw(await call.store.projects.setting(call.project, call.part("name")) or b"null"))


@ROUTES.add(
    f"POST {_ONE}",
    "Write a setting.",
    schemas.DONE,
    body=schemas.Body(schemas.JSON, schemas.ANY),
    event=ChangeEvents.SETTINGS_CHANGED,
)
async def _write_setting(call: Call) -> Response:
    return await _merge(call, {call.part("name"): await json_bodies.document(call.request, by_hand=True)})


@ROUTES.add(f"DELETE {_ONE}", "Remove a setting.", schemas.DONE, event=ChangeEvents.SETTINGS_CHANGED)
async def _remove_setting(call: Call) -> Response:
    await call.store.projects.remove(call.project, call.part("name"))
    return empty()


@ROUTES.add(
    "GET /projects/jobsummaries",
    "Count the jobs of the projects that have jobs in these states and that the key may read.",
    schemas.value("A count for each state of each project.", schemas.array(_SUMMARY)),
    parameters=(schemas.Parameter("state", "default: pending and running", schemas.array(schemas.STATE)),),
)
async def _summaries(call: Call) -> Response:
    states = tuple(parse_state(text) for text in call.all("state")) or ACTIVE
    call.may_read(0)  # the answer has only projects that the key may read
    counts = await call.store.jobs.states_of_all()
    return json(
        [
            _summary(project, of)
            for project, of in sorted(counts.items())
            if call.may_read(project) and any(of[each] for each in states)
        ]
    )


def _summary(project: int, counts: Mapping[JobState, int]) -> dict[str, Any]:
    # The queue is unbounded, so there is always capacity.
    return {"project": project, **{state.value: counts[state] for state in SHOWN_STATES}, "has_capacity": True}


async def _merge(call: Call, values: object) -> Response:
    if not isinstance(values, dict):
        raise refused("body", "must be a JSON object", 'Write {"name": value}.')
    check_project_settings(values)
    call.noted["settings"] = sorted(values)
    await call.store.projects.merge(call.project, {name: msgspec.json.encode(each) for name, each in values.items()})
    return empty()
