"""``scrapy platform users`` as its user runs it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator

import pytest

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.users import Account
from tests.support.servers import ForkedServer, RunningServer
from tests.support.terminal_commands import scrapy

ISSUER = "https://login.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with two people who have logged in; both have one name."""
    data = tmp_path_factory.mktemp("users") / "data"

    async def log_in() -> None:
        store = await Store.open(data)
        await store.users.log_in(Account(ISSUER, "1", "Ada", "ada@example.com", ("ops",)))
        await store.users.log_in(Account(ISSUER, "2", "Ada", "", ()))
        await store.close()

    asyncio.run(log_in())
    with ForkedServer(data, options=["--no-runner"]) as server:
        yield server


def run(server: RunningServer, *arguments: str) -> tuple[int, str, str]:
    environment = {**os.environ, "PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key}
    done = scrapy("platform", "users", *arguments, environment=environment, folder=server.data)
    return done.returncode, done.stdout, done.stderr


def listed(server: RunningServer) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(server, "list", "--json")[1].splitlines()]


def roles(server: RunningServer) -> list[tuple[object, object]]:
    return [(role["project"], role["role"]) for role in listed(server)[0]["roles"]]  # type: ignore[attr-defined]


def test_roles_are_given_and_removed_and_a_user_is_disabled_enabled_and_removed(server: RunningServer) -> None:
    assert [user["user"] for user in listed(server)] == ["ada@example.com", "Ada (user 2)"]
    assert run(server, "grant", "ada@example.com", "run", "7", "8") == (0, "", "ada@example.com: 7: run, 8: run\n")
    assert run(server, "grant", "ADA@example.com", "view", "all")[0] == 0
    assert roles(server) == [(None, "view"), (7, "run"), (8, "run")]
    assert run(server, "revoke", "1", "7", "all")[2] == "ada@example.com: 8: run\n"
    assert run(server, "disable", "ada@example.com") == (0, "", "")
    assert listed(server)[0]["disabled"] is True
    assert run(server, "enable", "1") == (0, "", "")
    assert run(server, "remove", "Ada (user 2)") == (0, "", "")
    assert [user["id"] for user in listed(server)] == [1]


def test_mistakes_are_one_line_that_says_what_to_do(server: RunningServer) -> None:
    for arguments, message in (
        (["grant", "eve@example.com", "run", "7"], "there is no user eve@example.com; `scrapy platform users` lists"),
        (["grant", "ada@example.com", "run"], "name the projects, or all"),
        (["grant", "ada@example.com", "run", "x"], "must be a number or all"),
        (["disable", "99"], "There is no user 99."),
    ):
        code, out, error = run(server, *arguments)
        assert (code, out) == (1, ""), arguments
        assert message in error
        assert error.count("\n") == 1
    assert run(server, "grant", "ada@example.com", "root", "7")[0] == 2
