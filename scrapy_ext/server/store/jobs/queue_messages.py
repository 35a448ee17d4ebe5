"""Procrastinate's tables in a PostgreSQL database, with one message per placed job.

Procrastinate does not record its applied migrations, so ``queue_schema`` does. A trigger on ``jobs`` notifies all nodes
of pending jobs. Messages contain no state: without them, the same jobs run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.errors import SchemaError
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.engine.methods import EngineStore, Method

#: Task of a message: a job was placed on the node.
TASK: Final = "scrapy_ext.job"
#: The channel on which nodes listen for pending jobs.
PENDING: Final = "scrapy_ext_jobs_pending"

_QUEUE: Final = "node."
#: Bytes of a node's name in the name of its queue, since Procrastinate's channel of the queue has at most 63. The end
#: of the name is random.
_LONGEST: Final = 63 - len("procrastinate_queue_v1#") - len(_QUEUE)

_RECORD: Final = """CREATE TABLE IF NOT EXISTS queue_schema (
    applied TEXT COLLATE "C" NOT NULL PRIMARY KEY
)"""
_TRIGGER: Final = f"""
CREATE OR REPLACE FUNCTION scrapy_ext_notify_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('{PENDING}', '');
    RETURN NULL;
END;
$$;
DROP TRIGGER IF EXISTS scrapy_ext_notify_pending ON jobs;
CREATE TRIGGER scrapy_ext_notify_pending AFTER INSERT OR UPDATE OF state ON jobs
    FOR EACH ROW WHEN (NEW.state = 'pending') EXECUTE FUNCTION scrapy_ext_notify_pending();
"""
_DEFER: Final = """SELECT procrastinate_defer_jobs_v1(ARRAY[
    ROW($1::varchar, $2::varchar, 0, NULL::text, NULL::text, $3::text::jsonb, NULL::timestamptz)
]::procrastinate_job_to_defer_v1[])"""


class QueueSchema(NamedTuple):
    """Procrastinate's whole schema, and its migrations with their names, in order."""

    whole: str
    migrations: Sequence[tuple[str, str]]


def queue_of(node: str) -> str:
    """Return the name of a node's queue."""
    return _QUEUE + node.encode()[-_LONGEST:].decode(errors="ignore")


async def defer(tx: Transaction, node: str, key: JobKey, attempt: int) -> None:
    """Add a message for a node, in the transaction that places the job."""
    arguments = msgspec.json.encode({"job": str(key), "attempt": attempt}).decode()
    await tx.fetchrow(_DEFER, queue_of(node), TASK, arguments)


async def _prepare(tx: Transaction, schema: QueueSchema) -> None:
    """Create or migrate the tables; raise :class:`StoreError`."""
    # Other processes that start at the same time wait here.
    await tx.fetchrow("SELECT version FROM schema_version WHERE version = 0 FOR UPDATE")
    await tx.execute(_RECORD)
    row = await tx.fetchrow("SELECT max(applied) FROM queue_schema")
    applied = row[0] if row is not None else None
    newest = schema.migrations[-1][0]
    if applied is None:
        present = await tx.fetchrow("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")
        if present is not None and present[0]:
            raise SchemaError(
                "the database has tables of Procrastinate of another application. Use a separate database for the "
                "platform: createdb"
            )
        await tx.execute(schema.whole)
        await tx.execute(_TRIGGER)
    elif applied > newest:
        raise SchemaError(
            f"the database has the schema {applied} of Procrastinate, but the installed version supports {newest}. "
            'Upgrade it: pip install --upgrade "scrapy-ext[postgresql]"'
        )
    for name, sql in schema.migrations:
        if applied is not None and name > applied:
            await tx.execute(sql)
    if applied != newest:
        await tx.execute("INSERT INTO queue_schema (applied) VALUES ($1)", newest)


async def _sweep(tx: Transaction, queues: Sequence[str]) -> int:
    rows = await tx.fetch("SELECT DISTINCT queue_name FROM procrastinate_jobs WHERE queue_name LIKE 'node.%'")
    gone = sorted({row[0] for row in rows} - set(queues))
    removed = 0
    for queue in gone:
        removed += await tx.execute("DELETE FROM procrastinate_jobs WHERE queue_name = $1", queue)
    return removed


class QueueMessageStore(EngineStore):
    prepare = Method("write", _prepare)

    async def sweep(self, nodes: Collection[str]) -> int:
        """Remove the messages of all other nodes; return their number."""
        return await self._engine.write(_sweep, [queue_of(node) for node in nodes])
