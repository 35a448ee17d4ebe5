"""``/ui/<project>/activity`` and ``/ui/activity``: the newest events of one project or of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.event_sentences import GROUPS, KINDS, Part, parts_of
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey, is_number
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store.activity import SERVER, Message
from scrapy_ext.server.ui.frame import Link, UiPage, Visit

_PER_PAGE: Final = 50
#: Messages that one filtered page reads.
_MOST_READ: Final = 2000
_STEP: Final = 200
#: Maximum number of projects shown together: those with the highest numbers, the newest ones of most platforms.
_PROJECTS: Final = 100


class _Shown(NamedTuple):
    """A message; ``job`` and its ``spider`` only when it belongs to the message's project."""

    project: int
    ts: int
    event: str
    job: str
    spider: str
    user: str
    sentence: list[Part]


async def _one(visit: Visit) -> Response:
    event, user, below = visit.text("event"), visit.text("user"), visit.number("below", MAX_NUMBER)
    step = _STEP if event or user else _PER_PAGE
    shown: list[_Shown] = []
    read, last = 0, False
    while len(shown) < _PER_PAGE and read < _MOST_READ and not last:
        page = await visit.store.activity.page(visit.project, below, step)
        last = len(page) < step
        for message in page:
            below, read = message.number, read + 1
            each = _shown(message)
            if event in ("", each.event) and user in ("", each.user):
                shown.append(each)
                if len(shown) == _PER_PAGE:
                    last = last and message is page[-1]
                    break
    is_newest = "below" not in visit.request.query_params
    return await _rendered(visit, shown, event, all_projects=False, older=None if last else below, is_newest=is_newest)


async def _all(visit: Visit) -> Response:
    event, user = visit.text("event"), visit.text("user")
    newest: list[Message] = []
    server = [SERVER] if visit.grant.may_manage_users else []
    for project in [*server, *sorted(visit.projects)[-_PROJECTS:]]:
        newest += await visit.store.activity.page(project, MAX_NUMBER, _STEP if event or user else _PER_PAGE)
    shown = [_shown(message) for message in sorted(newest, key=lambda message: -message.ts)]
    chosen = [each for each in shown if event in ("", each.event) and user in ("", each.user)][:_PER_PAGE]
    return await _rendered(visit, chosen, event, all_projects=True, older=None, is_newest=True)


async def _rendered(visit: Visit, messages: list[_Shown], event: str, **context: object) -> Response:
    named = await _with_spiders(visit, messages)
    of_clients = {each.event for each in messages} | {event}
    other = sorted(of_clients - {"", *KINDS})
    return visit.rendered(
        "activity.html", messages=named, event=event, user=visit.text("user"), groups=GROUPS, other=other, **context
    )


async def _with_spiders(visit: Visit, messages: list[_Shown]) -> list[_Shown]:
    """Return the messages with the names of the spiders of their jobs, and of those that a message numbers."""
    numbered = {
        (each.project, int(number))
        for each in messages
        for number in (_numbers_of(each) if each.project != SERVER else ())
        if is_number(number)
    }
    found = await visit.store.spiders.named(numbered)
    names = {(str(project), str(number)): name for (project, number), name in found.items()}

    def spider_of(each: _Shown, number: str) -> str:
        return names.get((str(each.project), number), number)

    return [
        each._replace(
            spider=spider_of(each, each.job.split("/")[1]) if each.job else "",
            sentence=[
                part._replace(text=spider_of(each, part.text))
                if part.field == "spider" and each.event == ChangeEvents.SPIDER_CHANGED
                else part
                for part in each.sentence
            ],
        )
        for each in messages
    ]


def _numbers_of(each: _Shown) -> Iterator[str]:
    """Yield the numbers of spiders in a message: of its job, and of the one event that numbers its spider."""
    if each.job:
        yield each.job.split("/")[1]
    if each.event == ChangeEvents.SPIDER_CHANGED:
        yield from (part.text for part in each.sentence if part.field == "spider")


def _shown(message: Message) -> _Shown:
    decoded = msgspec.json.decode(message.event)
    fields: dict[str, Any] = decoded if isinstance(decoded, dict) else {"": decoded}
    job = fields.get("job")
    is_own = isinstance(job, str) and _is_of(message.project, job)
    named = ("event", "user", "job") if is_own else ("event", "user")
    texts = {name: fields[name] for name in named if isinstance(fields.get(name), str)}
    event, user, own = (texts.get(name, "") for name in ("event", "user", "job"))
    return _Shown(message.project, message.ts, event, own, "", user, parts_of(fields))


def _is_of(project: int, job: str) -> bool:
    try:
        return JobKey.parse(job).project == project
    except ContractError:
        return False


PAGES: Final = (
    UiPage("/ui/{project:number}/activity", "activity", _one),
    UiPage("/ui/activity", "activity", _all),
)
LINKS: Final = (Link("activity", "Activity", "/ui/{project}/activity"),)
