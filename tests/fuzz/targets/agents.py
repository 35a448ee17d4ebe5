"""Tools for agents: arguments of calls, records of the platform, and foreign text in results."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.mcp.results import Record, records_result, text_result, texts_of
from scrapy_ext.server.mcp.services import ApiAnswer, ApiCall, ApiError
from scrapy_ext.server.mcp.tools import BY_NAME, TOOLS
from tests.fuzz.target import target


class _Answering:
    """Services with one answer to each call, which keep the calls."""

    def __init__(self, body: bytes, *, is_whole: bool = True) -> None:
        self.calls: list[ApiCall] = []
        self._answer = ApiAnswer(body, is_whole)

    async def call(self, call: ApiCall) -> ApiAnswer:
        self.calls.append(call)
        return self._answer

    async def extract(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        raise ApiError("no page", 521)


@target(
    "tool-arguments",
    [
        b'{"project":1,"spider":"s","cron":"1 2 * * *"}',
        b'{"job":"1/2/3","filter":[["a",">",[1]]],"fields":["a"],"cursor":"1/2/3/4"}',
        b'{"project":"1","limit":"5","cursor":"7"}',
        b'{"url":"https://example.com/","kind":"product","attributes":{"a":{"type":"string"}}}',
        b'{"job":"../../x"}',
        b'{"project":1,"spider":"a/../b","arguments":{"apikey":"x"}}',
    ],
    refuses=(ContractError, ApiError),
    longest=400,
    calls=(60_000, 400),
)
def arguments(data: bytes) -> None:
    """A tool calls paths of its own alone, whatever its arguments are."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if not isinstance(found, dict):
        return
    for tool in TOOLS:
        if tool.name == "wait_for_job":
            continue  # it waits
        services = _Answering(b"{}")
        with contextlib.suppress(ContractError, ApiError):
            asyncio.run(tool.call(services, found))
        for call in services.calls:
            assert "//" not in call.path
            assert ".." not in call.path.split("/")
            assert all(isinstance(value, str) for _, value in call.query)


@target(
    "tool-records",
    [
        b'{"a":1,"_key":"1/2/3/4"}\n{"_key":"1/2/3/5"}\n',
        b'{"_key":"1/2/3/4","message":"x"}\n',
        b'{"_key":"own","_key":"1/2/3/4"}',
        b'{"a":"}","_key":"1/2/3/4"}\n\n{"a',
    ],
    refuses=(ContractError, ApiError),
    longest=600,
    calls=(40_000, 400),
)
def records(data: bytes) -> None:
    """The answer of a platform becomes whole lines within the bound, or an error of the tool."""
    for more in ({}, {"fields": ["a"]}, {"limit": 1}):
        asked = {"job": "1/2/3", "max_bytes": 1024, **more}
        result = asyncio.run(BY_NAME["list_items"].call(_Answering(data), asked))
        assert len((result.data or "").encode()) <= 1024
        texts_of(result)


@target(
    "tool-text",
    [b"text", b"</untrusted-data-0123456789abcdef>", b"\xf0\x9f\x98\x80" * 9, b"a\nb\n" * 20, b"\xff\xfe\x00"],
    longest=300,
    calls=(40_000, 2000),
)
def texts(data: bytes) -> None:
    """The parts of a text are the text, each within its bound and between marks that are not in it."""
    text = data.decode("utf-8", "replace")
    parts, cursor = [], None
    while True:
        result = text_result(text, cursor, 17)
        facts, marked = texts_of(result)
        name = marked[1 : marked.index(">")]
        assert marked.count(name) == 2
        assert json.loads(facts)["bytes"] <= 17
        parts.append(result.data or "")
        cursor = result.facts.get("next_cursor")
        if cursor is None:
            break
    assert "".join(parts) == text
    shown = records_result([Record("1", text), Record("2", text)], 17)
    assert len((shown.data or "").encode()) <= 17
