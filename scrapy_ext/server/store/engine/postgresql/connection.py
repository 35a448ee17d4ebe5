"""Connections to PostgreSQL, and the requirements of its version and configuration."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from scrapy_ext.server.store.engine.address import DatabaseServer, DatabaseUrl
from scrapy_ext.server.store.engine.connection_limits import SERVER, ConnectionLimits
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.postgresql.commit_marks import prepare
from scrapy_ext.server.store.engine.postgresql.errors import shared_session
from scrapy_ext.server.store.engine.postgresql.pool import Pool
from scrapy_ext.server.store.engine.postgresql.primary import Connection, primary_of

logger = logging.getLogger(__name__)

#: The oldest supported version of PostgreSQL.
OLDEST: Final = 13

_CONNECT_SECONDS: Final = 10.0
#: Ratio of the client's timeout of a statement to the server's.
_LATER: Final = 1.2
_SESSION: Final = {
    # A process that was stopped within a transaction must release its locks: other nodes continue its jobs.
    "idle_in_transaction_session_timeout": "10s",
}


def application_name(host: str, process: int) -> str:
    """Return the name of a process's sessions, short enough for PostgreSQL not to cut it."""
    return f"scrapy-ext {host[-40:]} {process}"


async def connect(url: DatabaseUrl) -> Any:
    """Open a connection; raise the driver's errors, and :class:`StoreError` for an unsupported server."""
    connection = await connected(url, SERVER, {})
    try:
        await _check(connection, url)
        await _check_pooler(connection, url)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def new_pool(url: DatabaseUrl, size: int, limits: ConnectionLimits, **session: str) -> Pool:
    """Open a pool of at most ``size`` connections with these settings; raise as :func:`connect`."""
    connection = await connect(url)
    try:
        await prepare(connection)
    finally:
        await connection.close(timeout=_CONNECT_SECONDS)
    return Pool(lambda: connected(url, limits, session), size, primary_of(url))


async def connected(url: DatabaseUrl, limits: ConnectionLimits, session: Mapping[str, str]) -> Any:
    """Open a connection with these limits and settings to the primary of a database that was checked."""
    return await primary_of(url).connect(lambda server: _opened(url, server, limits, session))


async def look_for_primary(url: DatabaseUrl, seconds: float) -> None:
    """Find out whether another server became the primary, unless that was done in the last ``seconds``."""
    await primary_of(url).look(lambda server: _opened(url, server, SERVER, {}), seconds)


async def _opened(
    url: DatabaseUrl, server: DatabaseServer | None, limits: ConnectionLimits, session: Mapping[str, str]
) -> Any:
    name = application_name(socket.gethostname(), os.getpid())
    waits = {"statement_timeout": f"{limits.statement:g}s", "lock_timeout": f"{limits.lock:g}s"}
    connection = await asyncpg.connect(
        dsn=url.secret,
        host=None if server is None else server.host,
        port=None if server is None else server.port,
        target_session_attrs="any",
        connection_class=Connection,
        timeout=min(_CONNECT_SECONDS, limits.statement),
        command_timeout=limits.statement * _LATER,
        server_settings={"application_name": name, **_SESSION, **waits, **session},
        statement_cache_size=512,
        max_cached_statement_lifetime=0,
    )
    try:
        await _prepare(connection, {**_SESSION, **waits, **session})
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _prepare(connection: asyncpg.Connection, session: Mapping[str, str]) -> None:
    await connection.set_type_codec("text", schema="pg_catalog", encoder=encode_text, decoder=_decode, format="text")
    commit, process = await connection.fetchrow("SELECT current_setting('synchronous_commit'), pg_backend_pid()")
    # A commit returns after the sync of its data; stricter settings of the server remain.
    if commit == "off":
        await connection.execute("SET synchronous_commit = on")
    # A pooler has dropped the settings of the session.
    if process != connection.get_server_pid():
        await connection.execute(";".join(f"SET {name} = '{value}'" for name, value in session.items()))


async def _check_pooler(connection: asyncpg.Connection, url: DatabaseUrl) -> None:
    """Raise :class:`StoreError` if a pooler gives each transaction another session: two connections have the same."""
    process = await connection.fetchval("SELECT pg_backend_pid()")
    if process == connection.get_server_pid():
        return
    other = await connected(url, SERVER, {})
    try:
        if await other.fetchval("SELECT pg_backend_pid()") == process:
            raise StoreError(shared_session(str(url)))
    finally:
        other.terminate()


#: Escape for NUL, which PostgreSQL's text cannot contain, unlike JSON and SQLite. U+FDD0 is a noncharacter.
_MARK: Final = "\ufdd0"


def encode_text(text: str) -> str:
    """Escape a text for the database."""
    if "\0" in text or _MARK in text:
        return text.replace(_MARK, _MARK + "1").replace("\0", _MARK + "0")
    return text


def _decode(text: str) -> str:
    if _MARK in text:
        return text.replace(_MARK + "0", "\0").replace(_MARK + "1", _MARK)
    return text


async def _check(connection: asyncpg.Connection, url: DatabaseUrl) -> None:
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
        logger.warning("%s has fsync off: a power cut may lose or damage stored data. Set fsync = on.", url)
