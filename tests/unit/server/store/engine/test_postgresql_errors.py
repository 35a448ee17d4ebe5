"""Errors of PostgreSQL and of poolers before it, as an operator reads them."""

from __future__ import annotations

import asyncpg
import pytest

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreError
from scrapy_ext.server.store.engine.postgresql.errors import Failure, StandbyError, failure_of, translated

URL = DatabaseUrl("postgresql://me:secret@one:1/db")
POOLER = "pool_mode = session"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (asyncpg.ProtocolViolationError("unsupported startup parameter: lock_timeout"), "ignore_startup_parameters"),
        (asyncpg.InvalidSQLStatementNameError('prepared statement "x" does not exist'), POOLER),
        (asyncpg.DuplicatePreparedStatementError('prepared statement "x" already exists'), POOLER),
    ],
)
def test_a_pooler_that_cannot_be_used_is_not_tried_again(error: Exception, remedy: str) -> None:
    assert failure_of(error) is Failure.FINAL
    found = translated(error, URL)
    assert not isinstance(found, StoreAwayError)
    assert remedy in str(found)


@pytest.mark.parametrize(
    "error", [StandbyError("one:1 is a standby"), asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT")]
)
def test_a_standby_is_waited_for_until_it_is_the_primary(error: Exception) -> None:
    assert failure_of(error) is Failure.LOST
    found = translated(error, URL)
    assert isinstance(found, StoreError)
    assert isinstance(found, StoreAwayError)
    assert "Promote it" in str(found)


def test_a_connection_that_is_lost_within_the_driver_is_said_to_be_lost() -> None:
    error = asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")
    assert failure_of(error) is Failure.LOST
    assert "cannot be reached (the connection was lost during a call). Check that PostgreSQL runs" in str(
        translated(error, URL)
    )
