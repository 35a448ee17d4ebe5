"""``scrapy platform mcp``: an agent starts it, and has the tools over its standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from scrapy_ext.server.mcp.services import Need
from scrapy_ext.server.mcp.tools import TOOLS
from tests.support.agents import called, tools_of
from tests.support.job_projects import write_project
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


@pytest.mark.parametrize("mode", ["legacy", "auto"])
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


async def test_a_wrong_key_is_an_error_of_each_tool(platform: Platform) -> None:
    environment = {**platform.environment, "PLATFORM_API_KEY": "0" * 32}
    async with over_stdio(platform.folder, environment) as client:
        reply = await called(client, "list_jobs", project=platform.project)
    assert (reply.is_error, reply.facts["status"]) == (True, 401)
    assert reply.data is not None
    assert "PLATFORM_API_KEY" in reply.data
    assert "0" * 32 not in reply.data


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


def test_standard_output_has_messages_alone_and_the_end_of_input_ends_it(platform: Platform) -> None:
    messages = [
        {"id": 1, "method": "initialize", "params": _HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "list_projects", "arguments": {}}},
    ]
    with subprocess.Popen(
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**platform.environment, "PYTHONWARNINGS": "always"},
        cwd=platform.folder,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        answers: list[Any] = []
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(60) == 0
        assert b"Traceback" not in process.stderr.read()
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert answers[0]["result"]["serverInfo"]["name"] == "scrapy-ext"
    assert f"The configured project is {platform.project}." in answers[0]["result"]["instructions"]


_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def test_without_the_sdk_it_says_how_to_get_it(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "mcp_types.py").write_text("raise ImportError('not installed')")
    environment = {**platform.environment, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        _COMMAND, env=environment, cwd=platform.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert (
        done.stderr.decode() == "scrapy platform mcp: the extra mcp is not installed: pip install 'scrapy-ext[mcp]'\n"
    )


def test_wrong_settings_are_reported_in_one_line(platform: Platform) -> None:
    environment = {**platform.environment, "PLATFORM_URL": "ftp://x"}
    done = scrapy("platform", "mcp", folder=platform.folder, environment=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "PLATFORM_URL: must be an http or https URL" in done.stderr
