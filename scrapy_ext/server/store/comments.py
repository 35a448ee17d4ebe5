"""Comments of users on items or on a field of an item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from scrapy_ext.api.platform.keys import EntityKey, JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.counters import advance
from scrapy_ext.server.store.engine.interface import Engine, Row, Transaction

#: Maximum comments of a job: they are read at once.
MAX_COMMENTS: Final = 5000
_COLUMNS: Final = "project, spider, job, item, field, number, created, author, content"


class Place(NamedTuple):
    """The subject of a comment; ``field`` is empty for the whole item."""

    item: EntityKey
    field: str = ""


class Comment(NamedTuple):
    """A comment; ``number`` is unique in the project, ``created`` in milliseconds."""

    place: Place
    number: int
    created: int
    author: str
    content: str


class CommentStore:
    """Comments by project and number."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    async def add(self, place: Place, author: str, content: str) -> Comment:
        """Store a comment; raise :class:`ContractError` when the job has too many."""
        return await self._engine.write(_add, Comment(place, 0, self._clock(), author, content))

    async def get(self, project: int, number: int) -> Comment | None:
        return await self._engine.read(_get, project, number)

    async def of_job(self, job: JobKey) -> list[Comment]:
        """Return the comments on a job's items, by item, field and age."""
        return await self._engine.read(_of_job, job)

    async def at(self, place: Place) -> list[Comment]:
        """Return the comments on an item or a field, oldest first."""
        return await self._engine.read(_at, place)

    async def replace(self, project: int, number: int, content: str) -> Comment | None:
        """Replace the text of a comment; return it, or None when there is none."""
        return await self._engine.write(_replace, project, number, content)

    async def remove(self, project: int, number: int) -> bool:
        """Delete a comment; return whether there was one."""
        return await self._engine.write(_remove, project, number)

    async def clear(self, place: Place) -> int:
        """Delete the comments on an item or a field; return their number."""
        return await self._engine.write(_clear, place)

    async def stats(self, project: int) -> dict[JobKey, int]:
        """Return the number of items with comments, by job."""
        return await self._engine.read(_stats, project)


async def _add(tx: Transaction, comment: Comment) -> Comment:
    project, spider, job, item = comment.place.item
    number = await advance(tx, project, "comment")
    row = await tx.fetchrow(
        "SELECT count(*) FROM comments WHERE project = $1 AND spider = $2 AND job = $3", project, spider, job
    )
    if row is not None and row[0] >= MAX_COMMENTS:
        raise ContractError(
            [Violation("text", f"would be one of over {MAX_COMMENTS} comments on this job", "Delete some of them.")]
        )
    await tx.execute(
        f"INSERT INTO comments ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",  # noqa: S608 - fixed text
        project,
        spider,
        job,
        item,
        comment.place.field,
        number,
        comment.created,
        comment.author,
        comment.content,
    )
    return comment._replace(number=number)


def _comment(row: Row) -> Comment:
    project, spider, job, item, field, number, created, author, content = row
    return Comment(Place(EntityKey(project, spider, job, item), field), number, created, author, content)


async def _get(tx: Transaction, project: int, number: int) -> Comment | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM comments WHERE project = $1 AND number = $2",  # noqa: S608 - fixed text
        project,
        number,
    )
    return _comment(row) if row else None


async def _of_job(tx: Transaction, job: JobKey) -> list[Comment]:
    rows = await tx.fetch(
        f"""SELECT {_COLUMNS} FROM comments WHERE project = $1 AND spider = $2 AND job = $3
            ORDER BY item, field, number""",  # noqa: S608 - fixed text
        *job,
    )
    return [_comment(row) for row in rows]


async def _at(tx: Transaction, place: Place) -> list[Comment]:
    rows = await tx.fetch(
        f"""SELECT {_COLUMNS} FROM comments
            WHERE project = $1 AND spider = $2 AND job = $3 AND item = $4 AND field = $5
            ORDER BY number""",  # noqa: S608 - fixed text
        *place.item,
        place.field,
    )
    return [_comment(row) for row in rows]


async def _replace(tx: Transaction, project: int, number: int, content: str) -> Comment | None:
    await tx.execute("UPDATE comments SET content = $3 WHERE project = $1 AND number = $2", project, number, content)
    return await _get(tx, project, number)


async def _remove(tx: Transaction, project: int, number: int) -> bool:
    return await tx.execute("DELETE FROM comments WHERE project = $1 AND number = $2", project, number) > 0


async def _clear(tx: Transaction, place: Place) -> int:
    return await tx.execute(
        "DELETE FROM comments WHERE project = $1 AND spider = $2 AND job = $3 AND item = $4 AND field = $5",
        *place.item,
        place.field,
    )


async def _stats(tx: Transaction, project: int) -> dict[JobKey, int]:
    rows = await tx.fetch(
        """SELECT spider, job, count(DISTINCT item) FROM comments WHERE project = $1
           GROUP BY spider, job ORDER BY spider, job""",
        project,
    )
    return {JobKey(project, spider, job): items for spider, job, items in rows}
