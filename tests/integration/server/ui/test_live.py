"""Logs that go on live: server-sent events, which end with their client and with the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.ui.live import MAX_STREAMS
from tests.integration.server.ui.test_pages import job
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

#: Seconds for what comes within one, on a machine that does much else.
TIMEOUT = 180


class Stream:
    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def event(self) -> tuple[str, Any, str]:
        """The next event: its name, its data, its id."""
        fields: dict[str, str] = {}
        async with timeout_after(TIMEOUT):
            while True:
                line = (await self.answer.content.readline()).decode()
                assert line, "the stream has ended"
                name, _, value = line.rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    return fields["event"], json.loads(fields["data"]), fields["id"]
                else:
                    fields = {}


def credentials(server: RunningServer) -> dict[str, str]:
    return {"Authorization": aiohttp.encode_basic_auth(server.platform_key, "")}


@asynccontextmanager
async def stream(server: RunningServer, path: str, **headers: str) -> AsyncIterator[Stream]:
    named = {name.replace("_", "-"): value for name, value in headers.items()} | credentials(server)
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(headers=named, timeout=timeout) as session,
        session.get(server.url + path) as answer,
    ):
        yield Stream(answer)


def lines(first: int, number: int, level: int = 20) -> list[dict[str, Any]]:
    return [{"time": n, "level": level, "message": f"Line {n} <b>"} for n in range(first, first + number)]


async def test_lines_come_as_they_are_written_and_the_end_is_reported(
    server: RunningServer, http: Http, project: int
) -> None:
    key = await job(http, project)
    await http.post(f"/logs/{key}", lines(0, 3))
    async with stream(server, f"/ui/{key}/log/live?after=2") as live:
        assert live.answer.headers["Content-Type"].startswith("text/event-stream")
        assert live.answer.headers["Cache-Control"] == "no-store"
        name, data, number = await live.event()
        assert (name, number, data["leftOut"]) == ("lines", "3", 0)
        assert data["lines"] == [[2, "1970-01-01 00:00:00", 20, "INFO", "Line 2 <b>", False]]
        await http.post(f"/logs/{key}", lines(3, 2))
        name, data, number = await live.event()
        assert (name, number, [line[0] for line in data["lines"]]) == ("lines", "5", [3, 4])
        await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
        assert (await live.event())[:2] == ("end", "finished")
        assert await live.answer.content.read() == b""


async def test_a_client_that_comes_back_goes_on_where_it_was(server: RunningServer, http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/logs/{key}", [*lines(0, 5), *lines(5, 1, 40), *lines(6, 3)])
    async with stream(server, f"/ui/{key}/log/live?after=0&level=40", Last_Event_ID="4") as live:
        _, data, number = await live.event()
        assert ([line[0] for line in data["lines"]], number) == ([5], "9")


async def test_of_many_lines_at_once_the_last_are_sent(server: RunningServer, http: Http, project: int) -> None:
    key = await job(http, project)
    await http.post(f"/logs/{key}", lines(0, 5000))
    async with stream(server, f"/ui/{key}/log/live?after=0") as live:
        _, data, _ = await live.event()
    assert data["leftOut"] == 4000
    assert [line[0] for line in data["lines"]] == list(range(4000, 5000))


async def test_the_number_of_live_pages_is_bounded_and_they_end_with_their_clients(
    server: RunningServer, http: Http, project: int
) -> None:
    key = await job(http, project)
    path = f"/ui/{key}/log/live"

    async def status() -> int:
        async with stream(server, path) as live:
            return live.answer.status

    async with aiohttp.ClientSession(headers=credentials(server), connector=aiohttp.TCPConnector(limit=0)) as session:
        opened = [await session.get(server.url + path) for _ in range(MAX_STREAMS)]
        assert {answer.status for answer in opened} == {200}
        assert await status() == 503
        for answer in opened:
            answer.close()
        await eventually_async(status, lambda code: code == 200)


async def test_a_server_that_ends_waits_for_no_live_page(tmp_path: Path) -> None:
    with ForkedServer(tmp_path / "data") as server:
        async with Http(server.url, server.platform_key) as http:
            key = await job(http, 1)
        async with stream(server, f"/ui/{key}/log/live") as live:
            ended = asyncio.create_task(asyncio.to_thread(server.terminate))
            async with timeout_after(TIMEOUT):
                await live.answer.content.read()  # ends, and is not cut off
                assert await ended == 0
        assert "did not end within" not in server.log()
        assert "slow" not in server.log()
