"""Periodic jobs whose time has come, without waiting for it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import asyncpg

from scrapy_ext.server.store.engine.address import DatabaseUrl
from tests.support.servers import RunningServer


async def come_due(server: RunningServer, project: int, minute: int | None = None) -> None:
    """Let the schedules of a project be due since a minute (ms), or the one that has just begun. An edit of one makes
    the server look at once."""
    due = int(time.time()) // 60 * 60_000 if minute is None else minute
    sql = f"UPDATE periodic_jobs SET next_run = {due} WHERE project = {project}"
    if isinstance(server.where, DatabaseUrl):
        connection = await asyncpg.connect(server.where.secret)
        await connection.execute(sql)
        await connection.close()
        return
    with closing(sqlite3.connect(server.where / "platform.db", timeout=60)) as database, database:
        database.execute(sql)
