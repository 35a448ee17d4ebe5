"""``/ui/users``: the people who have logged in by OpenID Connect, with their roles; for managers of users."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.users import LEAST, Role, UserChange, parse_project, parse_role
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.ui.frame import Link, UiPage, Visit, field_errors

_PATH: Final = "/ui/users"
_PER_PAGE: Final = 50
#: Confirmations (``shapes.DONE``).
_DONE: Final = {
    "grant": "role-given",
    "revoke": "role-removed",
    "disable": "user-disabled",
    "enable": "user-enabled",
    "remove": "user-removed",
}
_FORBIDDEN: Final = "Only the server's own key, and users who manage all projects, manage users: log in with that key."


async def _show(visit: Visit) -> Response:
    _check(visit)
    return await _rendered(visit)


def _check(visit: Visit) -> None:
    if not visit.grant.may_manage_users:
        raise Refusal(403, _FORBIDDEN)


async def _rendered(visit: Visit, error: ContractError | None = None) -> Response:
    text, offset = visit.text("q"), visit.number("offset")
    chosen = [user for user in await visit.store.users.listed() if user.has(text)]
    rules = visit.services.users
    return visit.rendered(
        "users.html",
        error.status if error else 200,
        users=[rules.shown(user) for user in chosen[offset : offset + _PER_PAGE]],
        total=len(chosen),
        offset=offset,
        size=_PER_PAGE,
        search=text,
        roles={role.value: [action.value for action, least in LEAST.items() if least is role] for role in Role},
        wrong_user=_wrong_user(visit) if error else None,
        typed={name: visit.form.get(name) or "" for name in ("project", "role")},
        errors=field_errors(error) if error else {},
    )


def _wrong_user(visit: Visit) -> int | None:
    text = visit.form.get("id") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


async def _act(visit: Visit) -> Response:
    _check(visit)
    by, number = visit.grant.name, number_of(visit.form.get("id") or "", "id", "Use the buttons of the page.")
    action = visit.form.get("action") or ""
    try:
        if action == "remove":
            is_found = await visit.store.users.remove(number, by)
        else:
            is_found = await visit.store.users.change(number, _change(visit.form, action), by) is not None
    except ContractError as error:
        return await _rendered(visit, error)
    if not is_found:
        raise Refusal(404, "The user does not exist any more. Reload the page.")
    return visit.redirect(_PATH, _DONE[action], project=visit.number("project", -1) if visit.text("project") else None)


def _change(form: Form, action: str) -> UserChange:
    """Return the change of a form; raises ``ContractError``."""
    match action:
        case "grant":
            return UserChange(None, {parse_project((form.get("project") or "").strip()): parse_role(form.get("role"))})
        case "revoke":
            return UserChange(None, {parse_project(form.get("project") or ""): None})
        case "disable" | "enable":
            return UserChange(action == "disable", {})
        case _:
            raise refused("action", "must be grant, revoke, disable, enable or remove", "Use a button.")


PAGES: Final = (UiPage(_PATH, "users", _show, _act, None),)
LINKS: Final = (Link("users", "Users", _PATH + "?project={project}", lambda grant: grant.may_manage_users),)
