"""Connections to PostgreSQL: how they are made, and what the server must be to be worked with."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.postgresql.marks import prepare
from scrapy_ext.server.store.engine.postgresql.pool import Pool
from scrapy_ext.server.store.engine.postgresql.pool_sizes import SERVER, Line

logger = logging.getLogger(__name__)

#: The oldest version that can tell what became of a transaction.
OLDEST: Final = 13

_CONNECT_SECONDS: Final = 10.0
#: So much later than the server would a client give a statement up.
_LATER: Final = 1.2
_SESSION: Final = {
    # A process that was stopped in a transaction must not keep its locks: others go on with its jobs.
    "idle_in_transaction_session_timeout": "10s",
}


def application_name(host: str, process: int) -> str:
    """The name under which the database lists the sessions of a process; it cuts longer ones off."""
    return f"scrapy-ext {host[-40:]} {process}"


async def connect(url: DatabaseUrl) -> Any:
    """A connection; raises what the driver raises, and :class:`StoreError` for a server that will not do."""
    connection = await connected(url, SERVER, {})
    try:
        await _check(connection, url)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def new_pool(url: DatabaseUrl, size: int, line: Line, **session: str) -> Pool:
    """A pool of at most so many connections, with these settings; raises as :func:`connect`."""
    connection = await connect(url)
    try:
        await prepare(connection)
    finally:
        await connection.close(timeout=_CONNECT_SECONDS)
    return Pool(lambda: connected(url, line, session), size)


async def connected(url: DatabaseUrl, line: Line, session: Mapping[str, str]) -> Any:
    """A connection of a line, with these settings, to a server that is known to do."""
    name = application_name(socket.gethostname(), os.getpid())
    waits = {"statement_timeout": f"{line.statement:g}s", "lock_timeout": f"{line.lock:g}s"}
    connection = await asyncpg.connect(
        dsn=url.secret,
        timeout=min(_CONNECT_SECONDS, line.statement),
        command_timeout=line.statement * _LATER,
        server_settings={"application_name": name, **_SESSION, **waits, **session},
        statement_cache_size=512,
        max_cached_statement_lifetime=0,
    )
    try:
        await _prepare(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _prepare(connection: Any) -> None:
    await connection.set_type_codec("text", schema="pg_catalog", encoder=encode_text, decoder=_decode, format="text")
    # A commit that is answered before it is on the disk is no commit; stricter settings of the server stay.
    if await connection.fetchval("SHOW synchronous_commit") == "off":
        await connection.execute("SET synchronous_commit = on")


#: PostgreSQL's text has no character 0, which JSON and SQLite have. U+FDD0 is no character, and no text has it.
_MARK: Final = "\ufdd0"


def encode_text(text: str) -> str:
    """A text as the database keeps it."""
    if "\0" in text or _MARK in text:
        return text.replace(_MARK, _MARK + "1").replace("\0", _MARK + "0")
    return text


def _decode(text: str) -> str:
    if _MARK in text:
        return text.replace(_MARK + "0", "\0").replace(_MARK + "1", _MARK)
    return text


async def _check(connection: Any, url: DatabaseUrl) -> None:
    version = connection.get_server_version()
    if version.major < OLDEST:
        raise StoreError(f"{url} is PostgreSQL {version.major}: {OLDEST} or later is needed. Upgrade it.")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{url} has the encoding {encoding}: UTF8 is needed. Create the database with "
            f"createdb --template=template0 --encoding=UTF8 {url.database}."
        )
    if await connection.fetchval("SHOW fsync") == "off":
        logger.warning("%s has fsync off: what it has stored may be lost or damaged in a power cut", url)
