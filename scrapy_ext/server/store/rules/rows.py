"""Rows of rules, those of one purpose at a time.

A transaction that applies a rule locks its row, so that a rule that was disabled or removed is not applied afterwards.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec

from scrapy_ext.api.platform.rules import MAX_RULES, RuleRecord
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.counters import advance
from scrapy_ext.server.store.engine.interface import Row, Transaction

#: A rule as it is added, and as it is stored.
NewT = TypeVar("NewT")
RuleT = TypeVar("RuleT", bound=RuleRecord)

#: The project of rules of the server.
_SERVER: Final = -1
_COLUMNS: Final = "project, number, definition, enabled, created, changed, failure"
_ONE: Final = "project = $1 AND purpose = $2 AND number = $3"
_LONGEST_FAILURE: Final = 500


class RuleRows(Generic[NewT, RuleT]):
    """Rows of the rules of a purpose. ``project`` None: rules of the server."""

    def __init__(self, purpose: str, rule: type[RuleT]) -> None:
        self._purpose = purpose
        self._rule = rule

    async def add(self, tx: Transaction, now: int, project: int | None, new: NewT) -> RuleT:
        """Store a rule; raise :class:`ContractError` when there are too many."""
        place = _place(project)
        # The counter also locks the number of rules.
        number = await advance(tx, place, f"{self._purpose} rule")
        if len(await self.listed(tx, project)) >= MAX_RULES:
            violation = Violation("rules", f"are {MAX_RULES} already, which is the limit", "Remove one of them.")
            raise ContractError([violation])
        definition: dict[str, Any] = msgspec.to_builtins(new)
        enabled = definition.pop("enabled")
        row = (place, number, msgspec.json.encode(definition), int(enabled), now, now, None)
        await tx.execute(
            f"INSERT INTO rules (purpose, {_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",  # noqa: S608 - fixed text
            self._purpose,
            *row,
        )
        return self._of(row)

    def unstored(self, project: int | None, new: NewT) -> RuleT:
        """Return a rule for a preview before it is added."""
        return msgspec.convert(
            {**msgspec.to_builtins(new), "id": 0, "project": project, "created": 0, "changed": 0}, self._rule
        )

    async def listed(self, tx: Transaction, project: int | None) -> list[RuleT]:
        """Return the rules of a project, or of the server, oldest first."""
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM rules WHERE project = $1 AND purpose = $2 ORDER BY number",  # noqa: S608 - fixed text
            _place(project),
            self._purpose,
        )
        return [self._of(row) for row in rows]

    async def enabled(self, tx: Transaction) -> list[RuleT]:
        """Return the enabled rules of the server and of all projects."""
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM rules WHERE purpose = $1 AND enabled = 1 ORDER BY project, number",  # noqa: S608
            self._purpose,
        )
        return [self._of(row) for row in rows]

    async def find(self, tx: Transaction, project: int | None, number: int, *, hold: bool = False) -> RuleT | None:
        """Return a rule; ``hold`` locks it against a change."""
        held = " FOR SHARE" if hold else ""
        row = await tx.fetchrow(
            f"SELECT {_COLUMNS} FROM rules WHERE {_ONE}{held}",  # noqa: S608 - fixed text
            _place(project),
            self._purpose,
            number,
        )
        return self._of(row) if row else None

    async def remove(self, tx: Transaction, project: int | None, number: int) -> bool:
        """Remove a rule; return whether there was one."""
        return await tx.execute(f"DELETE FROM rules WHERE {_ONE}", _place(project), self._purpose, number) > 0  # noqa: S608

    async def enable(self, tx: Transaction, now: int, project: int | None, number: int, enabled: bool) -> RuleT | None:
        """Enable a rule, or disable it; return it, or None when there is none."""
        await tx.execute(
            f"UPDATE rules SET enabled = $4, changed = $5, failure = NULL WHERE {_ONE}",  # noqa: S608 - fixed text
            _place(project),
            self._purpose,
            number,
            int(enabled),
            now,
        )
        return await self.find(tx, project, number)

    async def note(self, tx: Transaction, project: int | None, number: int, failure: str | None) -> None:
        """Store why a rule is not applied now; None when it is."""
        await tx.execute(
            f"UPDATE rules SET failure = $4 WHERE {_ONE}",  # noqa: S608 - fixed text
            _place(project),
            self._purpose,
            number,
            failure and failure[:_LONGEST_FAILURE],
        )

    def _of(self, row: Row | tuple[Any, ...]) -> RuleT:
        place, number, definition, enabled, created, changed, failure = row
        fields: dict[str, Any] = msgspec.json.decode(definition)
        stored = {"enabled": bool(enabled), "created": created, "changed": changed, "failure": failure}
        project = None if place == _SERVER else place
        # Retention rules have no failures.
        return msgspec.convert({**fields, **stored, "id": number, "project": project}, self._rule)


def _place(project: int | None) -> int:
    return _SERVER if project is None else project
