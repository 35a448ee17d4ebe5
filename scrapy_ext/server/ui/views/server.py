"""Pages of the whole server: ``/ui/projects``, ``/ui/nodes`` and ``/ui/keys``, and ``/ui/usage`` of one project or all.

The projects have their names, their jobs by state and the size of their data; the nodes their jobs, and the pending
jobs. Only the platform's own key has access to the named API keys (``Grant.may_manage_keys``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.jobs import SHOWN_STATES
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.usage import Usage
from scrapy_ext.api.platform.verdicts import Verdict
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.store.jobs.attempts import HeldJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.jobs.placing import Waiting
from scrapy_ext.server.store.projects import Holding
from scrapy_ext.server.ui.frame import Link, UiPage, Visit, field_errors

_PER_PAGE: Final = 50
#: Kinds of records with a column.
_KINDS: Final = ("items", "requests", "logs")


#: Verdicts with a column, the worst first.
_VERDICTS: Final = (Verdict.RED, Verdict.AMBER, Verdict.GREEN)


class _Project(NamedTuple):
    project: int
    #: Numbers of its spiders by verdict.
    spiders: Mapping[str, int]
    jobs: Mapping[str, int]
    holdings: Mapping[str, Holding]
    bytes: int


async def _projects(visit: Visit) -> Response:
    """Render the projects, those with the most spiders that need somebody first."""
    offset = visit.number("offset")
    jobs, spiders = await visit.store.jobs.states_of_all(), await visit.store.verdicts.counted(None)

    def of(project: int) -> list[int]:
        return [spiders.get(project, {}).get(verdict, 0) for verdict in _VERDICTS]

    ordered = sorted(visit.projects, key=lambda project: ([-count for count in of(project)[:2]], project))
    rows = []
    for project in ordered[offset : offset + _PER_PAGE]:
        holdings = await visit.store.projects.holdings(project)
        states = {state.value: jobs.get(project, {}).get(state, 0) for state in SHOWN_STATES}
        size = sum(holding.bytes for holding in holdings.values())
        verdicts = dict(zip([verdict.text for verdict in _VERDICTS], of(project), strict=True))
        kinds = {kind: holdings.get(kind, Holding(0, 0)) for kind in _KINDS}
        rows.append(_Project(project, verdicts, states, kinds, size))
    return visit.rendered(
        "projects.html",
        rows=rows,
        attention=sum(sum(of(project)[:2]) for project in ordered),
        spiders=sum(sum(spiders.get(project, {}).values()) for project in ordered),
        states={state.value: sum(jobs.get(each, {}).get(state, 0) for each in ordered) for state in SHOWN_STATES},
        offset=offset,
        total=len(visit.projects),
        size=_PER_PAGE,
    )


# ── use of storage ──

#: Maximum number of spiders and projects shown.
_PARTS: Final = 50
_USAGE_FORBIDDEN: Final = (
    "This key is limited to some projects. Log in with a key of all projects to see the use of storage."
)
_AGES: Final = {
    "7d": "up to 7 days",
    "30d": "7 to 30 days",
    "90d": "30 to 90 days",
    "older": "older",
    "unknown": "without a job",
}


async def _usage(visit: Visit) -> Response:
    return await _rendered_usage(visit, await visit.store.usage.of_project(visit.project))


async def _usage_of_all(visit: Visit) -> Response:
    if not visit.grant.all_projects:
        raise Refusal(403, _USAGE_FORBIDDEN)
    return await _rendered_usage(visit, await visit.store.usage.of_all())


async def _rendered_usage(visit: Visit, usage: Usage) -> Response:
    space = await visit.store.space() if visit.grant.all_projects else None
    return visit.rendered("usage.html", usage=usage, space=space, ages=_AGES, most=_PARTS)


# ── nodes ──

#: Maximum number of nodes shown, and of jobs of each.
_NODES: Final = 200
_JOBS: Final = 50
_NODES_FORBIDDEN: Final = (
    "Nodes run the jobs of all projects. This key is limited to some projects: log in with one of all."
)


class _NodeRow(NamedTuple):
    node: StoredNode
    jobs: list[HeldJob]
    more: int


class _Queue(NamedTuple):
    waiting: Waiting
    fitting: int
    free: bool


async def _nodes(visit: Visit) -> Response:
    if not visit.grant.all_projects:
        raise Refusal(403, _NODES_FORBIDDEN)
    nodes = await visit.store.nodes.listed()
    rows = []
    for node in nodes[:_NODES]:
        jobs = await visit.store.attempts.of_node(node.name)
        rows.append(_NodeRow(node, jobs[:_JOBS], max(len(jobs) - _JOBS, 0)))
    queues = []
    for waiting in await visit.store.waiting.groups():
        fitting = [node for node in nodes if waiting.fits(node)]
        queues.append(_Queue(waiting, len(fitting), any(node.free >= waiting.units for node in fitting)))
    return visit.rendered(
        "nodes.html",
        rows=rows,
        total=len(nodes),
        units=sum(node.units for node in nodes),
        used=sum(node.used for node in nodes),
        queues=queues,
        now=visit.store.clock(),
    )


# ── keys ──

_KEYS: Final = "/ui/keys"
_OPENS: Final = ("platform", "extraction", "both")
_KEYS_FORBIDDEN: Final = "Only the platform's own key manages keys. Log in with it."


async def _keys(visit: Visit) -> Response:
    _check_manager(visit)
    return await _rendered_keys(visit, Form(()))


def _check_manager(visit: Visit) -> None:
    if not visit.grant.may_manage_keys:
        raise Refusal(403, _KEYS_FORBIDDEN)


async def _rendered_keys(
    visit: Visit, form: Form, *, made: tuple[str, str] | None = None, error: ContractError | None = None
) -> Response:
    """Render the page; ``made`` is the name of a new key and the key, shown only once."""
    return visit.rendered(
        "keys.html",
        error.status if error else 200,
        keys=await visit.store.keys.named(),
        form={name: form.get(name) or "" for name in ("name", "projects", "organisation")},
        opens=form.get("opens") or "platform",
        choices=_OPENS,
        read_only=form.get("read_only") is not None,
        run_only=form.get("run_only") is not None,
        made=made,
        errors=field_errors(error) if error else {},
    )


async def _change_keys(visit: Visit) -> Response:
    _check_manager(visit)
    name = (visit.form.get("name") or "").strip()
    match visit.form.get("action"):
        case "add":
            return await _add_key(visit, name)
        case "remove":
            found, done = await visit.store.keys.remove(name), "key-removed"
        case "suspend":
            found, done = await visit.store.keys.suspend(name, True), "key-suspended"
        case "resume":
            found, done = await visit.store.keys.suspend(name, False), "key-resumed"
        case _:
            raise refused("action", "must be add, remove, suspend or resume", "Use the buttons of the page.")
    if not found:
        raise Refusal(404, "The key does not exist any more. Reload the page.")
    event = ChangeEvents.KEY_REMOVED if done == "key-removed" else ChangeEvents.KEY_CHANGED
    await visit.note_server(event, key=name, done=done.removeprefix("key-"))
    return visit.redirect(_KEYS, done, project=visit.project)


async def _add_key(visit: Visit, name: str) -> Response:
    form = visit.form
    try:
        opens = form.get("opens") or "platform"
        if opens not in _OPENS:
            raise refused("opens", f"must be one of {', '.join(_OPENS)}", "Choose one of them.")
        projects = frozenset[int]() if opens == "extraction" else _projects_of(form.get("projects") or "")
        organisation = (form.get("organisation") or "").strip()
        if organisation and opens == "platform":
            raise refused(
                "organisation", "requires access to extraction", "Give the key that access too, or leave this out."
            )
        read_only, run_only = (form.get(each) is not None for each in ("read_only", "run_only"))
        if read_only and run_only:
            raise refused("run_only", "excludes read only", "Choose one of the two.")
        key = await add_key(
            visit.store,
            name,
            projects,
            may_write=not (read_only or run_only),
            may_run=run_only,
            extraction=opens != "platform",
            organisation=organisation,
        )
    except ContractError as error:
        return await _rendered_keys(visit, form, error=error)
    await visit.note_server(ChangeEvents.KEY_CREATED, key=name)
    # No URL shows the key again: a reload must not reveal it.
    return await _rendered_keys(visit, Form(()), made=(name, key))


def _projects_of(text: str) -> frozenset[int] | None:
    """Return the projects of the form; None for all of them."""
    numbers = [
        number_of(piece, "projects", "Write numbers separated by spaces.")
        for piece in re.split(r"[\s,]+", text)
        if piece
    ]
    return frozenset(numbers) or None


PAGES: Final = (
    UiPage("/ui/projects", "projects", _projects),
    UiPage("/ui/{project:number}/usage", "usage", _usage),
    UiPage("/ui/usage", "usage", _usage_of_all),
    UiPage("/ui/nodes", "nodes", _nodes),
    UiPage(_KEYS, "keys", _keys, _change_keys),
)
LINKS: Final = (
    Link("projects", "Projects", "/ui/projects?project={project}"),
    Link("usage", "Storage", "/ui/{project}/usage"),
    Link("nodes", "Nodes", "/ui/nodes?project={project}", lambda grant: grant.all_projects),
    Link("keys", "Keys", _KEYS + "?project={project}", lambda grant: grant.may_manage_keys),
)
