"""``/ui/<project>/frontiers``: queues, seen fingerprints and dead letters, by frontier and slot."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.feeding import MAX_LINES, PUSH_PATTERN
from scrapy_ext.api.platform.frontier import DEAD_LETTERS, check_name
from scrapy_ext.api.platform.job_data import is_journal, job_of_frontier, job_of_journal
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.store.frontier.feeds import Push, push_lines, put_back
from scrapy_ext.server.store.frontier.frontier import Slot, StoredBatch
from scrapy_ext.server.store.frontier.overview import FINGERPRINTS, FrontierSummary
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.ui.frame import Link, MissingError, UiPage, Visit
from scrapy_ext.server.ui.job_summary import Summary, summary

_PATH: Final = "/ui/{project:number}/frontiers"
_ONE: Final = _PATH + "/{frontier}"
_SLOT: Final = _ONE + "/{slot}"
_FRONTIERS: Final = 50
#: Running jobs among which those of a named frontier are found.
_RUNNING: Final = 500
#: Jobs with a journal in a named frontier that are looked up.
_USERS: Final = 20
_SLOTS: Final = 100
#: Requests and batches shown of the head of a queue.
_HEAD: Final = 50
_HEAD_BATCHES: Final = 4
#: Maximum slots that one form deletes; more need another form.
_MOST_SLOTS: Final = 1000
#: Invalid lines of a push that are shown.
_SHOWN_FAULTS: Final = 10

_decode: Final = msgspec.json.Decoder(list[tuple[str, Any]]).decode


class _Next(NamedTuple):
    """A request at the head of a queue; ``error`` is "" unless it is a dead letter."""

    batch: str
    fp: str
    method: str
    url: str
    error: str
    data: object


class _Row(NamedTuple):
    """A frontier with the jobs that use it: running ones, or the one that it belongs to.

    ``waits_since``: time (ms) since when a crawl waits for requests in it. ``is_over``: its own job has ended.
    """

    frontier: FrontierSummary
    jobs: list[Summary]
    waits_since: int | None
    is_over: bool


async def _list(visit: Visit) -> Response:
    after = visit.text("after")
    found = await visit.store.frontier_overview.frontiers(visit.project, after, _FRONTIERS + 1)
    which = JobFilter(states=(JobState.RUNNING,))
    running = (await visit.store.jobs.window(visit.project, which, size=_RUNNING)).jobs
    users = {each.name: await _users_of(visit, each.name) for each in found[:_FRONTIERS]}
    keys = tuple({key for some in users.values() for key in some})
    which = JobFilter(keys=keys, states=tuple(JobState))
    known = (
        {job.key: job for job in await visit.store.jobs.listed(visit.project, which, JobPage(len(keys)))}
        if keys
        else {}
    )
    rows = [
        _row(visit, each, [known[key] for key in users[each.name] if key in known], running)
        for each in found[:_FRONTIERS]
    ]
    return visit.rendered(
        "frontiers.html",
        rows=[row for row in rows if not row.is_over],
        over=[row for row in rows if row.is_over],
        most_users=_USERS,
        after=after,
        following=found[_FRONTIERS - 1].name if len(found) > _FRONTIERS else None,
        path=_path(visit),
        now=visit.store.clock(),
    )


def _row(visit: Visit, frontier: FrontierSummary, users: Sequence[StoredJob], running: Sequence[StoredJob]) -> _Row:
    jobs = {job.key: job for job in sorted(users, key=lambda job: job.changed)}
    jobs |= {job.key: job for job in running if job.metadata.get("frontier") == frontier.name}
    active = [job for job in jobs.values() if job.state in (JobState.PENDING, JobState.RUNNING)]
    waiting = [job.metadata.get("waits_since") for job in active if job.metadata.get("frontier") == frontier.name]
    return _Row(
        frontier,
        [summary(job, visit.store.clock()) for job in active or list(jobs.values())[-1:]],
        min((since for since in waiting if isinstance(since, int)), default=None),
        job_of_frontier(visit.project, frontier.name) is not None and not active,
    )


async def _users_of(visit: Visit, frontier: str) -> list[JobKey]:
    """Return the job that a frontier belongs to, or some of the jobs with a journal in a named one."""
    own = job_of_frontier(visit.project, frontier)
    if own is not None:
        return [own]
    slots = await visit.store.frontier_overview.journals(visit.project, frontier, _USERS)
    keys = (job_of_journal(visit.project, slot) for slot in slots)
    return [*dict.fromkeys(key for key in keys if key is not None)]


def _frontier(visit: Visit) -> str:
    name: str = visit.request.path_params["frontier"]
    try:
        check_name(name, "frontier")
    except ContractError:
        raise MissingError from None
    return name


def _path(visit: Visit, *parts: str) -> str:
    return "/".join([f"/ui/{visit.project}/frontiers", *(quote(part, safe="") for part in parts)])


async def _one(visit: Visit) -> Response:
    return await _rendered(visit)


async def _rendered(visit: Visit, error: ContractError | None = None) -> Response:
    """Render a frontier; ``error``: of a push by its form, whose text is shown again."""
    name, after = _frontier(visit), visit.text("after")
    found = await visit.store.frontier_overview.slots(visit.project, name, after, _SLOTS + 1)
    if not found and not after:
        raise MissingError
    dead = await visit.store.frontier_overview.slot(Slot(visit.project, name, DEAD_LETTERS))
    return visit.rendered(
        "frontier.html",
        frontier=name,
        slots=[slot for slot in found[:_SLOTS] if slot.name != DEAD_LETTERS and not is_journal(slot.name)],
        journals=[slot for slot in found[:_SLOTS] if is_journal(slot.name)],
        dead=dead,
        dead_slot=DEAD_LETTERS,
        most_users=_USERS,
        after=after,
        following=found[_SLOTS - 1].name if len(found) > _SLOTS else None,
        path=_path(visit, name),
        # A form that is sent twice pushes once.
        push=(visit.form.get("push") if error else None) or secrets.token_hex(8),
        lines=(visit.form.get("requests") if error else None) or "",
        error="" if error is None else error.summary(_SHOWN_FAULTS),
    )


async def _push(visit: Visit, name: str) -> Response:
    lines = (visit.form.get("requests") or "").encode("utf-8", "surrogateescape").splitlines()
    push = visit.form.get("push") or ""
    try:
        if len(lines) > MAX_LINES:
            raise refused("requests", f"have over {MAX_LINES} lines", "Push them in parts.")
        if not re.fullmatch(PUSH_PATTERN, push):
            raise refused("push", "must be the ID of this form", "Open the page again.")
        given = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        if not given:
            raise refused("requests", "are missing", "Write a URL, or a JSON object with one, in each line.")
        count = await push_lines(visit.store.feeds, Push(visit.project, name), given, push)
    except ContractError as error:
        answer = await _rendered(visit, error)
        answer.status_code = error.status
        return answer
    await visit.note(ChangeEvents.FRONTIER_CHANGED, frontier=name, pushed=count.new)
    return visit.redirect(_path(visit, name), "pushed", count.new)


async def _change(visit: Visit) -> Response:
    name = _frontier(visit)
    match visit.form.get("action"):
        case "put back":
            try:
                number = await put_back(visit.store.frontier, visit.project, name)
            except ValueError as error:
                raise refused(
                    "dead letters", str(error), "Open the slot and delete what is not a dead letter."
                ) from None
            await visit.note(ChangeEvents.FRONTIER_CHANGED, frontier=name, queued_again=number)
            return visit.redirect(_path(visit, name), "put-back", number)
        case "push":
            return await _push(visit, name)
        case "delete":
            slots = await visit.store.frontier.slots(visit.project, name)
            for slot in slots[:_MOST_SLOTS]:
                await visit.store.frontier.delete_slot(Slot(visit.project, name, slot))
            await visit.note(ChangeEvents.FRONTIER_CHANGED, frontier=name, removed_slots=len(slots[:_MOST_SLOTS]))
            return visit.removed(_path(visit, name) if len(slots) > _MOST_SLOTS else _path(visit))
        case _:
            raise refused("action", "must be push, put back or delete", "Use the buttons of the page.")


def _slot(visit: Visit) -> Slot:
    name: str = visit.request.path_params["slot"]
    return Slot(visit.project, _frontier(visit), name)


async def _show_slot(visit: Visit) -> Response:
    slot = _slot(visit)
    summary = await visit.store.frontier_overview.slot(slot)
    if summary is None:
        raise MissingError
    after = visit.request.query_params.get("after", "")
    shows_seen = visit.text("show") == "seen"
    seen = await visit.store.frontier_overview.fingerprints(slot, after.encode()) if shows_seen else []
    batches = [] if shows_seen else await visit.store.frontier_overview.head(slot, _HEAD, _HEAD_BATCHES)
    return visit.rendered(
        "slot.html",
        slot=slot,
        summary=summary,
        is_dead=slot.name == DEAD_LETTERS,
        shows_seen=shows_seen,
        seen=[fp.decode() for fp in seen],
        after=after,
        following=seen[-1].decode() if len(seen) == FINGERPRINTS else None,
        head=_head(batches),
        path=_path(visit, slot.frontier, slot.name),
        frontier_path=_path(visit, slot.frontier),
    )


def _head(batches: list[StoredBatch]) -> list[_Next]:
    pairs = [(batch.id, fp, qdata) for batch in batches for fp, qdata in _decode(b"[" + batch.requests + b"]")]
    return [_next(*pair) for pair in pairs[:_HEAD]]


def _next(batch: str, fp: str, qdata: object) -> _Next:
    """Return a queued request, decoded if it has the form of a crawl's. Other clients may queue anything."""
    error, form = "", qdata
    if isinstance(qdata, dict) and "error" in qdata and "request" in qdata:
        error, form = str(qdata["error"]), qdata["request"]
    fields = form if isinstance(form, dict) else {}
    url, method = fields.get("url"), fields.get("method", "GET")
    return _Next(batch, fp, str(method), url if isinstance(url, str) else "", error, qdata)


async def _change_slot(visit: Visit) -> Response:
    slot = _slot(visit)
    if visit.form.get("action") != "delete":
        raise refused("action", "must be delete", "Use the buttons of the page.")
    await visit.store.frontier.delete_slot(slot)
    await visit.note(ChangeEvents.FRONTIER_CHANGED, frontier=slot.frontier, removed_slot=slot.name)
    slots = await visit.store.frontier.slots(visit.project, slot.frontier)
    return visit.removed(_path(visit, slot.frontier) if slots else _path(visit))


PAGES: Final = (
    UiPage(_PATH, "frontiers", _list),
    UiPage(_ONE, "frontiers", _one, _change),
    UiPage(_SLOT, "frontiers", _show_slot, _change_slot),
)
LINKS: Final = (Link("frontiers", "Frontiers", "/ui/{project}/frontiers"),)
