"""Tools over HTTP by the rights of a key, and requests that are refused before them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.mcp.services import Need
from scrapy_ext.server.mcp.tools import TOOLS
from scrapy_ext.server.store import Store
from tests.support.agents import agent, called, tools_of
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

READ, RUN, MANAGE, EXTRACT = ({tool.name for tool in TOOLS if tool.need is need} for need in Need)
WRITE = RUN | MANAGE
_PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
_HEADERS = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_only_read_by_default(server: RunningServer, project: int, mode: str) -> None:
    async with agent(server.url, server.platform_key, mode) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READ
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
        refused = await called(client, "run_spider", project=project, spider="s")
    assert refused.is_error
    assert "--mcp-allow-write" in refused.facts["error"]
    async with Http(server.url, server.platform_key) as http:
        assert (await http.get(f"/api/jobs/count.json?project={project}")).json["total"] == 0


async def test_tools_say_what_they_may_do(offering: RunningServer) -> None:
    async with agent(offering.url, offering.platform_key) as client:
        tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    hints = {
        name: (of.read_only_hint, of.destructive_hint, of.open_world_hint)
        for name, of in tools.items()
        if of is not None
    }
    assert hints["list_items"] == (True, False, False)
    assert hints["run_spider"] == (False, False, True)
    assert hints["stop_job"] == hints["remove_schedule"] == (False, True, False)


async def test_a_key_of_a_project_without_data_learns_its_number(offering: RunningServer, project: int) -> None:
    store = await Store.open(offering.where)
    try:
        key = await add_key(store, f"agent-of-{project}", frozenset({project}), may_write=True)
    finally:
        await store.close()
    async with agent(offering.url, key) as client:
        listed = await called(client, "list_projects")
    assert [each["id"] for each in listed.records] == [project]


async def test_an_agent_on_a_fresh_server_learns_which_project_it_may_use(tmp_path: Path) -> None:
    with ForkedServer(tmp_path / "data", options=["--mcp-allow-write", "--no-runner"]) as fresh:
        async with agent(fresh.url, fresh.platform_key) as client:
            nothing = await called(client, "list_projects")
            assert (nothing.records, nothing.facts["total"]) == ([], 0)
            assert "needs no creation" in nothing.facts["note"]
            assert not (await called(client, "run_spider", project=1, spider="books")).is_error
            assert [each["id"] for each in (await called(client, "list_projects")).records] == [1]


async def test_a_key_gets_the_tools_that_it_may_use(offering: RunningServer, project: int) -> None:
    store = await Store.open(offering.where)
    try:
        reader = await add_key(store, "agent-reader", frozenset({project}), may_write=False)
        both = await add_key(store, "agent-both", frozenset({project}), may_write=True, extraction=True)
        gone = await add_key(store, "agent-gone", None, may_write=True)
        suspended = await add_key(store, "agent-suspended", None, may_write=True)
        await store.keys.suspend("agent-suspended", True)
        await store.keys.remove("agent-gone")
    finally:
        await store.close()
    for key, tools in (
        (reader, READ),
        (both, READ | WRITE | EXTRACT),
        (offering.platform_key, READ | WRITE),
        (offering.extract_key, EXTRACT),
    ):
        async with agent(offering.url, key) as client:
            assert await tools_of(client) == tools
    async with agent(offering.url, reader) as client:
        assert (await called(client, "list_jobs", project=project)).records == []
        other = await called(client, "list_jobs", project=project + 1)
        assert (other.is_error, other.facts["status"]) == (True, 403)
        refused = await called(client, "run_spider", project=project, spider="s")
        assert "may read, and not write" in refused.facts["error"]
    async with agent(offering.url, offering.extract_key) as client:
        refused = await called(client, "list_jobs", project=project)
        assert "no access to the platform" in refused.facts["error"]
    async with agent(offering.url, offering.platform_key) as client:
        refused = await called(client, "fetch_page", url="https://example.com/")
        assert "no access to extraction" in refused.facts["error"]
    async with Http(offering.url, gone) as http:
        assert (await http.post("/mcp", _PING, **_HEADERS)).status == 401
    async with Http(offering.url, suspended) as http:
        assert (await http.post("/mcp", _PING, **_HEADERS)).status == 403


async def test_requests_without_a_right_key_are_refused(offering: RunningServer) -> None:
    async with Http(offering.url, None) as http:
        for header in (
            None,
            "",
            "Bearer",
            "Bearer wrong",
            f"Bearer {offering.platform_key}:x",
            "Basic !!!",
            "Basic bm9ib2R5Og==",
            "Digest x",
        ):
            named = {} if header is None else {"Authorization": header}
            answer = await http.post("/mcp", _PING, **_HEADERS, **named)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Basic realm="API key"'), header
        # A key in an address would be in logs of others.
        answer = await http.post(f"/mcp?apikey={offering.platform_key}", _PING, **_HEADERS)
        assert answer.status == 401


async def test_a_key_is_accepted_as_basic_and_as_bearer(offering: RunningServer) -> None:
    async with Http(offering.url, offering.platform_key) as http:
        assert (await http.post("/mcp", _PING, **_HEADERS)).json["result"]["tools"]
    async with Http(offering.url, None) as http:
        bearer = {"Authorization": f"bearer {offering.platform_key}"}
        assert (await http.post("/mcp", _PING, **_HEADERS, **bearer)).json["result"]["tools"]


async def test_the_token_of_a_job_is_no_key_of_an_agent(offering: RunningServer, platform: Http, project: int) -> None:
    key = (await platform.post("/api/run.json", {"project": str(project), "spider": "s"})).json["jobid"]
    token = (await platform.get(f"/jobs/{key}/auth")).json
    async with Http(offering.url, key, token) as http:
        assert (await http.post("/mcp", _PING, **_HEADERS)).status == 401


async def test_requests_beside_the_protocol_are_refused(offering: RunningServer, platform: Http) -> None:
    for method in ("GET", "DELETE", "PUT"):
        answer = await platform.call(method, "/mcp")
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert (await platform.post("/mcp/x", _PING, **_HEADERS)).status == 404
    assert (await platform.post("/mcp//", _PING, **_HEADERS)).status == 404
    for origin, status in (("https://other.example", 403), ("null", 403), (offering.url, 200)):
        assert (await platform.post("/mcp", _PING, **_HEADERS, Origin=origin)).status == status
    large = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * 300_000}).encode()
    assert (await platform.post("/mcp", large, **_HEADERS)).status == 413
    for body in (b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"jsonrpc": "2.0"}'):
        answer = await platform.post("/mcp", body, **_HEADERS)
        assert (answer.status, answer.json["jsonrpc"]) == (400, "2.0"), body[:20]
    answer = await platform.post("/mcp", _PING, Content_Type="text/plain")
    assert (answer.status, "application/json" in answer.text) == (415, True)
    listen = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}).encode()
    for version in ({}, {"MCP_Protocol_Version": "2026-07-28"}, {"MCP_Protocol_Version": "1"}):
        answer = await platform.post("/mcp", listen, Content_Type="application/json", **version)
        assert "error" in answer.json, version
    assert "/mcp" not in (await platform.get("/openapi.json")).json["paths"]


async def test_a_slash_at_the_end_of_the_address_has_no_meaning(offering: RunningServer, platform: Http) -> None:
    assert (await platform.post("/mcp/", _PING, **_HEADERS)).json["result"]["tools"]
    answer = await platform.get("/mcp/")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_calls_are_counted_and_logged_under_the_id_of_their_message(
    offering: RunningServer, platform: Http
) -> None:
    message = {"method": "tools/call", "params": {"name": "get_job", "arguments": {"job": "77/1/1"}}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
    answer = await platform.post("/mcp", body, **_HEADERS, X_Request_ID="an-agent")
    assert answer.json["result"]["isError"]
    metrics = (await platform.get("/metrics")).text
    assert 'resource="mcp"' in metrics
    assert offering.platform_key not in offering.log()


@pytest.mark.long
async def test_the_rate_of_a_key_holds_for_its_tools(tmp_path: Path) -> None:
    options = ["--no-runner", "--rate-limit", "0.001", "--rate-burst", "6"]
    with ForkedServer(tmp_path / "data", options=options) as server:
        async with Http(server.url, server.platform_key) as http:
            message = {"method": "tools/call", "params": {"name": "list_projects", "arguments": {}}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
            answers = [await http.post("/mcp", body, **_HEADERS) for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        assert [answer.json["result"]["isError"] for answer in answers[:3]] == [False] * 3


async def test_a_server_without_the_sdk_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "mcp_types.py").write_text("raise ImportError('not installed')")
    environment = {"PYTHONPATH": str(tmp_path)}
    with ForkedServer(tmp_path / "data", options=["--no-runner"], environment=environment) as server:
        async with Http(server.url, server.platform_key) as http:
            answer = await http.post("/mcp", _PING, **_HEADERS)
            assert (answer.status, "pip install 'scrapy-ext[mcp]'" in answer.json["message"]) == (501, True)
            await eventually_async(lambda: http.get("/readyz"), lambda ready: ready.status == 200)
