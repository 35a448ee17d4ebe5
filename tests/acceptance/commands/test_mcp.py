"""``scrapy platform mcp``: an agent starts it, and has the tools over its standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from scrapy_ext.compatibility.python import Self
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.mcp.services import Need
from scrapy_ext.server.mcp.tools import TOOLS
from scrapy_ext.server.store import Store
from tests.support.agents import called, tools_of
from tests.support.eventually import TIMEOUT
from tests.support.job_projects import write_project
from tests.support.servers import ForkedServer
from tests.support.terminal_commands import Platform, scrapy

READ = {tool.name for tool in TOOLS if tool.need is Need.READ}
_COMMAND = [sys.executable, "-m", "scrapy", "platform", "mcp"]


@asynccontextmanager
async def over_stdio(
    folder: Path, environment: Mapping[str, str], *options: str, mode: str = "auto"
) -> AsyncIterator[Client]:
    """A client of the command, which it starts."""
    command, *arguments = [*_COMMAND, *options]
    server = StdioServerParameters(command=command, args=arguments, env=dict(environment), cwd=folder)
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_reads_the_platform_of_the_settings(platform: Platform, mode: str) -> None:
    (job,) = await asyncio.to_thread(platform.lines, "run", "books")
    async with over_stdio(platform.folder, platform.environment, mode=mode) as client:
        assert await tools_of(client) == READ
        (listed,) = (await called(client, "list_jobs", project=platform.project)).records
        assert (listed["id"], listed["state"]) == (job["id"], "pending")
        assert (await called(client, "get_job", job=job["id"])).json["metadata"]["spider"] == "books"
        assert (await called(client, "list_items", job=job["id"])).records == []
        refused = await called(client, "run_spider", project=platform.project, spider="other")
        assert "without --allow-write" in refused.facts["error"]
        missing = await called(client, "get_job", job=f"{platform.project}/9/9")
        assert (missing.is_error, missing.facts["status"]) == (True, 404)
    assert [row["spider"] for row in await asyncio.to_thread(platform.lines, "jobs")] == ["books"]


async def test_a_key_that_only_reads_gets_no_tools_that_write(tmp_path: Path) -> None:
    with ForkedServer(tmp_path / "data", options=["--no-runner"]) as server:
        store = await Store.open(server.where)
        try:
            reader = await add_key(store, "reader", None, may_write=False)
        finally:
            await store.close()
        own = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": reader, "PLATFORM_PROJECT": "7"}
        environment = {**os.environ, **own}
        async with over_stdio(tmp_path, environment, "--allow-write") as client:
            tools = await tools_of(client)
            refused = await called(client, "run_spider", project=7, spider="books")
    assert tools == READ | {tool.name for tool in TOOLS if tool.need is Need.EXTRACT}
    assert "may read, and not write" in refused.facts["error"]


@pytest.mark.long
async def test_a_wrong_key_is_an_error_of_each_tool(platform: Platform) -> None:
    environment = {**platform.environment, "PLATFORM_API_KEY": "0" * 32}
    async with over_stdio(platform.folder, environment) as client:
        reply = await called(client, "list_jobs", project=platform.project)
    assert (reply.is_error, reply.facts["status"]) == (True, 401)
    assert reply.data is not None
    assert "PLATFORM_API_KEY" in reply.data
    assert "0" * 32 not in reply.data


@pytest.mark.long
async def test_an_agent_crawls_with_the_embedded_server(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project")
    async with over_stdio(project, {}, "--allow-write") as client:
        assert await tools_of(client) == {tool.name for tool in TOOLS}
        spiders = (await called(client, "list_spiders", project=1)).records
        assert "quick" in {spider["id"] for spider in spiders}
        key = (await called(client, "run_spider", project=1, spider="quick", arguments={"n": "4"})).facts["job"]
        while not (waited := await called(client, "wait_for_job", job=key, seconds=60)).facts["finished"]:
            pass
        assert waited.json["close_reason"] == "finished"
        items = await called(client, "list_items", job=key)
        assert items.records == [{"number": number} for number in range(4)]


class Started:
    """The command, and messages to it without a client."""

    def __init__(self, platform: Platform) -> None:
        self.process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**platform.environment, "PYTHONWARNINGS": "always"},
            cwd=platform.folder,
        )

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def answer(self, **message: Any) -> Any:
        """Send a message, and return the line that answers it."""
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode())
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, bytes, str]:
        """Wait until it has ended; its exit code, and the rest of both outputs."""
        output, errors = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, output, errors.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.long
def test_standard_output_has_messages_alone_and_the_end_of_input_ends_it(platform: Platform) -> None:
    with Started(platform) as started:
        hello = started.answer(id=1, method="initialize", params=_HELLO)
        assert hello["result"]["serverInfo"]["name"] == "scrapy-ext"
        assert f"The configured project is {platform.project}." in hello["result"]["instructions"]
        started.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())
        for noise in (b"", b"{", b"\xff", b'"text"', b"[" * 10_000):
            started.send(noise)
        called = {"name": "list_projects", "arguments": {}}
        while (answer := started.answer(id=2, method="tools/call", params=called)).get("id") != 2:
            assert "error" in answer
        assert answer["result"]["isError"] is False
        code, output, errors = started.end()
    assert code == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in output.splitlines())
    assert "Traceback" not in errors


@pytest.mark.long
def test_ctrl_c_ends_it_while_it_waits_for_a_message(platform: Platform) -> None:
    with Started(platform) as started:
        started.answer(id=1, method="initialize", params=_HELLO)
        started.process.send_signal(signal.SIGINT)
        assert started.process.wait(TIMEOUT) == 130
        assert "Traceback" not in started.end()[2]


@pytest.mark.long
def test_a_message_without_end_ends_it_with_the_reason(platform: Platform) -> None:
    with Started(platform) as started:
        started.answer(id=1, method="initialize", params=_HELLO)
        with contextlib.suppress(BrokenPipeError):
            started.send(b"x" * 2**21)
        code, _, errors = started.end()
    assert (code, errors) == (1, "scrapy platform mcp: a message has over 1048576 bytes; send less\n")


_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.long
def test_without_the_sdk_it_says_how_to_get_it(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "mcp_types.py").write_text("raise ImportError('not installed')")
    environment = {**platform.environment, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        _COMMAND, check=False, env=environment, cwd=platform.folder, input=b"", capture_output=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (1, b"")
    missing = "the extra mcp is not installed: pip install 'scrapy-ext[mcp]'"
    assert done.stderr.decode() == f"scrapy platform mcp: {missing}\n"


def test_wrong_settings_are_reported_in_one_line(platform: Platform) -> None:
    environment = {**platform.environment, "PLATFORM_URL": "ftp://x"}
    done = scrapy("platform", "mcp", folder=platform.folder, environment=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "PLATFORM_URL must be an http or https URL" in done.stderr
