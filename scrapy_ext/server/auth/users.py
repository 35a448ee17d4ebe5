"""Rights of the users of the pages: roles that were given to them, and those of their groups at the provider.

They are computed for each request from the user's row, so that a change has effect at once. The operator's rules are
options of the server: people who may log in, and roles of groups as of a person's last login.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scrapy_ext.api.platform.users import EVERYBODY, GroupRole, Role, User, UserRole, is_allowed, parse_group_role
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.metrics import counter
from scrapy_ext.server.store.users import Account, StoredUser
from scrapy_ext.telemetry.families import Family


class LoginCounts:
    """The numbers of logins to the pages, by way and outcome."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, way: str, outcome: str) -> None:
        self._counts[way, outcome] += 1

    def metrics(self) -> Iterator[Family]:
        samples = [({"by": way, "outcome": outcome}, number) for (way, outcome), number in self._counts.items()]
        yield from counter("logins_total", "Logins to the pages, by key or OpenID Connect.", samples)


class UserRules(NamedTuple):
    """The operator's rules. ``issuer`` is None when nobody logs in by OpenID Connect."""

    issuer: str | None = None
    allowed: tuple[str, ...] = ()
    group_roles: tuple[GroupRole, ...] = ()

    @classmethod
    def of(cls, issuer: str | None, allowed: Iterable[str], roles: Iterable[str]) -> UserRules:
        """Return the rules of texts that the configuration has checked."""
        return cls(issuer, tuple(allowed), tuple(map(parse_group_role, roles)))

    def may_log_in(self, account: Account) -> bool:
        return account.issuer == self.issuer and is_allowed(self.allowed, account.email, account.groups)

    def grant(self, user: StoredUser) -> Grant | None:
        """Return the rights of a user; None for one without access. A user without a role has access to no project."""
        if user.disabled or not self.may_log_in(user.account):
            return None
        everywhere: Role | None = None
        roles: dict[int, Role] = {}
        for project, role in self._roles(user):
            if project is None:
                everywhere = role if everywhere is None or role > everywhere else everywhere
            elif project not in roles or role > roles[project]:
                roles[project] = role
        projects = frozenset(roles) if everywhere is None else None
        return Grant(user.handle, projects, everywhere or Role.VIEW, roles=roles, user=user.number)

    def _roles(self, user: StoredUser) -> Iterator[tuple[int | None, Role]]:
        yield from ((given.project, given.role) for given in user.roles)
        yield from ((each.project, each.role) for each in self._of_groups(user))

    def _of_groups(self, user: StoredUser) -> Iterator[GroupRole]:
        groups = {EVERYBODY, *user.account.groups}
        return (each for each in self.group_roles if each.group in groups)

    def shown(self, user: StoredUser) -> User:
        """Return the record of a user."""
        given = [UserRole(each.project, each.role.value, each.by, each.given) for each in user.roles]
        of_groups = [
            UserRole(each.project, each.role.value, f"group {each.group}")
            for each in (self._of_groups(user) if user.account.issuer == self.issuer else ())
        ]
        account = user.account
        return User(
            user.number,
            user.handle,
            account.name,
            account.email or None,
            account.issuer,
            account.subject,
            list(account.groups),
            given + of_groups,
            user.disabled,
            user.created,
            user.seen,
        )
