"""Errors of PostgreSQL and its driver: which of them are retried, their messages, and the log of outages."""

from __future__ import annotations

import logging
import re
import socket
import time
from enum import Enum
from typing import Final

import asyncpg

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError, StoreError, StoreFullError

logger = logging.getLogger(__name__)

#: Errors that the driver raises. The errors of operations are none of these.
DATABASE_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    *TIMEOUT_ERRORS,
)

#: Serialization failure and deadlock: the transaction was rolled back, and may run again.
_ROLLED_BACK: Final = ("40001", "40P01")
#: A table, or the type of its rows, exists already.
_CREATED_TWICE: Final = ("42P07", "42710")
#: Shutdown by the administrator, crash of another session, still starting; too many connections.
_AWAY: Final = ("57P01", "57P02", "57P03", "53300")


#: A server that takes no writes, though none were refused to the session: a standby.
_READ_ONLY: Final = "25006"
#: A prepared statement that another session has, or this one has not: a pooler gave the connection another session.
_OTHER_SESSION: Final = ("26000", "42P05")


#: PgBouncer's errors. One is of its configuration.
_PROTOCOL: Final = "08P01"
_UNSUPPORTED: Final = "unsupported startup parameter"


class StandbyError(ConnectionError):
    """The server of a connection is not the primary."""


class NoPrimaryError(ConnectionError):
    """None of the servers of an address takes writes."""


class CommitWaitsError(ConnectionError):
    """A commit is not answered, or was answered before the synchronous standby had it."""


class Failure(Enum):
    """Effect of an error on its operation."""

    ROLLED_BACK = "rolled back"  # nothing was stored, and a retry may succeed at once
    LOST = "lost"  # the connection is closed, and its transaction rolled back
    FINAL = "final"


def failure_of(error: BaseException) -> Failure:
    """Return the effect of an error of the driver."""
    state = getattr(error, "sqlstate", None)
    if state in _ROLLED_BACK or isinstance(error, asyncpg.InvalidCachedStatementError):
        return Failure.ROLLED_BACK
    if state == _PROTOCOL and _UNSUPPORTED in str(error):
        return Failure.FINAL
    # Two processes created the same table: IF NOT EXISTS does not see uncommitted tables.
    if state in _CREATED_TWICE or (state == "23505" and getattr(error, "schema_name", None) == "pg_catalog"):
        return Failure.ROLLED_BACK
    if isinstance(error, (asyncpg.PostgresConnectionError, OSError, *TIMEOUT_ERRORS)) or state in (*_AWAY, _READ_ONLY):
        return Failure.LOST
    # The connection was lost within a call of the driver.
    if isinstance(error, asyncpg.InternalClientError):
        return Failure.LOST
    # The driver has no type for a connection that is closed before a statement is sent.
    if isinstance(error, asyncpg.InterfaceError) and re.search("closed|closing|released back", str(error)):
        return Failure.LOST
    return Failure.FINAL


def translated(error: BaseException, url: DatabaseUrl) -> StoreError:
    """Return the error of the store for an error of the driver, without the password of the URL."""
    state = getattr(error, "sqlstate", None) or ""
    text = text_of(error, url)
    if (between := _of_replication(error, state, f"{url}", text) or _of_pooler(state, f"{url}", text)) is not None:
        return between
    if state in ("28P01", "28000"):
        who = f"user {url.user}" if url.user else "the user"
        return StoreError(f"{url} refused {who} ({text}). Check the user name and the password of the address.")
    if state == "3D000":
        return StoreError(f"{url}: there is no database {url.database}. Create it: createdb {url.database}.")
    if state in ("53100", "58030"):
        return StoreFullError(f"{url} cannot be written ({text}). Make room on the database's disk and try again.")
    if state in ("55P03", "57014", "53200", *_ROLLED_BACK):
        return StoreBusyError(f"{url} was busy with others for too long ({text}). Try again.")
    if state == "42501":
        return StoreError(f"{url}: the user may not do this ({text}). Make it the owner of the database.")
    if state == "53300":
        return StoreBusyError(
            f"{url} has no connection left ({text}). Raise max_connections of PostgreSQL or the limit of its user, "
            "or run fewer server processes."
        )
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in text:  # the driver has no type for it
        return StoreAwayError(
            f"{url} has no TLS, and the address asks for it. Leave sslmode out of the address, or switch TLS on "
            "in PostgreSQL (ssl = on)."
        )
    if isinstance(error, socket.gaierror):
        return StoreAwayError(
            f"{url}: the name of the host is not known ({error.strerror}). Correct the host of the address, or the "
            "name servers of this machine."
        )
    if failure_of(error) is Failure.LOST:
        return StoreAwayError(
            f"{url} cannot be reached ({text}). Check that PostgreSQL runs there, and host and port of the address."
        )
    return StoreError(f"{url}: the database refused an operation ({text}). Please report this.")


def _of_replication(error: BaseException, state: str, name: str, text: str) -> StoreError | None:
    """Return the error of a primary, or of a standby in its place; None for any other."""
    if isinstance(error, StandbyError) or state == _READ_ONLY:
        return StoreAwayError(
            f"{name} takes no writes: {text}. Promote it, or name the primary; with all servers in the address "
            "(HOST1:PORT1,HOST2:PORT2) the primary is found."
        )
    if isinstance(error, NoPrimaryError):
        return StoreAwayError(f"{name} has no primary: {text}. Start the primary, or promote a standby.")
    if isinstance(error, CommitWaitsError):
        return StoreAwayError(
            f"{name}: {text}. Look for its synchronous standby in pg_stat_replication, and at its disk; start the "
            "standby, or take it out of synchronous_standby_names."
        )
    return None


def _of_pooler(state: str, name: str, text: str) -> StoreError | None:
    """Return the error of a pooler before the database; None for any other."""
    if state in _OTHER_SESSION:
        return StoreError(shared_session(name))
    if state == _PROTOCOL and _UNSUPPORTED in text:
        return StoreError(
            f"{name}: a pooler refuses the settings of a session ({text}). In PgBouncer, set pool_mode = session and "
            "ignore_startup_parameters = idle_in_transaction_session_timeout, statement_timeout, lock_timeout, "
            "default_transaction_read_only, or connect to PostgreSQL itself."
        )
    return None


def shared_session(name: str) -> str:
    """Return the message about a pooler that gives each transaction another session."""
    return (
        f"{name}: a pooler gives each transaction another session, and prepared statements, settings and LISTEN belong "
        "to one. Set pool_mode = session in PgBouncer, or connect to PostgreSQL itself."
    )


def text_of(error: BaseException, url: DatabaseUrl) -> str:
    """Return the text of an error in one line, without the password of the URL."""
    if isinstance(error, asyncpg.InternalClientError):  # its text is about states of the driver
        return "the connection was lost during a call"
    text = " ".join(str(error).split()) or type(error).__name__
    return type(error).__name__ if url.secret in text else text


class Availability:
    """Availability of an engine's database, whose changes are logged, unless ``quiet``."""

    def __init__(self, url: DatabaseUrl, *, quiet: bool = False) -> None:
        self._url = url
        self._level = logging.DEBUG if quiet else logging.WARNING
        self._began = self._last = 0.0
        #: The reason why the database is unreachable; None if it is not known to be.
        self.cause: str | None = None
        #: The reason why commits wait, while reads are possible.
        self._waits: str | None = None

    @property
    def trouble(self) -> str | None:
        """The reason why calls wait; None if none is known."""
        return self.cause or self._waits

    def commits_wait(self, seconds: float) -> None:
        """Record the time for which a commit has waited; 0.0 if none has for long."""
        if seconds and self._waits is None:
            self._waits = str(translated(CommitWaitsError(f"a commit has waited for {seconds:.0f} s"), self._url))
            logger.log(self._level, "%s", self._waits)
        elif not seconds and self._waits is not None:
            self._waits = None
            logger.log(min(self._level, logging.INFO), "%s answers commits again", self._url)

    def failed(self, error: BaseException) -> None:
        """Record the error of a call, unless it is none of the connection."""
        reason = translated(error, self._url)
        if not isinstance(reason, StoreAwayError):
            return
        self._last = time.monotonic()
        if self.cause is None:
            self._began = self._last
            logger.log(self._level, "%s Calls wait for it, and are retried.", reason)
        self.cause = str(reason)

    def worked(self, began: float) -> None:
        """Record the success of a call. One that began before the last failure proves nothing."""
        if self.cause is not None and began > self._last:
            self.cause = None
            logger.log(
                min(self._level, logging.INFO), "%s is back after %.1f s", self._url, time.monotonic() - self._began
            )
