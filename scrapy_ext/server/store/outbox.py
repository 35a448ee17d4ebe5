"""Outbox: rows that are sent to their receivers, each until it is accepted or given up.

Events for webhooks and messages of alerts are such rows. Each kind has two tables, which an :class:`Outbox` names;
the columns of the receivers are the fields of their records.

Rules:

- A row is claimed by advancing its ``due`` time, so that one of several servers sends it. Without a result within the
  time of a claim it is sent again: at least once, with the same number.
- A row is pending while it has a ``due`` time. Its result is stored once: that of a server that was too slow changes
  nothing.
- After a failure it is sent again, each time after twice the wait, until it is :data:`GIVE_UP` old. A test is sent
  once, since a user waits for its result.
- A row that was given up can be sent again, with the same number. One that is :data:`GIVE_UP` old is given up again
  after one failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.fields import Kind, fields_of
from scrapy_ext.api.violations import refused
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Operation, Row, Transaction
from scrapy_ext.server.store.projects import advance, hold

_SECOND: Final = 1000
_HOUR: Final = 3600 * _SECOND
#: Wait (ms) between a failure and the next attempt: the first, which doubles, and the longest.
FIRST_WAIT: Final = 10 * _SECOND
LONGEST_WAIT: Final = _HOUR
#: Age (ms) at which a row is given up.
GIVE_UP: Final = 24 * _HOUR
#: Number of accepted and of given up rows of a receiver that are kept.
KEPT: Final = 100
#: Rows of a receiver that are listed, unless fewer are wanted.
MAX_LISTED: Final = 1000
_LONGEST_OUTCOME: Final = 500
_PENDING: Final = "pending"
_GIVEN_UP: Final = "given up"

_WAITING: Final = """
    SELECT project, {receiver} FROM {rows} WHERE due <= $1 OR due > $2
    GROUP BY project, {receiver} ORDER BY min(due), project, {receiver}"""
_CLAIM: Final = """
    UPDATE {rows} SET due = $4, attempts = attempts + 1
    WHERE project = $1 AND {receiver} = $2 AND number = (
        SELECT number FROM {rows} WHERE project = $1 AND {receiver} = $2 AND (due <= $3 OR due > $5)
        ORDER BY due, number LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING number, {kind}, created, attempts, {content}"""
_ADDRESS: Final = "SELECT {address} FROM {receivers} WHERE project = $1 AND number = $2"
_SETTLE: Final = """
    UPDATE {rows} SET due = $4, state = $5, outcome = $6
    WHERE project = $1 AND {receiver} = $2 AND number = $3 AND due IS NOT NULL"""
_PRUNE: Final = """
    DELETE FROM {rows} WHERE project = $1 AND {receiver} = $2 AND state = $3 AND due IS NULL
    AND number <= (
        SELECT number FROM {rows} WHERE project = $1 AND {receiver} = $2 AND state = $3 AND due IS NULL
        ORDER BY number DESC LIMIT 1 OFFSET $4
    )"""
_COUNT: Final = """
    SELECT count(*) FROM (
        SELECT 1 FROM {rows} WHERE project = $1 AND {receiver} = $2 AND due IS NOT NULL LIMIT $3
    ) AS pending"""
_PUT_FIRST: Final = """
    UPDATE {rows} SET due = 0 WHERE project = $1 AND {receiver} = $2 AND number = $3 RETURNING {shown}"""
_RESEND: Final = """
    UPDATE {rows} SET due = 0, state = $4
    WHERE project = $1 AND {receiver} = $2 AND number = $3 AND state = $5 AND due IS NULL RETURNING {shown}"""
_LIST: Final = """
    SELECT {shown} FROM {rows} WHERE project = $1 AND {receiver} = $2 ORDER BY number DESC LIMIT $3"""
_REMOVE: Final = "DELETE FROM {rows} WHERE project = $1 AND {receiver} = $2"
_REMOVE_PENDING: Final = f"{_REMOVE} AND due IS NOT NULL"
_ADD_RECEIVER: Final = "INSERT INTO {receivers} ({given}) VALUES ({places}) RETURNING number, {columns}"
_RECEIVERS: Final = "SELECT number, {columns} FROM {receivers} WHERE project = $1 ORDER BY number"
_RECEIVER: Final = "SELECT number, {columns} FROM {receivers} WHERE project = $1 AND number = $2"
_DISABLE: Final = "UPDATE {receivers} SET disabled = $3, {healthy} WHERE project = $1 AND number = $2"
_REMOVE_RECEIVER: Final = "DELETE FROM {receivers} WHERE project = $1 AND number = $2"
#: Kinds of fields that are stored as JSON.
_AS_JSON: Final = (Kind.TEXTS, Kind.PAIRS, Kind.JSON)


class Claimed(msgspec.Struct, frozen=True):
    """A row to be sent: project, number of the receiver, its own number, event or kind, time (ms), and attempts."""

    project: int
    receiver: int
    number: int
    kind: str
    created: int
    attempts: int


ClaimedT = TypeVar("ClaimedT", bound=Claimed)
ShownT = TypeVar("ShownT")
ReceiverT = TypeVar("ReceiverT", bound=msgspec.Struct)


class Tables(NamedTuple):
    """Tables and columns of an outbox."""

    rows: str
    receivers: str
    #: Column with the number of the receiver, and that with the event or kind.
    receiver: str
    kind: str
    #: Columns of a row, and of its receiver, that follow those of :class:`Claimed`.
    content: str
    address: str
    #: Columns that lists show.
    shown: str
    #: Assignments to columns of a receiver that forget its failures.
    healthy: str


class Refused(NamedTuple):
    """Result of an attempt that failed."""

    is_given_up: bool
    is_test: bool


class Outbox(Generic[ClaimedT, ShownT]):
    """Rows of one kind.

    :param show: makes the record of a list from project, number of the receiver and the columns ``shown``
    :param sent: state of an accepted row
    :param test: kind of a row that is sent once
    :param claim: time (ms) to send a row
    """

    def __init__(
        self,
        tables: Tables,
        claimed: type[ClaimedT],
        show: Callable[[int, int, Row], ShownT],
        *,
        sent: str,
        test: str,
        claim: int,
    ) -> None:
        self._names = tables._asdict()
        self._claimed = claimed
        self._show = show
        self._sent = sent
        self._test = test
        self._claim = claim
        #: Longest time (ms) until a row is due, unless the clock was set back.
        self._latest = LONGEST_WAIT + claim

    def sql(self, query: str, **more: str) -> str:
        """Return a query with the names of tables and columns."""
        return query.format(**self._names, **more)

    async def waiting(self, tx: Transaction, now: int) -> list[tuple[int, int]]:
        """Return project and number of the receivers with due rows."""
        rows = await tx.fetch(self.sql(_WAITING), now, now + self._latest)
        return [(project, receiver) for project, receiver in rows]

    async def claim(self, tx: Transaction, project: int, receiver: int, now: int) -> ClaimedT | None:
        """Claim the row that has been due longest."""
        row = await tx.fetchrow(self.sql(_CLAIM), project, receiver, now, now + self._claim, now + self._latest)
        address = await tx.fetchrow(self.sql(_ADDRESS), project, receiver)
        return self._claimed(project, receiver, *row, *address) if row and address else None

    async def accepted(self, tx: Transaction, claimed: ClaimedT, outcome: str) -> bool:
        """Record that a row was accepted; return false when it has a result already."""
        return await self._settle(tx, claimed, None, self._sent, outcome)

    async def refused(self, tx: Transaction, claimed: ClaimedT, outcome: str, now: int) -> Refused | None:
        """Record that a row was not accepted: it is sent again later, or given up. None: it has a result already."""
        wait = min(FIRST_WAIT * 2 ** min(claimed.attempts - 1, 30), LONGEST_WAIT)
        is_test = claimed.kind == self._test
        is_given_up = is_test or now + wait - claimed.created > GIVE_UP
        due, state = (None, _GIVEN_UP) if is_given_up else (now + wait, _PENDING)
        is_new = await self._settle(tx, claimed, due, state, outcome)
        return Refused(is_given_up, is_test) if is_new else None

    async def _settle(self, tx: Transaction, claimed: ClaimedT, due: int | None, state: str, outcome: str) -> bool:
        """Store the result of an attempt, and remove old rows; return false when the row has a result already."""
        receiver = (claimed.project, claimed.receiver)
        found = await tx.execute(self.sql(_SETTLE), *receiver, claimed.number, due, state, outcome[:_LONGEST_OUTCOME])
        if due is None:
            await tx.execute(self.sql(_PRUNE), *receiver, state, KEPT)
        return found > 0

    async def room(self, tx: Transaction, project: int, receiver: int, most: int) -> int:
        """Return the number of rows that may be added until ``most`` are pending."""
        row = await tx.fetchrow(self.sql(_COUNT), project, receiver, most)
        return most - (row[0] if row else 0)

    async def put_first(self, tx: Transaction, project: int, receiver: int, number: int) -> ShownT | None:
        """Have a row sent before all others, since a user waits for it."""
        row = await tx.fetchrow(self.sql(_PUT_FIRST), project, receiver, number)
        return self._show(project, receiver, row) if row else None

    async def resend(self, tx: Transaction, project: int, receiver: int, number: int) -> ShownT | None:
        """Have a row that was given up sent again, before all others; None if there is no such row."""
        row = await tx.fetchrow(self.sql(_RESEND), project, receiver, number, _PENDING, _GIVEN_UP)
        return self._show(project, receiver, row) if row else None

    async def listed(self, tx: Transaction, project: int, receiver: int, count: int) -> list[ShownT]:
        """Return past and pending rows of a receiver, newest first."""
        rows = await tx.fetch(self.sql(_LIST), project, receiver, count)
        return [self._show(project, receiver, row) for row in rows]

    async def remove_pending(self, tx: Transaction, project: int, receiver: int) -> None:
        await tx.execute(self.sql(_REMOVE_PENDING), project, receiver)

    async def remove(self, tx: Transaction, project: int, receiver: int) -> None:
        """Remove all rows of a receiver."""
        await tx.execute(self.sql(_REMOVE), project, receiver)


class Receivers(Generic[ReceiverT]):
    """Receivers of an outbox, by project and number.

    :param new: record of a receiver as it is added, whose fields are columns
    :param stored: record of a receiver, whose fields are columns, too, but for ``hidden``
    :param shown: makes the record that lists show
    :param noun: receivers in messages; there are at most ``most`` in a project
    :param counter: counter of their numbers
    :param lock: counter that every change locks first; none: there is none
    """

    def __init__(
        self,
        outbox: Outbox[Any, Any],
        new: type[msgspec.Struct],
        stored: type[ReceiverT],
        *,
        noun: str,
        most: int,
        counter: str,
        lock: str = "",
        hidden: str = "",
        shown: Callable[[ReceiverT], ReceiverT] = lambda receiver: receiver,
    ) -> None:
        self._outbox = outbox
        self._fields = fields_of(new)
        self._stored = stored
        self._columns = [each for each in stored.__struct_fields__ if each not in ("id", "project", hidden)]
        self._listed = ", ".join(self._columns)
        self._noun = noun
        self._most = most
        self._counter = counter
        self._lock = lock
        self._shown = shown

    async def add(self, tx: Transaction, /, now: int, project: int, new: msgspec.Struct, **hidden: str) -> ReceiverT:
        """Store a receiver; raise :class:`ContractError` when the project has too many."""
        number = await advance(tx, project, self._counter)
        if len(await self.listed(tx, project)) >= self._most:
            raise refused("project", f"has {self._most} {self._noun}, which is the limit", "Remove one of them.")
        given = {each: self._encoded(each, getattr(new, each)) for each in self._fields}
        values = {"project": project, "number": number, "created": now, **given, **hidden}
        places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
        query = self._outbox.sql(_ADD_RECEIVER, given=", ".join(values), places=places, columns=self._listed)
        (row,) = await tx.insert_many(query, [tuple(values.values())])
        return self._record(project, *row)

    async def listed(self, tx: Transaction, project: int) -> list[ReceiverT]:
        """Return the receivers of a project, oldest first."""
        rows = await tx.fetch(self._outbox.sql(_RECEIVERS, columns=self._listed), project)
        return [self._record(project, *row) for row in rows]

    async def get(self, tx: Transaction, project: int, number: int) -> ReceiverT | None:
        row = await tx.fetchrow(self._outbox.sql(_RECEIVER, columns=self._listed), project, number)
        return self._record(project, *row) if row else None

    async def remove(self, tx: Transaction, project: int, number: int) -> bool:
        """Delete a receiver and its rows; return whether there was one."""
        await self._hold(tx, project)
        found = await tx.execute(self._outbox.sql(_REMOVE_RECEIVER), project, number)
        await self._outbox.remove(tx, project, number)
        return found > 0

    async def disable(self, tx: Transaction, project: int, number: int, disabled: bool) -> ReceiverT | None:
        """Disable a receiver and delete its pending rows, or enable it again."""
        await self._hold(tx, project)
        await tx.execute(self._outbox.sql(_DISABLE), project, number, int(disabled))
        if disabled:
            await self._outbox.remove_pending(tx, project, number)
        return await self.get(tx, project, number)

    async def _hold(self, tx: Transaction, project: int) -> None:
        if self._lock:
            await hold(tx, project, self._lock)

    def _encoded(self, field: str, value: Any) -> Any:
        kind = self._fields[field].kind
        if kind in _AS_JSON:
            return msgspec.json.encode(value).decode()
        return int(value) if kind is Kind.FLAG else value

    def _record(self, project: int, number: int, *row: object) -> ReceiverT:
        values: dict[str, Any] = dict(zip(self._columns, row, strict=True))
        for name, field in self._fields.items():
            if field.kind in _AS_JSON:
                values[name] = msgspec.json.decode(values[name])
            elif field.kind is Kind.FLAG:
                values[name] = bool(values[name])
        values["disabled"] = bool(values["disabled"])
        return self._shown(self._stored(id=number, project=project, **values))


class OutboxStore(EngineStore, Generic[ClaimedT, ShownT, ReceiverT]):
    """Base of the stores of receivers.

    ``accepted`` stores the outcome of a row that was accepted; ``refused``, with the time before it, that of an attempt
    that failed.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], int],
        outbox: Outbox[ClaimedT, ShownT],
        receivers: Receivers[ReceiverT],
        *,
        accepted: Operation[[ClaimedT, str], None],
        refused: Operation[[int, ClaimedT, str], None],
    ) -> None:
        super().__init__(engine, clock)
        self._outbox = outbox
        self._receivers = receivers
        self._accepted = accepted
        self._refused = refused
        #: Set when a row may be due.
        self.changed = asyncio.Event()
        #: Rows that this process has sent, and attempts that failed.
        self.sent_count = 0
        self.failures = 0

    async def add(self, project: int, new: msgspec.Struct, **hidden: str) -> ReceiverT:
        """Store a receiver; raise :class:`ContractError` when the project has too many."""
        return await self._engine.write(self._receivers.add, self._clock(), project, new, **hidden)

    async def listed(self, project: int) -> list[ReceiverT]:
        """Return the receivers of a project, oldest first."""
        return await self._engine.read(self._receivers.listed, project)

    async def get(self, project: int, number: int) -> ReceiverT | None:
        """Return a receiver; None if there is none."""
        return await self._engine.read(self._receivers.get, project, number)

    async def remove(self, project: int, number: int) -> bool:
        """Delete a receiver and its rows; return whether there was one."""
        return await self._engine.write(self._receivers.remove, project, number)

    async def disable(self, project: int, number: int, disabled: bool) -> ReceiverT | None:
        """Disable a receiver and delete its pending rows, or enable it again."""
        return await self._engine.write(self._receivers.disable, project, number, disabled)

    async def rows(self, project: int, number: int, count: int = MAX_LISTED) -> list[ShownT]:
        """Return past and pending rows of a receiver, newest first."""
        return await self._engine.read(self._outbox.listed, project, number, count)

    async def resend(self, project: int, number: int, row: int) -> ShownT | None:
        """Have a row of a receiver that was given up sent again; None if there is no such row."""
        sent = await self._engine.write(self._outbox.resend, project, number, row)
        self.changed.set()
        return sent

    async def waiting(self) -> list[tuple[int, int]]:
        """Return project and number of the receivers with due rows."""
        return await self._engine.read(self._outbox.waiting, self._clock())

    async def claim(self, project: int, number: int) -> ClaimedT | None:
        """Claim the row of a receiver that has been due longest."""
        return await self._engine.write(self._outbox.claim, project, number, self._clock())

    async def accepted(self, claimed: ClaimedT, outcome: str) -> None:
        """Record that a row was accepted."""
        await self._engine.write(self._accepted, claimed, outcome)
        self.sent_count += 1

    async def refused(self, claimed: ClaimedT, outcome: str) -> None:
        """Record that a row was not accepted: it is sent again later, or given up."""
        await self._engine.write(self._refused, self._clock(), claimed, outcome)
        self.failures += 1
