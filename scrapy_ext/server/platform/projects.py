"""Projects: their settings, and how many jobs they have (as the real clients of the API use them).

On the storage host ``/projects/jobsummaries``, ``/projects/<project>/jobsummary`` and
``/projects/<project>/settings[/<name>]``; on the app host ``/api/scrapyd/listprojects.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.job_rules import violations_of_project
from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import NotFound, empty, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.platform.jobs import check_name, parse_state
from scrapy_ext.server.store.jobs.states import ACTIVE


async def projects(call: Call) -> Response:
    """Answer a call to ``/projects``."""
    match call.path, call.method:
        case ["jobsummaries"], "GET":
            return await _summaries(call)
        case [_, "jobsummary"], "GET":
            return json(_summary(call.project, await call.store.jobs.states(call.project)))
        case [_, "settings"], "GET":
            stored = await call.store.projects.settings(call.project)
            return json({name: msgspec.Raw(value) for name, value in stored.items()})
        case [_, "settings"], "POST":
            return await _merge(call, await bodies.document(call.request))
        case [_, "settings", name], "GET":
            return json(msgspec.Raw(await call.store.projects.setting(call.project, name) or b"null"))
        case [_, "settings", name], "POST":
            return await _merge(call, {name: await bodies.document(call.request)})
        case [_, "settings", name], "DELETE":
            await call.store.projects.remove(call.project, name)
            return empty()
        case ((["jobsummaries"] | [_, "jobsummary"]), _):
            raise method_not_allowed("GET")
        case [_, "settings"], _:
            raise method_not_allowed("GET", "POST")
        case [_, "settings", _], _:
            raise method_not_allowed("GET", "POST", "DELETE")
        case _:
            raise NotFound


async def listed(call: Call) -> Response:
    """``/api/scrapyd/listprojects.json``."""
    call.may_read(0)  # what follows tells of those projects only that the key opens
    found = await call.store.jobs.projects()
    return json({"projects": [project for project in found if call.may_read(project)], "status": "ok"})


async def _summaries(call: Call) -> Response:
    """Projects with jobs in these states; without any, with jobs that wait or run."""
    states = tuple(parse_state(text) for text in call.all("state")) or ACTIVE
    call.may_read(0)  # what follows tells of those projects only that the key opens
    counts = await call.store.jobs.states_of_all()
    return json(
        [
            _summary(project, of)
            for project, of in sorted(counts.items())
            if call.may_read(project) and any(of[each] for each in states)
        ]
    )


def _summary(project: int, counts: Mapping[JobState, int]) -> dict[str, Any]:
    # Jobs wait for whoever takes them, however many that are: there is always capacity.
    return {"project": project, **{state.value: counts[state] for state in SHOWN_STATES}, "has_capacity": True}


async def _merge(call: Call, values: Any) -> Response:
    if not isinstance(values, dict):
        raise refused("body", "must be a JSON object", 'Write {"name": value}.')
    for name in values:
        check_name("name", name)
    if violations := list(violations_of_project(values)):
        raise ContractError(violations)
    await call.store.projects.merge(call.project, {name: msgspec.json.encode(each) for name, each in values.items()})
    return empty()
