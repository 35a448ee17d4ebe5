"""Agents: the SDK's own client, and what it reads of a result."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


class Reply(NamedTuple):
    """The result of a tool: its facts, and the text between the marks, if it has any."""

    facts: dict[str, Any]
    data: str | None
    is_error: bool
    texts: list[str]

    @property
    def records(self) -> list[Any]:
        """The records of a listing."""
        assert self.data is not None
        return [json.loads(line) for line in self.data.split("\n") if line]

    @property
    def json(self) -> Any:
        assert self.data is not None
        return json.loads(self.data)


@asynccontextmanager
async def agent(url: str, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a server's ``/mcp``; ``mode``: ``legacy`` begins with the handshake of older clients."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=120) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Reply:
    """Call a tool, and take its result apart as its notice says."""
    result = await client.call_tool(tool, arguments)
    texts = [content.text for content in result.content]  # type: ignore[union-attr]
    facts = json.loads(texts[0])
    data = None
    if len(texts) > 1:
        marks = re.search(r"between <(untrusted-data-[0-9a-f]{16})> and </\1>", facts["notice"])
        assert marks is not None
        beginning, end = f"<{marks[1]}>\n", f"\n</{marks[1]}>"
        assert texts[1].startswith(beginning)
        assert texts[1].endswith(end)
        data = texts[1][len(beginning) : -len(end)]
        assert marks[1] not in data
    return Reply(facts, data, result.is_error, texts)


async def tools_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}
