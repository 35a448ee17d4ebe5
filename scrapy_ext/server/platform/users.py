"""Users of the pages and their roles: ``/api/users``. The hosted platform does not have these paths.

Only the server's own key has access: a key that could give roles would have the rights of each of them.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.users import ALL_PROJECTS, Role, User, parse_change
from scrapy_ext.server.auth.users import UserRules
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import Refusal, found, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Access, Routes

ROUTES: Final = Routes(Access.SERVER)

_COUNT: Final = 1000
_MOST: Final = 10_000
_MAX_BODY: Final = 64 * 1024
_EXAMPLE: Final = '{"roles": {"7": "run"}}'
_ONE: Final = "/api/users/{user}"
_USER: Final = schemas.value("The user.", User)
_CHANGE: Final = schemas.Body(
    schemas.JSON,
    schemas.record(
        {
            "disabled": {"type": "boolean"},
            "roles": {
                "type": "object",
                "propertyNames": {"pattern": rf"^({ALL_PROJECTS}|0|[1-9][0-9]{{0,18}})$"},
                "additionalProperties": {"enum": [*(role.value for role in Role), None]},
            },
        },
        only=True,
    ),
    f"roles: the new role by project, or by {ALL_PROJECTS} for all of them; null removes one. Others are unchanged.",
)


@ROUTES.add(
    "GET /api/users",
    "List the people who have logged in by OpenID Connect, with their roles.",
    schemas.value("The users.", schemas.Many(User)),
    parameters=(
        schemas.page_size(_MOST),
        schemas.Parameter("start", "leave out so many", schemas.COUNTER),
        schemas.Parameter("q", "only users with this text in their name or e-mail address", schemas.STRING),
    ),
)
async def _list(call: Call) -> Response:
    _check(call)
    rules, text = call.service(UserRules), call.query.get("q", "")
    count, start = call.page_size(_COUNT, _MOST, "Use start to read further."), call.number("start", 0) or 0
    chosen = [user for user in await call.store.users.listed() if user.has(text)]
    return json([rules.shown(user) for user in chosen[start : start + count]])


@ROUTES.add(f"GET {_ONE}", "Read a user.", _USER)
async def _read(call: Call) -> Response:
    _check(call)
    user = found(await call.store.users.get(call.part_number("user")), _missing(call))
    return json(call.service(UserRules).shown(user))


@ROUTES.add(
    f"PATCH {_ONE}",
    "Give or remove roles of a user, or disable or enable the user. It has effect at once on all servers.",
    _USER,
    body=_CHANGE,
)
async def _change(call: Call) -> Response:
    _check(call)
    change = parse_change(await json_bodies.fields_of(call.request, _EXAMPLE, _MAX_BODY, by_hand=True))
    user = found(await call.store.users.change(call.part_number("user"), change, call.who), _missing(call))
    call.wrote(1)
    return json(call.service(UserRules).shown(user))


@ROUTES.add(
    f"DELETE {_ONE}",
    "Remove a user, whose sessions end. The person may log in again as a new user without roles.",
    schemas.AnswerShape("It is removed."),
    status=204,
)
async def _remove(call: Call) -> Response:
    _check(call)
    if not await call.store.users.remove(call.part_number("user"), call.who):
        raise not_found(_missing(call))
    return Response(status_code=204)


def _check(call: Call) -> None:
    if not call.grant.may_manage_users:
        raise Refusal(403, f"Forbidden. The key {call.who} may not manage users. Use the server's own key.")


def _missing(call: Call) -> str:
    return f"There is no user {call.part('user')[:60]}. Use an id of the list of them."
