"""Comments of users on items or on a field of an item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.keys import EntityKey, JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Row, Transaction
from scrapy_ext.server.store.projects import advance
from scrapy_ext.server.store.records.removal import check_not_deleted, deletion_error, find_deletion

#: Maximum comments of a job: they are read at once.
MAX_COMMENTS: Final = 5000
#: Condition on a row: its job was not deleted.
_READABLE: Final = """NOT EXISTS (
    SELECT 1 FROM jobs j WHERE j.project = comments.project AND j.spider = comments.spider AND j.job = comments.job
    AND j.state = 'deleted')"""
_COLUMNS: Final = "project, spider, job, item, field, number, created, author, content"


class CommentSubject(NamedTuple):
    """The subject of a comment; ``field`` is empty for the whole item."""

    item: EntityKey
    field: str = ""


class Comment(NamedTuple):
    """A comment; ``number`` is unique in the project, ``created`` in milliseconds."""

    subject: CommentSubject
    number: int
    created: int
    author: str
    content: str


async def _add(tx: Transaction, comment: Comment) -> Comment:
    project, spider, job, item = comment.subject.item
    number = await advance(tx, project, "comment")
    # A deletion of the job waits for this comment, and removes it.
    await check_not_deleted(tx, JobKey(project, spider, job))
    row = await tx.fetchrow(
        "SELECT count(*) FROM comments WHERE project = $1 AND spider = $2 AND job = $3", project, spider, job
    )
    if row is not None and row[0] >= MAX_COMMENTS:
        raise ContractError(
            [Violation("text", f"would be one of over {MAX_COMMENTS} comments on this job", "Delete some of them.")]
        )
    await tx.execute(
        f"INSERT INTO comments ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        project,
        spider,
        job,
        item,
        comment.subject.field,
        number,
        comment.created,
        comment.author,
        comment.content,
    )
    return comment._replace(number=number)


def _comment(row: Row) -> Comment:
    project, spider, job, item, field, number, created, author, content = row
    return Comment(CommentSubject(EntityKey(project, spider, job, item), field), number, created, author, content)


async def get(tx: Transaction, project: int, number: int) -> Comment | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM comments WHERE project = $1 AND number = $2 AND {_READABLE}",
        project,
        number,
    )
    return _comment(row) if row else None


async def of_job(tx: Transaction, job: JobKey) -> list[Comment]:
    """Return the comments on a job's items, by item, field and age."""
    rows = await tx.fetch(
        f"""SELECT {_COLUMNS} FROM comments WHERE project = $1 AND spider = $2 AND job = $3 AND {_READABLE}
            ORDER BY item, field, number""",
        *job,
    )
    return await _read(tx, job, rows)


async def at(tx: Transaction, subject: CommentSubject) -> list[Comment]:
    """Return the comments on an item or a field, oldest first."""
    rows = await tx.fetch(
        f"""SELECT {_COLUMNS} FROM comments
            WHERE project = $1 AND spider = $2 AND job = $3 AND item = $4 AND field = $5 AND {_READABLE}
            ORDER BY number""",
        *subject.item,
        subject.field,
    )
    return await _read(tx, _job_of(subject), rows)


def _job_of(subject: CommentSubject) -> JobKey:
    return JobKey(subject.item.project, subject.item.spider, subject.item.job)


async def _read(tx: Transaction, job: JobKey, rows: Sequence[Row]) -> list[Comment]:
    """Return the comments of rows; raise :class:`ContractError` (410) when there are none since the job was deleted."""
    if not rows and (deletion := await find_deletion(tx, job)) is not None:
        raise deletion_error(job, deletion)
    return [_comment(row) for row in rows]


async def replace(tx: Transaction, project: int, number: int, content: str) -> Comment | None:
    """Replace the text of a comment; return it, or None when there is none."""
    await tx.execute(
        f"UPDATE comments SET content = $3 WHERE project = $1 AND number = $2 AND {_READABLE}",
        project,
        number,
        content,
    )
    return await get(tx, project, number)


async def remove(tx: Transaction, project: int, number: int) -> bool:
    """Delete a comment; return whether there was one."""
    return await tx.execute("DELETE FROM comments WHERE project = $1 AND number = $2", project, number) > 0


async def clear(tx: Transaction, subject: CommentSubject) -> int:
    """Delete the comments on an item or a field; return their number."""
    await check_not_deleted(tx, _job_of(subject))
    return await tx.execute(
        "DELETE FROM comments WHERE project = $1 AND spider = $2 AND job = $3 AND item = $4 AND field = $5",
        *subject.item,
        subject.field,
    )


async def stats(tx: Transaction, project: int) -> dict[JobKey, int]:
    """Return the number of items with comments, by job."""
    rows = await tx.fetch(
        f"""SELECT spider, job, count(DISTINCT item) FROM comments WHERE project = $1 AND {_READABLE}
            GROUP BY spider, job ORDER BY spider, job""",
        project,
    )
    return {JobKey(project, spider, job): items for spider, job, items in rows}


class CommentStore(EngineStore):
    """Comments by project and number."""

    async def add(self, subject: CommentSubject, author: str, content: str) -> Comment:
        """Store a comment; raise :class:`ContractError` when the job has too many."""
        return await self._engine.write(_add, Comment(subject, 0, self._clock(), author, content))

    get = Method("read", get)
    of_job = Method("read", of_job)
    at = Method("read", at)
    replace = Method("write", replace)
    remove = Method("write", remove)
    clear = Method("write", clear)
    stats = Method("read", stats)
