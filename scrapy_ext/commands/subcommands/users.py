"""``scrapy platform users``: the people who log in to the pages, and their roles. Changes have effect at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.users import Role, User, parse_project
from scrapy_ext.commands.options import argument
from scrapy_ext.commands.output import Column
from scrapy_ext.commands.subcommand import CommandAction, CommandError, View, with_actions
from scrapy_ext.commands.text import clock


def _role(row: Mapping[str, Any]) -> str:
    project = "all" if row["project"] is None else row["project"]
    source = f" ({row['by']})" if row["by"].startswith("group ") else ""
    return f"{project}: {row['role']}{source}"


_COLUMNS: Final = (
    Column.field("id", right=True),
    Column.field("user"),
    Column.field("name"),
    Column("roles", lambda row: "disabled" if row["disabled"] else ", ".join(map(_role, row["roles"])) or "none"),
    Column("groups", lambda row: ", ".join(row["groups"])),
    Column("last login (UTC)", lambda row: clock(row["last_login"])[:16]),
)


async def _list(view: View) -> None:
    found = await view.client.users.list(view.options.search or "", count=10_000)
    await view.show(found, _COLUMNS, f"users: {len(found)}")


async def _user(view: View) -> User:
    """Return the user of the argument: an ID, or the name in the activity."""
    wanted: str = view.options.user
    if wanted.isascii() and wanted.isdigit():
        return await view.client.users.get(int(wanted))
    found = [user for user in await view.client.users.list(wanted) if user.user.lower() == wanted.lower()]
    if len(found) != 1:
        which = "there is no user" if not found else "several users are"
        raise CommandError(f"{which} {wanted[:80]}; `scrapy platform users` lists them with their IDs")
    return found[0]


async def _grant(view: View) -> None:
    """Give a role in projects, or remove the one there."""
    role = Role(view.options.role) if view.options.action == "grant" else None
    user = await view.client.users.set_roles((await _user(view)).id, dict.fromkeys(_projects(view), role))
    rows = msgspec.to_builtins(user.roles)
    view.say(f"{user.user}: {', '.join(map(_role, rows)) or 'no role'}")


def _projects(view: View) -> list[int | None]:
    options = view.options
    projects = [parse_project(text) for text in options.projects] or [options.project]
    if projects == [None] and not options.projects:
        raise CommandError("name the projects, or all, as in `grant ada@example.com run 7`")
    return projects


async def _disable(view: View) -> None:
    await view.client.users.disable((await _user(view)).id, view.options.action == "disable")


async def _remove(view: View) -> None:
    await view.client.users.remove((await _user(view)).id)


_USER: Final = argument("user", metavar="USER", help="e-mail address or name as in the list, or ID")
_IN: Final = argument("projects", nargs="*", metavar="PROJECT", help="numbers of projects, or all")
_ROLES: Final = tuple(role.value for role in Role)

SUBCOMMANDS: Final = (
    with_actions(
        "users",
        (
            CommandAction(
                "list",
                "list the users with their roles",
                _list,
                (argument("--search", metavar="TEXT", help="only users with this text in name or e-mail address"),),
            ),
            CommandAction(
                "grant",
                "give a user a role in projects, in place of the one there",
                _grant,
                (_USER, argument("role", choices=_ROLES, help="role"), _IN),
            ),
            CommandAction("revoke", "remove the role of a user in projects", _grant, (_USER, _IN)),
            CommandAction("disable", "end the sessions of a user, who cannot log in any more", _disable, (_USER,)),
            CommandAction("enable", "let a disabled user log in again", _disable, (_USER,)),
            CommandAction("remove", "remove a user with all roles", _remove, (_USER,)),
        ),
        (
            ("scrapy platform users", "the people who have logged in, with their roles"),
            ("scrapy platform users grant ada@example.com run 7", "may run and stop jobs of project 7"),
            ("scrapy platform users grant ada@example.com view all", "may see all projects"),
            ("scrapy platform users revoke ada@example.com 7", "has no role there any more"),
            ("scrapy platform users disable ada@example.com", "is logged out at once, and cannot log in again"),
        ),
    ),
)
