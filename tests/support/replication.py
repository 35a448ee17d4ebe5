"""A primary PostgreSQL and its streaming standby, which takes its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.support.eventually import TIMEOUT
from tests.support.postgresql import Cluster


class Replicated:
    """A primary and a standby that commits wait for, unless it is ``asynchronous``.

    ``url`` is the address of a new database, with both servers.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, *, asynchronous: bool = False) -> None:
        self.primary = Cluster(settings)
        self.standby: Cluster | None = None
        try:
            single = self.primary.database()
            self.name = single.rpartition("/")[2]
            # It is copied before commits wait for it, so that it waits for nobody when it is promoted itself.
            self.standby = self.primary.standby()
            until(lambda: states(self.primary) == ["async"], "the standby streams")
            if not asynchronous:
                cover(self.primary)
        except BaseException:
            self.remove()
            raise
        both = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        self.url = single.replace(f"127.0.0.1:{self.primary.port}", both)

    def take_over(self) -> None:
        """Make the standby a primary; the other one is left as it is."""
        assert self.standby is not None
        self.standby.promote()

    def count(self, server: Cluster, table: str) -> int:
        """The rows of a table on one of the two."""
        return int(server.query(server.url(self.name), f"SELECT count(*) FROM {table}")[0][0])

    def remove(self) -> None:
        for server in (self.primary, self.standby):
            if server is not None:
                server.remove()


@contextmanager
def replicated(settings: Mapping[str, object] | None = None, *, asynchronous: bool = False) -> Iterator[Replicated]:
    """Both, removed at the end."""
    made = Replicated(settings, asynchronous=asynchronous)
    try:
        yield made
    finally:
        made.remove()


def cover(primary: Cluster) -> None:
    """Let commits wait for the standby that streams, whatever its name is."""
    _command(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
    _command(primary, "SELECT pg_reload_conf()")
    until(lambda: states(primary) == ["sync"], "commits wait for the standby")


def states(primary: Cluster) -> list[str]:
    """States of the standbys that stream, ``async`` or ``sync``; none where the primary does not answer."""
    try:
        rows = primary.query(
            primary.url("postgres"), "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        )
    except AssertionError:
        return []
    return [row[0] for row in rows]


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, f"not within {TIMEOUT:g} s: {what}"
        time.sleep(0.1)


def _command(primary: Cluster, sql: str) -> None:
    primary.query(primary.url("postgres"), sql)
