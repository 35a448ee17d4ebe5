"""Servers that are killed while many write to them: what was answered with 200 is there, and nothing twice."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.acknowledged_writes import write_through
from tests.support.crash.lives import Platform
from tests.support.http import Http
from tests.support.postgresql import Cluster

TIMES = [3, pytest.param(50, marks=[pytest.mark.full, pytest.mark.timeout(3600)])]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None


async def killed_in_turn(folder: Path, database: str | None, servers: int, times: int) -> None:
    platforms = [Platform(folder, database=database)]
    platforms += [Platform(folder, database=database, key=platforms[0].key) for _ in range(servers - 1)]
    try:

        async def kill(turn: int) -> None:
            platform = platforms[turn % servers]
            await asyncio.to_thread(platform.kill)
            await asyncio.to_thread(platform.start_again)

        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(Http(each.url, each.key)) for each in platforms]
            call = await write_through(clients, times, times, kill)
        assert call.broken >= times
    finally:
        for platform in platforms:
            platform.close()


@pytest.mark.parametrize("times", TIMES)
async def test_a_server_that_is_killed_has_what_it_has_answered_and_nothing_twice(
    tmp_path: Path, database: str | None, times: int
) -> None:
    await killed_in_turn(tmp_path, database, 1, times)


@pytest.mark.parametrize("times", TIMES)
async def test_two_servers_on_one_postgresql_are_killed_in_turn(
    tmp_path: Path, postgresql: Cluster, times: int
) -> None:
    await killed_in_turn(tmp_path, postgresql.database(), 2, times)


@pytest.mark.full
@pytest.mark.timeout(3600)
async def test_two_servers_on_one_file_are_killed_in_turn(tmp_path: Path) -> None:
    await killed_in_turn(tmp_path, None, 2, 20)
