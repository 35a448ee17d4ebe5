"""What PostgreSQL and its driver raise, told apart: what may be tried again, and what to say of the rest."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

import asyncpg

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError, StoreError, StoreFullError

#: What the driver raises; an operation's own errors are none of these.
DATABASE_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)

#: Serialization failure and deadlock: the transaction has been rolled back, and may run again.
_ROLLED_BACK: Final = ("40001", "40P01")
#: A table, or the type of its rows, that was not there a moment ago.
_MADE_AT_ONCE: Final = ("42P07", "42710")
#: Shut down by its administrator, after a crash of a neighbour, still starting; too many connections.
_AWAY: Final = ("57P01", "57P02", "57P03", "53300")


class Failure(Enum):
    """What an error means for the operation that met it."""

    ROLLED_BACK = "rolled back"  # nothing was stored, and the same may work at once
    LOST = "lost"  # the connection is gone, and with it whatever it had begun
    FINAL = "final"


def failure_of(error: BaseException) -> Failure:
    """What an error of the driver means."""
    state = getattr(error, "sqlstate", None)
    if state in _ROLLED_BACK or isinstance(error, asyncpg.InvalidCachedStatementError):
        return Failure.ROLLED_BACK
    if state in _MADE_AT_ONCE or (state == "23505" and getattr(error, "schema_name", None) == "pg_catalog"):
        return Failure.ROLLED_BACK  # two processes created the same table: IF NOT EXISTS does not see the other's
    if isinstance(error, asyncpg.PostgresConnectionError | OSError) or state in _AWAY:  # OSError: TimeoutError too
        return Failure.LOST
    if isinstance(error, asyncpg.InternalClientError):
        return Failure.LOST  # the connection broke in the middle of what the driver was doing
    # The driver has no type for a connection that was found closed before a statement was sent.
    if isinstance(error, asyncpg.InterfaceError) and re.search("closed|closing|released back", str(error)):
        return Failure.LOST
    return Failure.FINAL


def translated(error: BaseException, url: DatabaseUrl) -> StoreError:
    """The error that a store raises instead. It shows no password, whatever the driver's says."""
    state = getattr(error, "sqlstate", None) or ""
    said = _said(error, url)
    if state in ("28P01", "28000"):
        who = f"user {url.user}" if url.user else "the user"
        return StoreError(f"{url} refused {who} ({said}). Check the user name and the password of the address.")
    if state == "3D000":
        return StoreError(f"{url}: there is no database {url.database}. Create it: createdb {url.database}.")
    if state in ("53100", "58030"):
        return StoreFullError(f"{url} cannot be written ({said}). Make room on the database's disk and try again.")
    if state in ("55P03", "57014", "53200", *_ROLLED_BACK):
        return StoreBusyError(f"{url} was busy with others for too long ({said}). Try again.")
    if state == "42501":
        return StoreError(f"{url}: the user may not do this ({said}). Make it the owner of the database.")
    if state == "25006":
        return StoreError(f"{url} takes no writes ({said}). Name the primary server, not a copy.")
    if state == "53300":
        return StoreBusyError(
            f"{url} has no connection left ({said}). Raise max_connections of PostgreSQL or the limit of its user, "
            "or run fewer server processes."
        )
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in said:  # the driver has no type for it
        return StoreAwayError(
            f"{url} has no TLS, and the address asks for it. Leave sslmode out of the address, or switch TLS on "
            "in PostgreSQL (ssl = on)."
        )
    if failure_of(error) is Failure.LOST:
        return StoreAwayError(
            f"{url} cannot be reached ({said}). Check that PostgreSQL runs there, and host and port of the address."
        )
    return StoreError(f"{url}: the database refused an operation ({said}). Please report this.")


def _said(error: BaseException, url: DatabaseUrl) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    return type(error).__name__ if url.secret in said else said
