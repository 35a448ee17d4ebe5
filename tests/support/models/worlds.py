"""Worlds that histories come from: two servers on one database, by their stores or over HTTP, with faults."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp
import asyncpg

from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import Runner
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreBusyError, StoreUncertainError
from tests.support.cut_connections import Cutter
from tests.support.faults import Fault, FaultProxy
from tests.support.http import Answer, Http
from tests.support.models.history import REFUSED, UNKNOWN, Call
from tests.support.postgresql import Cluster
from tests.support.servers import RunningServer
from tests.support.stores import Clock

T = TypeVar("T")

#: Projects of all histories: each has one of its own.
PROJECTS = itertools.count(1001)


class Trouble(Enum):
    """Fault while the calls of a round are under way."""

    NONE = "nothing"
    LOCKED = "another holds locks in an order of its own: deadlocks on PostgreSQL, a held file on SQLite"
    BROKEN = "connections to the database are ended by it"
    CUT_BEFORE = "the connection to the database breaks before the COMMIT gets there"
    CUT_AFTER = "the connection to the database breaks before the COMMIT is answered"
    LOST_REQUEST = "connections of clients break before the server gets the request"
    LOST_REPLY = "connections of clients break before the answer"
    KILLED = "the server is killed, and started again"


class Asked(NamedTuple):
    """A call that is to be made: as the model knows it, and making it. ``turns``: how often others go first."""

    operation: Any
    make: Callable[[], Awaitable[Any]]
    turns: int = 0


class Counts:
    """Counts of one world, for its report."""

    def __init__(self) -> None:
        self.rounds = self.calls = self.unknown = self.refused = 0
        self.troubles: dict[str, int] = {}

    def __str__(self) -> str:
        troubles = ", ".join(f"{name} {number}" for name, number in sorted(self.troubles.items()))
        return f"{self.rounds} rounds, {self.calls} calls, {self.refused} refused, {self.unknown} unknown; {troubles}"


class World:
    """One loop on which calls are made at once, and the order of their beginnings and ends."""

    troubles: Sequence[Trouble] = (Trouble.NONE,)

    def __init__(self) -> None:
        self._runner = Runner()
        self._times = itertools.count()
        self.counts = Counts()

    def begin(self) -> None:
        """Another store is to be checked."""

    def possible(self, trouble: Trouble) -> Trouble:
        """The trouble, if it can be had here."""
        return trouble if trouble in self.troubles else Trouble.NONE

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine of the test."""
        return self._runner.run(coroutine)

    def round(self, asked: Sequence[Asked], trouble: Trouble = Trouble.NONE, tables: Sequence[str] = ()) -> list[Call]:
        """Make calls at once, while there is trouble; returns them with their results."""
        trouble = self.possible(trouble)
        calls = [call for call in self.run(self._round(asked, trouble, tables)) if call is not None]
        self.counts.rounds += 1
        self.counts.calls += len(calls)
        self.counts.unknown += sum(call.result is UNKNOWN for call in calls)
        self.counts.refused += sum(call.result is REFUSED for call in calls)
        self.counts.troubles[trouble.name.lower()] = self.counts.troubles.get(trouble.name.lower(), 0) + 1
        return calls

    async def _round(self, asked: Sequence[Asked], trouble: Trouble, tables: Sequence[str]) -> list[Call | None]:
        async with self._trouble(trouble, tables):
            return await asyncio.gather(*map(self._call, asked))

    async def _call(self, asked: Asked) -> Call | None:
        for _ in range(asked.turns):
            await asyncio.sleep(0)
        began = next(self._times)
        try:
            result = await self._result(asked.make)
        except NotMadeError:
            return None
        return Call(asked.operation, result, began, next(self._times))

    async def _result(self, make: Callable[[], Awaitable[Any]]) -> Any:
        raise NotImplementedError

    def _trouble(self, trouble: Trouble, tables: Sequence[str]) -> contextlib.AbstractAsyncContextManager[None]:
        raise NotImplementedError


class NotMadeError(Exception):
    """The store says that nothing of a call was done."""


# ── stores ──


class StoreWorld(World):
    """Two stores on one database, as two servers have them; a clock that the test moves."""

    def __init__(self, where: Path | str, cluster: Cluster | None) -> None:
        super().__init__()
        self.clock = Clock()
        self._cluster = cluster
        self._database = where
        self._cutters: list[Cutter] = []
        self.stores: list[Store] = []
        self.troubles = (Trouble.NONE, Trouble.LOCKED)
        if cluster is not None:
            self.troubles = (*self.troubles, Trouble.BROKEN, Trouble.CUT_BEFORE, Trouble.CUT_AFTER)
        self.run(self._open())

    async def _open(self) -> None:
        if self._cluster is None:
            assert isinstance(self._database, Path)
            self.stores = [await Store.open(self._database, self.clock) for _ in range(2)]
            return
        assert isinstance(self._database, str)
        name = self._database.rpartition("/")[2]
        connection = await asyncpg.connect(self._database)
        # What waits for each other is found soon.
        await connection.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '20ms'")
        await connection.close()
        for _ in range(2):
            cutter = Cutter(self._cluster.port)
            self._cutters.append(cutter)
            port = urlsplit(self._database).port
            url = self._database.replace(f":{port}/", f":{await cutter.start()}/")
            self.stores.append(await Store.open(DatabaseUrl(url), self.clock))

    def close(self) -> None:
        """Close the stores."""

        async def close() -> None:
            for store in self.stores:
                await store.close()
            for cutter in self._cutters:
                cutter.stop()

        self.run(close())
        self._runner.close()

    async def _result(self, make: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await make()
        except ContractError:
            return REFUSED
        except StoreUncertainError:
            return UNKNOWN
        except StoreBusyError:
            raise NotMadeError from None

    @contextlib.asynccontextmanager
    async def _trouble(self, trouble: Trouble, tables: Sequence[str]) -> AsyncIterator[None]:
        match trouble:
            case Trouble.LOCKED if self._cluster is None:
                assert isinstance(self._database, Path)
                with _held_file(self._database / "platform.db") as release:
                    asyncio.get_running_loop().call_later(0.003, release)
                    yield
            case Trouble.LOCKED | Trouble.BROKEN:
                work = self._lock(tables) if trouble is Trouble.LOCKED else self._break()
                task = asyncio.create_task(work)
                try:
                    yield
                finally:
                    await task
            case Trouble.CUT_BEFORE | Trouble.CUT_AFTER:
                name = "before" if trouble is Trouble.CUT_BEFORE else "after"
                for cutter in self._cutters:
                    setattr(cutter, name, 1)
                yield
                for cutter in self._cutters:
                    setattr(cutter, name, 0)
            case _:
                yield

    async def _lock(self, tables: Sequence[str]) -> None:
        """Lock rows in the order that no operation has, each once somebody waits for the one before it."""
        assert isinstance(self._database, str)
        connection = await asyncpg.connect(self._database)
        try:
            with contextlib.suppress(asyncpg.DeadlockDetectedError):
                async with connection.transaction():
                    for table in tables:
                        rows = await connection.fetch(f"SELECT ctid FROM {table} ORDER BY ctid DESC LIMIT 6")
                        for row in rows:
                            await connection.execute(f"SELECT 1 FROM {table} WHERE ctid = $1 FOR UPDATE", row["ctid"])
                            for _ in range(3):
                                waiting = await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")
                                if waiting:
                                    break
        finally:
            await connection.close()

    async def _break(self) -> None:
        assert isinstance(self._database, str)
        connection = await asyncpg.connect(self._database)
        try:
            for _ in range(2):
                await connection.execute(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                       WHERE datname = current_database() AND pid <> pg_backend_pid()
                       AND backend_type = 'client backend' AND state <> 'idle'"""
                )
        finally:
            await connection.close()

    def deadlocks(self) -> int:
        """Number of deadlocks that PostgreSQL has resolved."""

        async def count() -> int:
            connection = await asyncpg.connect(self._database)
            try:
                found: int = await connection.fetchval(
                    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
                )
                return found
            finally:
                await connection.close()

        return 0 if self._cluster is None else int(self.run(count()))


@contextlib.contextmanager
def _held_file(path: Path) -> Any:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    connection.execute("BEGIN IMMEDIATE")

    def release() -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    try:
        yield release
    finally:
        release()
        connection.close()


# ── servers ──

_LOST = (aiohttp.ClientError, ConnectionError, asyncio.IncompleteReadError)


class HttpWorld(World):
    """A real server behind a proxy that loses requests and answers; it is killed, and started again on its data."""

    troubles = (Trouble.NONE, Trouble.LOST_REQUEST, Trouble.LOST_REPLY, Trouble.KILLED)

    def __init__(self, data: Path, database: str | None, *, kills: int, of_each: bool) -> None:
        """``kills``: how often the server is killed at most, in all or, with ``of_each``, for each store."""
        super().__init__()
        self._data, self._database = data, database
        self._left = self._kills = kills
        self._of_each = of_each
        self._faults: dict[int, Fault] = {}
        self._number = itertools.count()
        self._server = self._started()
        self._proxy = FaultProxy(self._server.url, self._rule)
        self.http: Http
        self.run(self._connect())

    def begin(self) -> None:
        """Another store is to be checked."""
        if self._of_each:
            self._left = self._kills

    def possible(self, trouble: Trouble) -> Trouble:
        """The trouble; none where the server was killed often enough."""
        if trouble is not Trouble.KILLED:
            return super().possible(trouble)
        self._left -= 1
        return trouble if self._left >= 0 else Trouble.NONE

    def _started(self) -> RunningServer:
        return RunningServer(self._data, options=["--no-runner"], database=self._database)

    def _rule(self, _method: str, _path: str, _calls: int) -> Fault | None:
        return self._faults.get(next(self._number))

    async def _connect(self) -> None:
        self.http = Http(self._proxy.url, self._server.platform_key)
        self.http._headers["Accept-Encoding"] = "identity"  # else the proxy would ask for gzip
        await self.http.__aenter__()
        assert self.http._session is not None
        # aiohttp sends a GET or DELETE again by itself when its connection breaks: the second finds nothing to delete.
        self.http._session._retry_connection = False

    async def _disconnect(self) -> None:
        await self.http.__aexit__()

    @property
    def where(self) -> Path | DatabaseUrl:
        """The database of the server."""
        return self._server.where

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return self._proxy.url

    def close(self) -> None:
        """End the server."""
        self.run(self._disconnect())
        self._proxy.__exit__()
        assert "Traceback" not in self._server.log()
        self._server.__exit__()
        self._runner.close()

    async def _result(self, make: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await make()
        except RefusedError:
            return REFUSED
        except _LOST:
            return UNKNOWN

    @contextlib.asynccontextmanager
    async def _trouble(self, trouble: Trouble, tables: Sequence[str]) -> AsyncIterator[None]:
        if trouble is Trouble.KILLED:
            loop = asyncio.get_running_loop()
            killing = loop.call_later(random.uniform(0, 0.01), self._server.process.kill)
            yield
            killing.cancel()
            await asyncio.to_thread(self._again)
            await self._disconnect()
            await self._connect()
            return
        if trouble in (Trouble.LOST_REQUEST, Trouble.LOST_REPLY):
            fault = Fault.LOST_REQUEST if trouble is Trouble.LOST_REQUEST else Fault.LOST_REPLY
            self._number = itertools.count()
            self._faults = dict.fromkeys(random.sample(range(4), 2), fault)
        yield
        self._faults = {}

    def _again(self) -> None:
        self._server.kill()
        keys = self._server.extract_key, self._server.platform_key
        self._server = self._started()
        self._proxy._target = self._server.url
        assert keys != (self._server.extract_key, self._server.platform_key)


class RefusedError(Exception):
    """The server refused a call by a rule."""


def accepted(answer: Answer, *refusals: int) -> Answer:
    """The answer, which must be a success, or one of these refusals."""
    if answer.status in refusals:
        raise RefusedError
    assert answer.status in (200, 201, 202, 204), (answer.status, answer.body)
    return answer
