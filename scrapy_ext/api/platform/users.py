"""Users of the pages, and roles: the rights of users, and of keys, in projects. Not part of the hosted platform's API.

A user is a person who logs in to the pages by OpenID Connect. :data:`LEAST` is the one table of what each role may do;
routes of the API and pages declare an :class:`Action`, and the caller's role in the project must allow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import is_number
from scrapy_ext.api.violations import ContractError, Violation, refused


class Role(Enum):
    """A role, from the least to the most rights."""

    VIEW = "view"
    RUN = "run"
    MANAGE = "manage"

    def __ge__(self, other: Role) -> bool:
        return _ORDER.index(self) >= _ORDER.index(other)

    def __gt__(self, other: Role) -> bool:
        return self is not other and self >= other


_ORDER: Final = tuple(Role)


class Action(Enum):
    """An action in a project, in words for the reference."""

    READ = (
        "see and download jobs, items, requests, logs, snapshots, collections, frontiers, schedules, monitors and "
        "activity"
    )
    RUN = "run spiders, stop jobs, run them again"
    TAG = "tag jobs, comment on items"
    EXTRACT = "try extraction on the page Extract"
    MANAGE = (
        "everything else: delete jobs; create, change and remove schedules, collections, frontiers, monitors, targets "
        "of alerts, rules, names and settings; push requests into frontiers"
    )


#: The least role for each action.
LEAST: Final[Mapping[Action, Role]] = {
    Action.READ: Role.VIEW,
    Action.RUN: Role.RUN,
    Action.TAG: Role.RUN,
    Action.EXTRACT: Role.RUN,
    Action.MANAGE: Role.MANAGE,
}

#: The name of all projects in the place of a number.
ALL_PROJECTS: Final = "all"
#: Maximum characters of a name and of an e-mail address; longer ones are cut.
MAX_TEXT: Final = 200
#: Maximum users of a database, and single projects in which a user has a role.
MAX_USERS: Final = 10_000
MAX_ROLES: Final = 1000

#: Events of the activity about users, of the server or of the project with the role.
USER_CREATED: Final = "user:created"
USER_CHANGED: Final = "user:changed"
USER_REMOVED: Final = "user:removed"


# ── rules of the operator: people who may log in, and roles of groups ──

#: The group of everybody who may log in.
EVERYBODY: Final = "*"
_GROUP: Final = "group:"


class GroupRole(NamedTuple):
    """A role in a project, None for all, of everybody in a group at the provider."""

    group: str
    project: int | None
    role: Role


def parse_group_role(text: str) -> GroupRole:
    """Return the role of a group, ``GROUP=PROJECT:ROLE``; raises ``ContractError``."""
    group, equals, given = text.rpartition("=")
    project, colon, role = given.partition(":")
    if not (group and equals and colon):
        raise refused("oidc-role", f"must be GROUP=PROJECT:ROLE, got {text[:80]!r}", "Write one such as ops=all:run.")
    return GroupRole(group, parse_project(project, "oidc-role"), parse_role(role, "oidc-role"))


def parse_allowed(text: str) -> str:
    """Return a rule of people who may log in: ``@DOMAIN``, an e-mail address, or ``group:NAME``; raises
    ``ContractError``."""
    if text.startswith(_GROUP) and len(text) > len(_GROUP):
        return text
    name, at, domain = text.rpartition("@")
    if not (at and domain) or "@" in name or any(mark.isspace() for mark in text):
        rule = f"must be @DOMAIN, an e-mail address or group:NAME, got {text[:80]!r}"
        raise refused("oidc-allowed", rule, "Write one such as @example.com.")
    return text.lower()


def is_allowed(rules: Sequence[str], email: str, groups: Sequence[str]) -> bool:
    """Return true when a person may log in: without rules, everybody whom the provider lets in.

    ``email`` is in lower case, and "" unless the provider has verified it.
    """
    domain = email[email.rfind("@") :]
    known = {*([email, domain] if email else []), *(f"{_GROUP}{group}" for group in groups)}
    return not rules or any(rule in known for rule in rules)


class UserRole(msgspec.Struct, omit_defaults=True):
    """A role of a user in a project, null for all projects.

    ``by`` is the user or key that gave it, or ``group NAME`` for a role of a group at the provider. ``since``: when it
    was given (ms).
    """

    project: int | None
    role: str
    by: str
    since: int | None = None


class User(msgspec.Struct):
    """A user; ``user`` is the name in the activity. Times in milliseconds.

    ``email`` is null unless the provider has verified it. ``groups`` are those of the last login.
    """

    id: int
    user: str
    name: str
    email: str | None
    issuer: str
    subject: str
    groups: list[str]
    roles: list[UserRole]
    disabled: bool
    created: int
    last_login: int


class UserChange(msgspec.Struct):
    """A change of a user: ``disabled`` None leaves that as it is; in ``roles`` None removes the role in a project."""

    disabled: bool | None
    roles: dict[int | None, Role | None]


def parse_role(text: object, field: str = "role") -> Role:
    """Return a role; raises ``ContractError``."""
    try:
        return Role(text)
    except ValueError:
        choices = ", ".join(role.value for role in Role)
        raise refused(field, f"must be one of {choices}, got {str(text)[:60]!r}", "Use one of these.") from None


def parse_project(text: str, field: str = "project") -> int | None:
    """Return the number of a project, None for ``all``; raises ``ContractError``."""
    if text == ALL_PROJECTS:
        return None
    if not is_number(text):
        raise refused(field, f"must be a number or {ALL_PROJECTS}, got {text[:60]!r}", "Name a project by its number.")
    return int(text)


def parse_change(fields: Mapping[str, Any]) -> UserChange:
    """Return the change of a body; raises ``ContractError``."""
    for name in fields:
        if name not in ("disabled", "roles"):
            raise refused(name[:60], "is not a field of this request", "The fields are disabled and roles.")
    disabled, roles = fields.get("disabled"), fields.get("roles", {})
    if disabled is not None and not isinstance(disabled, bool):
        raise refused("disabled", "must be true or false", 'Write {"disabled": true}.')
    if not isinstance(roles, dict) or len(roles) > MAX_ROLES:
        rule = f"must be an object of at most {MAX_ROLES} projects"
        raise refused("roles", rule, 'Write {"roles": {"7": "run", "all": "view"}}, and null to remove a role.')
    if disabled is None and not roles:
        raise ContractError([Violation("body", "changes nothing", "Send disabled or roles.")])
    return UserChange(
        disabled,
        {
            parse_project(project, "roles"): None if role is None else parse_role(role, f"roles.{project[:60]}")
            for project, role in roles.items()
        },
    )
