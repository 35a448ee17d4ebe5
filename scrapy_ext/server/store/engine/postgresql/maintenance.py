"""Size of a database, removal of its dead rows, and the end of sessions that a dead process left."""

from __future__ import annotations

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Space, Transaction
from scrapy_ext.server.store.engine.postgresql.connection import connect
from scrapy_ext.server.store.engine.postgresql.transaction import MAINTENANCE_SECONDS


async def database_size(tx: Transaction) -> int:
    row = await tx.fetchrow("SELECT pg_database_size(current_database())")
    return row[0] if row else 0


async def database_space(tx: Transaction) -> Space:
    row = await tx.fetchrow(
        """SELECT pg_database_size(current_database()), CAST(COALESCE(sum(n_dead_tup), 0) AS BIGINT)
           FROM pg_stat_user_tables"""
    )
    return Space(row[0], None, row[1]) if row else Space(0)


async def vacuum_database(url: DatabaseUrl) -> None:
    connection = await connect(url)
    try:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute("VACUUM (ANALYZE)", timeout=MAINTENANCE_SECONDS)
    finally:
        await connection.close(timeout=5)


async def end_sessions_of(tx: Transaction, application: str) -> None:
    await tx.fetch(
        """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()""",
        application,
    )
