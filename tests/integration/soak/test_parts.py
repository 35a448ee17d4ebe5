"""Means of the soak: links that can be cut, and a database whose standby takes the place of the primary."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.soak.links import Links
from tests.soak.postgresql import Replicated


@contextlib.asynccontextmanager
async def echo(word: bytes) -> AsyncIterator[int]:
    """A server that answers each piece with a word before it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(100):
                writer.write(word + piece)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def said(port: int) -> bytes:
    """The answer to a new connection; b"" where it is broken."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    try:
        writer.write(b"x")
        return await reader.read(100)
    except OSError:
        return b""
    finally:
        writer.close()


async def test_a_link_leads_elsewhere_is_cut_and_held_and_loses_nothing_that_it_held() -> None:
    async with echo(b"one ") as one, echo(b"two ") as two:
        links = Links()
        try:
            link = links.make(one)
            assert await said(link.port) == b"one x"
            link.move(two)
            assert await said(link.port) == b"two x"
            link.cut()
            assert await said(link.port) == b""
            link.mend()
            assert await said(link.port) == b"two x"
            link.hold()
            waiting = asyncio.create_task(said(link.port))
            done, _ = await asyncio.wait([waiting], timeout=0.2)
            assert not done
            link.mend()
            assert await waiting == b"two x"
        finally:
            links.close()


@pytest.mark.full
async def test_what_was_committed_is_there_after_the_standby_took_the_place_of_the_primary() -> None:
    database, links = await asyncio.to_thread(Replicated), Links()
    try:
        link = links.make(database.primary.port)
        database.links.append(link)
        for number in range(2):
            connection = await asyncpg.connect(database.url(link))
            await connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
            await connection.execute("INSERT INTO kept VALUES ($1)", number)
            await connection.close()
            await asyncio.to_thread(database.fail_over)
        assert [row[0] for row in await database.query("SELECT n FROM kept ORDER BY n")] == [0, 1]
        assert database.is_covered
    finally:
        links.close()
        database.remove()
