"""Spiders: their names, numbers and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.server.store.engine.interface import EngineStore, Method, Row, TimedMethod, Transaction
from scrapy_ext.server.store.projects import advance

_COLUMNS: Final = "spider, name, tags, created, modified"
_decode: Final = msgspec.json.Decoder(list[str]).decode


class Spider(NamedTuple):
    """A spider of a project; times in milliseconds, 0 if unknown."""

    number: int
    name: str
    tags: list[str]
    created: int
    modified: int


async def spider_number(tx: Transaction, project: int, name: str, now: int) -> int:
    """Return the number of a spider, assigned if it has none, within a larger transaction."""
    number = await find(tx, project, name)
    if number is not None:
        return number
    number = await advance(tx, project, "spider")
    row = await tx.fetchrow(
        """INSERT INTO spiders (project, name, spider, created, modified) VALUES ($1, $2, $3, $4, $4)
           ON CONFLICT (project, name) DO NOTHING RETURNING spider""",
        project,
        name,
        number,
        now,
    )
    # Another process has added it since the look-up.
    if row is None:
        number = await find(tx, project, name)
    assert number is not None  # noqa: S101 - spiders are never removed
    return number


async def find(tx: Transaction, project: int, name: str) -> int | None:
    """Return the number of a spider; None when there is none of this name."""
    row = await tx.fetchrow("SELECT spider FROM spiders WHERE project = $1 AND name = $2", project, name)
    return row[0] if row else None


async def get(tx: Transaction, project: int, number: int, *, lock: bool = False) -> Spider | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM spiders WHERE project = $1 AND spider = $2" + (" FOR UPDATE" if lock else ""),
        project,
        number,
    )
    return _spider(row) if row else None


def _spider(row: Row) -> Spider:
    number, name, tags, created, modified = row
    return Spider(number, name, _decode(tags), created, modified)


async def listed(tx: Transaction, project: int, after: int = 0, limit: int | None = None) -> list[Spider]:
    """Return the spiders with numbers above ``after``, ordered by number."""
    bound = "" if limit is None else f" LIMIT {limit:d}"
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM spiders WHERE project = $1 AND spider > $2 ORDER BY spider{bound}",
        project,
        after,
    )
    return [_spider(row) for row in rows]


async def named(tx: Transaction, numbers: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Return the names of spiders by project and number; without those that do not exist."""
    by_project: dict[int, list[int]] = {}
    for project, number in numbers:
        by_project.setdefault(project, []).append(number)
    found = {}
    for project, some in by_project.items():
        marks = ", ".join(f"${place}" for place in range(2, len(some) + 2))
        rows = await tx.fetch(
            f"SELECT spider, name FROM spiders WHERE project = $1 AND spider IN ({marks})", project, *some
        )
        found.update({(project, number): name for number, name in rows})
    return found


async def _tag(
    tx: Transaction, now: int, project: int, number: int, *, add: Sequence[str], remove: Sequence[str]
) -> Spider | None:
    """Change the tags of a spider; return it, or None when there is none."""
    spider = await get(tx, project, number, lock=True)
    if spider is None:
        return None
    tags = list(dict.fromkeys([*(tag for tag in spider.tags if tag not in remove), *add]))
    await tx.execute(
        "UPDATE spiders SET tags = $3, modified = $4 WHERE project = $1 AND spider = $2",
        project,
        number,
        msgspec.json.encode(tags).decode(),
        now,
    )
    return spider._replace(tags=tags, modified=now)


class SpiderStore(EngineStore):
    """Spiders named by jobs and schedules."""

    find = Method("read_inline", find)

    async def add(self, project: int, name: str) -> int:
        """Return the number of a spider, assigned if it has none."""
        return await self._engine.write(spider_number, project, name, self._clock())

    get = Method("read_inline", get)
    listed = Method("read", listed)
    named = Method("read", named)
    tag = TimedMethod("write", _tag)
