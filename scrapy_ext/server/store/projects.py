"""Names and settings of projects, the size of their data, and their counters of unique numbers.

Counters are rows, not sequences, so that they have no gaps and move with their project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Method, Transaction, only_row

#: Jobs above which the size of a project's records is kept for some milliseconds: to sum it takes half a second for
#: a million jobs.
LARGE: Final = 50_000
KEPT: Final = 30_000
#: New projects get the number after the highest of those up to this one. Nothing follows the highest possible number.
_HIGHEST: Final = 10**15
#: Maximum bytes of all settings of a project, as JSON.
MAX_SETTINGS_BYTES: Final = 1024 * 1024


class Holding(NamedTuple):
    """Number of a project's records of one kind, and their bytes as JSON."""

    records: int
    bytes: int


async def _is_large(tx: Transaction, project: int) -> bool:
    row = await tx.fetchrow("SELECT CAST(sum(jobs) AS BIGINT) FROM job_counts WHERE project = $1", project)
    return row is not None and (row[0] or 0) > LARGE


async def _holdings(tx: Transaction, project: int) -> dict[str, Holding]:
    """Return the size of a project's readable records, by kind."""
    rows = await tx.fetch(
        """SELECT kind, CAST(sum(records) AS BIGINT), CAST(sum(bytes) AS BIGINT) FROM record_totals
           WHERE project = $1 AND removed IS NULL GROUP BY kind ORDER BY kind""",
        project,
    )
    return {kind: Holding(records, size) for kind, records, size in rows}


async def settings(tx: Transaction, project: int) -> dict[str, bytes]:
    return dict(await tx.fetch("SELECT name, value FROM project_settings WHERE project = $1 ORDER BY name", project))


async def setting(tx: Transaction, project: int, name: str) -> bytes | None:
    """Return one setting; None when it is not set."""
    row = await tx.fetchrow("SELECT value FROM project_settings WHERE project = $1 AND name = $2", project, name)
    return row[0] if row else None


async def merge(tx: Transaction, project: int, values: Mapping[str, bytes]) -> None:
    """Set settings and keep the others. Raises :class:`ContractError` when they are too large together."""
    await tx.execute_many(
        """INSERT INTO project_settings (project, name, value) VALUES ($1, $2, $3)
           ON CONFLICT (project, name) DO UPDATE SET value = excluded.value""",
        [(project, name, value) for name, value in sorted(values.items())],
    )
    size = sum(len(name) + len(value) for name, value in (await settings(tx, project)).items())
    if size > MAX_SETTINGS_BYTES:
        raise ContractError(
            [
                Violation(
                    "settings",
                    f"of a project must be at most {MAX_SETTINGS_BYTES} bytes of JSON, got {size}",
                    "Keep large values in a collection.",
                    413,
                )
            ]
        )


async def remove(tx: Transaction, project: int, name: str) -> None:
    """Remove a setting, if it is set."""
    await tx.execute("DELETE FROM project_settings WHERE project = $1 AND name = $2", project, name)


async def names(tx: Transaction) -> dict[int, str]:
    """Return the names of all projects that have one."""
    return dict(await tx.fetch("SELECT project, name FROM project_names ORDER BY project"))


async def number(tx: Transaction, name: str) -> int | None:
    """Return the number of the project with a name; None when there is none."""
    row = await tx.fetchrow("SELECT project FROM project_names WHERE name = $1", name)
    return row[0] if row else None


async def _name(tx: Transaction, project: int, name: str | None) -> None:
    """Name a project; None removes its name. Raises :class:`ContractError` (409) when another one has the name."""
    if name is None:
        await tx.execute("DELETE FROM project_names WHERE project = $1", project)
        return
    await tx.execute("DELETE FROM project_names WHERE project = $1 AND name <> $2", project, name)
    # Of two projects that get a name at once, one waits here for the other, whose row the next query reads.
    await tx.execute("INSERT INTO project_names (project, name) VALUES ($1, $2) ON CONFLICT DO NOTHING", project, name)
    if await number(tx, name) != project:
        # Without its number: the caller may not have access to it.
        raise ContractError([Violation("name", "is the name of another project", "Choose another name.", 409)])


async def claim(tx: Transaction, name: str) -> int:
    """Return the number of the project with a name; without one, give the name to a number that no project has."""
    while (found := await number(tx, name)) is None:
        # Of two names that take a number at once, one waits here for the other, and then takes the next.
        await tx.execute(
            """INSERT INTO project_names (project, name)
               SELECT coalesce(max(highest), 0) + 1, $1 FROM (
                   SELECT max(project) AS highest FROM counters WHERE project BETWEEN 0 AND $2
                   UNION ALL SELECT max(project) FROM project_names WHERE project <= $2
                   UNION ALL SELECT max(project) FROM project_settings WHERE project <= $2
               ) AS known WHERE true ON CONFLICT DO NOTHING""",
            name,
            _HIGHEST,
        )
    return found


class ProjectStore(EngineStore):
    """Names, settings by name with any JSON as value, and the size of projects' data."""

    names = Method("read_inline", names)
    number = Method("read_inline", number)
    name = Method("write", _name)
    claim = Method("write", claim)
    settings = Method("read_inline", settings)
    setting = Method("read_inline", setting)
    merge = Method("write", merge)
    remove = Method("write", remove)

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock)
        #: Sizes of large projects, and until when they are used (ms).
        self._kept: dict[int, tuple[int, dict[str, Holding]]] = {}

    async def holdings(self, project: int) -> dict[str, Holding]:
        """Return the size of a project's readable records, by kind; that of a large one as it was some time ago."""
        if not await self._engine.read_inline(_is_large, project):
            return await self._engine.read(_holdings, project)
        until, found = self._kept.get(project, (0, {}))
        if self._clock() >= until:
            found = await self._engine.read(_holdings, project)
            self._kept[project] = (self._clock() + KEPT, found)
        return found


async def advance(tx: Transaction, project: int, name: str, by: int = 1) -> int:
    """Take the next ``by`` numbers of a counter; return the last of them. The first number is 1."""
    row = await only_row(
        tx,
        """INSERT INTO counters (project, name, value) VALUES ($1, $2, $3)
           ON CONFLICT (project, name) DO UPDATE SET value = counters.value + excluded.value RETURNING value""",
        project,
        name,
        by,
    )
    value: int = row[0]
    return value


async def hold(tx: Transaction, project: int, name: str) -> None:
    """Lock a counter until the transaction ends. Creators of named, numbered rows check the name again under this
    lock."""
    await advance(tx, project, name, 0)
