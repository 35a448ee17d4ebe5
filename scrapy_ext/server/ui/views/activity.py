"""``/ui/<project>/activity`` and ``/ui/activity``: the newest events of one project or of all."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform import monitors, webhooks
from scrapy_ext.api.platform.alerts import GIVEN_UP_EVENT
from scrapy_ext.api.platform.deliveries import DELIVERED_EVENT
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.platform.retention import REMOVED_EVENT
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store.activity.activity import SERVER, Message
from scrapy_ext.server.ui.frame import Link, UiPage, Visit

_PER_PAGE: Final = 50
#: Messages that one filtered page reads.
_MOST_READ: Final = 2000
_STEP: Final = 200
#: Maximum number of projects shown together: those with the highest numbers, the newest ones of most platforms.
_PROJECTS: Final = 100

EVENTS: Final = (
    *webhooks.STATE_EVENTS.values(),
    webhooks.JOB_CANCELLED,
    webhooks.JOB_INTERRUPTED,
    webhooks.PERIODIC_ACTIVE,
    webhooks.PERIODIC_MISSED,
    webhooks.PERIODIC_REFUSED,
    REMOVED_EVENT,
    DELIVERED_EVENT,
    *monitors.EVENTS,
    GIVEN_UP_EVENT,
)


class _Shown(NamedTuple):
    """A message; ``job`` only when it belongs to the message's project, ``rest`` has the other fields."""

    project: int
    number: int
    ts: int
    event: str
    job: str
    user: str
    rest: dict[str, Any]


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
    return _rendered(visit, shown, event, all_projects=False, older=None if last else below, is_newest=is_newest)


async def _all(visit: Visit) -> Response:
    event, user = visit.text("event"), visit.text("user")
    newest: list[Message] = []
    server = [SERVER] if visit.grant.may_manage_users else []
    for project in [*server, *sorted(visit.projects)[-_PROJECTS:]]:
        newest += await visit.store.activity.page(project, MAX_NUMBER, _STEP if event or user else _PER_PAGE)
    shown = [_shown(message) for message in sorted(newest, key=lambda message: -message.ts)]
    chosen = [each for each in shown if event in ("", each.event) and user in ("", each.user)][:_PER_PAGE]
    return _rendered(visit, chosen, event, all_projects=True, older=None, is_newest=True)


def _rendered(visit: Visit, messages: list[_Shown], event: str, **context: Any) -> Response:
    user = visit.text("user")
    return visit.rendered("activity.html", messages=messages, event=event, user=user, events=EVENTS, **context)


def _shown(message: Message) -> _Shown:
    decoded = msgspec.json.decode(message.event)
    fields: dict[str, Any] = decoded if isinstance(decoded, dict) else {"": decoded}
    job = fields.get("job")
    is_own = isinstance(job, str) and _is_of(message.project, job)
    named = ("event", "user", "job") if is_own else ("event", "user")
    texts = {name: fields[name] for name in named if isinstance(fields.get(name), str)}
    rest = {name: value for name, value in fields.items() if name not in texts}
    place = (message.project, message.number, message.ts)
    return _Shown(*place, texts.get("event", ""), texts.get("job", ""), texts.get("user", ""), rest)


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
