"""Users of the pages and their roles in the database, and logins under way that were used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.users import (
    MAX_ROLES,
    MAX_USERS,
    USER_CHANGED,
    USER_CREATED,
    USER_REMOVED,
    Role,
    UserChange,
)
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.activity import SERVER, add_events
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Row, Transaction
from scrapy_ext.server.store.projects import advance

_EVERYWHERE: Final = -1
_COLUMNS: Final = "number, issuer, subject, name, email, member_of, disabled, epoch, created, seen"
#: Prefix of the names of used logins among the secrets.
_USED: Final = "used login "
_groups: Final = msgspec.json.Decoder(tuple[str, ...]).decode


class Account(NamedTuple):
    """The claims of a provider about a person. ``email`` is "" unless the provider has verified it."""

    issuer: str
    subject: str
    name: str
    email: str
    groups: tuple[str, ...]


class GivenRole(NamedTuple):
    """A role that somebody gave to a user at a time (ms); ``project`` None for all projects."""

    project: int | None
    role: Role
    by: str
    given: int


class StoredUser(NamedTuple):
    """A user; times in milliseconds."""

    number: int
    account: Account
    disabled: bool
    epoch: int
    created: int
    seen: int
    roles: tuple[GivenRole, ...] = ()

    def has(self, text: str) -> bool:
        """Return true when name, e-mail address or subject contain a text, in any case."""
        account = self.account
        return text.lower() in "\n".join((self.handle, account.name, account.email, account.subject)).lower()

    @property
    def handle(self) -> str:
        """The name in the activity, which no key and no other user can have: names of keys have no ``@`` and no space,
        and a name that a user can choose is followed by the user's number."""
        return self.account.email or f"{self.account.name or self.account.subject} (user {self.number})"


def _stored(row: Row) -> StoredUser:
    number, issuer, subject, name, email, member_of, disabled, epoch, created, seen = row
    account = Account(issuer, subject, name, email, _groups(member_of))
    return StoredUser(number, account, bool(disabled), epoch, created, seen)


def _given(project: int, role: str, by: str, given: int) -> GivenRole:
    return GivenRole(None if project == _EVERYWHERE else project, Role(role), by, given)


async def get(tx: Transaction, number: int) -> StoredUser | None:
    row = await tx.fetchrow(f"SELECT {_COLUMNS} FROM users WHERE number = $1", number)
    if row is None:
        return None
    roles = await tx.fetch(
        "SELECT project, role, given_by, given FROM user_roles WHERE number = $1 ORDER BY project", number
    )
    return _stored(row)._replace(roles=tuple(_given(*each) for each in roles))


async def listed(tx: Transaction) -> list[StoredUser]:
    rows = await tx.fetch(f"SELECT {_COLUMNS} FROM users ORDER BY number")
    roles: dict[int, list[GivenRole]] = {}
    for number, *given in await tx.fetch(
        "SELECT number, project, role, given_by, given FROM user_roles ORDER BY number, project"
    ):
        roles.setdefault(number, []).append(_given(*given))
    return [_stored(row)._replace(roles=tuple(roles.get(row[0], ()))) for row in rows]


async def _log_in(tx: Transaction, account: Account, now: int) -> StoredUser:
    place = (account.issuer, account.subject)
    row = await tx.fetchrow("SELECT number FROM users WHERE issuer = $1 AND subject = $2 FOR UPDATE", *place)
    if row is None:
        # The counter locks additions until the commit.
        number = await advance(tx, _EVERYWHERE, "users")
        row = await tx.fetchrow("SELECT number FROM users WHERE issuer = $1 AND subject = $2 FOR UPDATE", *place)
    if row is None:
        await _check_room(tx)
        await tx.execute(
            f"INSERT INTO users ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7, $7)",
            number,
            *_columns_of(account),
            now,
        )
    else:
        number = row[0]
        await tx.execute(
            "UPDATE users SET issuer = $2, subject = $3, name = $4, email = $5, member_of = $6, seen = $7 "
            "WHERE number = $1",
            number,
            *_columns_of(account),
            now,
        )
    user = await get(tx, number)
    assert user is not None  # noqa: S101 - written above
    if row is None:
        await add_events(tx, SERVER, [_event(USER_CREATED, user.handle, user, {})], now)
    return user


async def _check_room(tx: Transaction) -> None:
    counted = await tx.fetchrow("SELECT count(*) FROM users")
    if counted is not None and counted[0] >= MAX_USERS:
        rule = f"would be number {MAX_USERS + 1}"
        raise ContractError([Violation("user", rule, "The operator removes users with scrapy platform users remove.")])


def _columns_of(account: Account) -> tuple[str, str, str, str, str]:
    groups = msgspec.json.encode(account.groups).decode()
    return account.issuer, account.subject, account.name, account.email, groups


def _event(event: str, by: str, user: StoredUser, fields: Mapping[str, object]) -> bytes:
    return msgspec.json.encode({"event": event, "user": by, "of": user.handle, "id": user.number, **fields})


async def _change(tx: Transaction, number: int, change: UserChange, by: str, now: int) -> StoredUser | None:
    await tx.fetchrow("SELECT number FROM users WHERE number = $1 FOR UPDATE", number)
    user = await get(tx, number)
    if user is None:
        return None
    if change.disabled is not None and change.disabled != user.disabled:
        # A new epoch ends the sessions: a user who is enabled again logs in again.
        await tx.execute(
            "UPDATE users SET disabled = $2, epoch = epoch + 1 WHERE number = $1", number, int(change.disabled)
        )
        await add_events(tx, SERVER, [_event(USER_CHANGED, by, user, {"disabled": change.disabled})], now)
    # Server first, then the projects in their order, so that no two changes deadlock at the activity's counters.
    for project, role in sorted(change.roles.items(), key=lambda pair: -1 if pair[0] is None else pair[0]):
        await _set_role(tx, user, (project, role), by, now)
    changed = await get(tx, number)
    if changed is not None and len(changed.roles) > MAX_ROLES:
        remedy = "Give a role in all projects, or remove some."
        raise ContractError([Violation("roles", f"must be in {MAX_ROLES} projects at most", remedy)])
    return changed


async def _set_role(
    tx: Transaction, user: StoredUser, given: tuple[int | None, Role | None], by: str, now: int
) -> None:
    project, role = given
    before = next((each.role for each in user.roles if each.project == project), None)
    if before is role:
        return
    place = (user.number, _EVERYWHERE if project is None else project)
    if role is None:
        await tx.execute("DELETE FROM user_roles WHERE number = $1 AND project = $2", *place)
    else:
        await tx.execute(
            """INSERT INTO user_roles (number, project, role, given_by, given) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (number, project) DO UPDATE
               SET role = excluded.role, given_by = excluded.given_by, given = excluded.given""",
            *place,
            role.value,
            by,
            now,
        )
    fields = {"role": role and role.value, "before": before and before.value}
    await add_events(tx, SERVER if project is None else project, [_event(USER_CHANGED, by, user, fields)], now)


async def _remove(tx: Transaction, number: int, by: str, now: int) -> bool:
    user = await get(tx, number)
    if user is None:
        return False
    await tx.execute("DELETE FROM user_roles WHERE number = $1", number)
    await tx.execute("DELETE FROM users WHERE number = $1", number)
    await add_events(tx, SERVER, [_event(USER_REMOVED, by, user, {})], now)
    return True


async def _use(tx: Transaction, name: str, now: int, past: int) -> bool:
    await tx.execute("DELETE FROM access_keys WHERE name LIKE $1 AND created < $2", f"{_USED}%", past)
    used = await tx.execute(
        "INSERT INTO access_keys (name, value, created) VALUES ($1, 'used', $2) ON CONFLICT (name) DO NOTHING",
        name,
        now,
    )
    return used == 1


class UserStore(EngineStore):
    """Users by number."""

    get = Method("read_inline", get)
    listed = Method("read", listed)

    async def log_in(self, account: Account) -> StoredUser:
        """Return the user of an account, new or known, with the claims of this login. Raises ``ContractError`` for one
        more than :data:`MAX_USERS`."""
        return await self._engine.write(_log_in, account, self._clock())

    async def change(self, number: int, change: UserChange, by: str) -> StoredUser | None:
        """Change a user's roles or access; return the user, None without one. Raises ``ContractError``."""
        return await self._engine.write(_change, number, change, by, self._clock())

    async def remove(self, number: int, by: str) -> bool:
        """Remove a user, who may log in again as a new one; return False without one."""
        return await self._engine.write(_remove, number, by, self._clock())

    async def use_login(self, login: str, lasts: int) -> bool:
        """Record for ``lasts`` seconds, the maximum of a login, that it was used; return False if it was before."""
        now = self._clock()
        return await self._engine.write(_use, _USED + login, now, now - lasts * 1000)
