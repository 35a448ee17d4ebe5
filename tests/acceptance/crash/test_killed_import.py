"""An import during which the client, its source or its target is killed: in the end all is there, and nothing twice."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from tests.support import terminal_commands
from tests.support.crash.lives import Platform
from tests.support.eventually import eventually
from tests.support.http import Http
from tests.support.imports import content, fill

ROUNDS = [
    pytest.param(1, id="once"),
    pytest.param(20, id="20 times", marks=[pytest.mark.full, pytest.mark.timeout(7200)]),
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def platforms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Platform]]:
    """A source on SQLite, and a target on either engine."""
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    folder = tmp_path_factory.mktemp("platforms")
    options = ("--no-runner",)
    source = Platform(folder / "source", options=options)
    target = Platform(folder / "target", options=options, database=database)
    yield [source, target]
    source.close()
    target.close()


async def filled(source: Platform, project: int) -> None:
    async with PlatformClient(PlatformUrls.single(source.url), source.key) as client:
        await fill(client, project, items=1500)


async def contents(platforms: list[Platform], project: int) -> list[dict[str, Any]]:
    found = []
    for platform in platforms:
        async with Http(platform.url, platform.key) as http:
            found.append(await content(http, project))
    return found


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("victim", ["client", "source", "target"])
def test_an_import_ends_with_all_and_nothing_twice(
    platforms: list[Platform], tmp_path: Path, victim: str, rounds: int
) -> None:
    source, target = platforms
    chance = random.Random()
    environment = {**os.environ, "PLATFORM_URL": target.url, "PLATFORM_API_KEY": target.key}
    command = terminal_commands.Platform(environment, tmp_path, 1)
    for _ in range(rounds):
        project = random.randrange(1, 10**9)
        asyncio.run(filled(source, project))
        arguments = ("import", "--from", source.url, "--project", str(project), "--rate", "10000")
        with command.start(*arguments, PLATFORM_IMPORT_KEY=source.key) as going:
            # Killed soon after its first write, or some time later.
            eventually(lambda project=project: going.process.poll() is not None or has_begun(target, project))
            time.sleep(chance.uniform(0, 0.5))
            if victim == "client":
                going.process.kill()
            else:
                (source if victim == "source" else target).start_again()
            going.end()
        done = command.run(*arguments, PLATFORM_IMPORT_KEY=source.key)
        # One that takes several seconds shows its progress, and nothing else.
        errors = [line for line in done.stderr.splitlines() if "copied so far: " not in line]
        assert (done.returncode, errors) == (0, [])
        given, have = asyncio.run(contents(platforms, project))
        assert have == given


def has_begun(target: Platform, project: int) -> bool:
    """Return true when an import has written something into a project."""
    return bool(asyncio.run(target.query(f"SELECT 1 FROM counters WHERE project = {project}")))
