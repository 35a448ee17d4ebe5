"""``scrapy extract`` against a service that plays what a healthy one does not show, and under signals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.extraction import CAUSE_HEADER, Cause, Problem
from scrapy_ext.commands.extraction.input_lines import InputLine, LineParser, Source
from scrapy_ext.commands.extraction.progress import Numbers
from scrapy_ext.commands.extraction.records import Recorder, RecordWriter
from scrapy_ext.commands.extraction.resume import Comparison, Done
from scrapy_ext.commands.extraction.run import MOST, ExtractRun, ExtractService
from scrapy_ext.compatibility.python import timeout_after
from tests.support import forked
from tests.support.eventually import eventually_async
from tests.support.played_server import PlayedServer, Reply, Request, json_reply

KEY = "0123456789abcdef0123456789abcdef"
PAGE = {"statusCode": 200, "httpResponseBody": "PHA+"}


def answered(request: Request) -> Reply:
    return json_reply({"url": request.json()["url"], **PAGE})


def problem(type: str, retry_after: int | None = None) -> Reply:
    problem = Problem.of(type, "because", blocked_domain="shop.example" if "forbidden" in type else None)
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Reply(problem.status, msgspec.json.encode(problem), "application/problem+json", headers)


@dataclass
class Running:
    """A run of the command that was started."""

    process: subprocess.Popen[bytes] | forked.ForkedProcess

    async def heard(self, words: str) -> str:
        """Wait for a line on standard error."""
        assert self.process.stderr is not None
        async with timeout_after(60):
            while words not in (line := (await asyncio.to_thread(self.process.stderr.readline)).decode()):
                assert line, f"it ended without {words!r}"
        return line

    async def ended(self) -> tuple[int, str]:
        """Exit code, and what was still to hear."""
        assert self.process.stderr is not None
        async with timeout_after(60):
            with self.process.stderr as stream:
                problem = (await asyncio.to_thread(stream.read)).decode()
            return await asyncio.to_thread(self.process.wait), problem


@dataclass
class Desk:
    """A folder to work in, and the played service."""

    folder: Path
    server: PlayedServer

    def write(self, urls: Sequence[str]) -> None:
        (self.folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls))

    async def start(self, *arguments: str) -> Running:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("EXTRACT_API_", "PLATFORM_", "SCRAPY_"))
        }
        process = await asyncio.to_thread(
            forked.start,
            [sys.executable, "-m", "scrapy", "extract", "-i", "urls.txt", "-o", "out.jsonl", *arguments],
            cwd=self.folder,
            env={**kept, "EXTRACT_API_URL": f"{self.server.url}/v1", "EXTRACT_API_KEY": KEY},
            stderr=subprocess.PIPE,
        )
        return Running(process)

    async def run(self, *arguments: str) -> tuple[int, str]:
        return await (await self.start(*arguments)).ended()

    @property
    def records(self) -> list[dict[str, Any]]:
        output = self.folder / "out.jsonl"
        return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    server = PlayedServer()
    await server.start()
    yield Desk(tmp_path, server)
    await server.stop()


def urls(count: int, *sites: str) -> list[str]:
    return [f"https://{site}/{number}" for number in range(count) for site in sites or ("shop.example",)]


@pytest.mark.long
async def test_a_service_without_a_browser_stops_at_once_with_the_remedy(desk: Desk) -> None:
    desk.write(urls(50))
    missing = problem("/request/unprocessable")
    missing.headers[CAUSE_HEADER] = Cause.NO_BROWSER.value
    desk.server.script = [missing]
    status, said = await desk.run("--concurrency", "4", "--markdown", "pages")
    assert (status, len(said.splitlines())) == (1, 1)
    assert """--params '{"extractFrom": "httpResponseBody"}'""" in said
    assert len(desk.server.requests) <= 4
    assert desk.records == []


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("type", "advice"),
    [("/auth/key-not-found", "Check the setting EXTRACT_API_KEY"), ("/auth/account-suspended", "403")],
)
async def test_a_refused_key_stops_at_once_with_one_error(desk: Desk, type: str, advice: str) -> None:
    desk.write(urls(50))
    desk.server.script = [problem(type)]
    status, said = await desk.run("--concurrency", "4")
    assert status == 1
    assert len(said.splitlines()) == 1
    assert advice in said
    assert KEY not in said
    assert len(desk.server.requests) <= 4
    assert desk.records == []
    desk.server.script = answered
    status, said = await desk.run()
    assert (status, len(desk.records)) == (0, 50)


@pytest.mark.long
async def test_an_address_where_no_such_service_is_is_reported_at_once(desk: Desk) -> None:
    desk.write(urls(50))
    desk.server.script = [Reply(200, b"<html>Welcome", "text/html")]
    status, said = await desk.run("-s", 'EXTRACT_API_RETRY_POLICY={"unexpected-answer": 1}')
    assert (status, len(said.splitlines())) == (1, 1)
    assert "EXTRACT_API_URL" in said
    assert desk.records == []


@pytest.mark.long
async def test_a_failure_is_recorded_as_the_service_reported_it(desk: Desk) -> None:
    replies = {
        "/1": problem("/download/domain-forbidden"),
        "/2": problem("/download/temporary-error", 7),
        "/3": Reply(200, b"<html>", "text/html"),
        "/4": json_reply({"url": "https://shop.example/4", "httpResponseBody": "not Base64!"}),
        "/5": Reply(418, b"", None),
    }
    desk.server.script = lambda request: replies.get(f"/{request.json()['url'][-1]}") or answered(request)
    desk.write(urls(6))
    policy = 'EXTRACT_API_RETRY_POLICY={"unexpected-answer": 1, "/download/temporary-error": 1}'
    status, said = await desk.run("--decode", "--concurrency", "1", "-s", policy)
    assert status == 1
    assert "6 lines: 1 answered, 5 failed" in said
    errors = {record["url"][-1]: record.get("error", {}) for record in desk.records}
    assert errors["0"] == {}
    assert errors["1"] == {
        "status": 451, "type": "/download/domain-forbidden", "title": "Domain Forbidden", "detail": "because",
        "blockedDomain": "shop.example",
    }  # fmt: skip
    assert (errors["2"]["status"], errors["2"]["retryAfter"]) == (520, 7)
    assert (errors["3"]["type"], errors["3"]["title"]) == ("unexpected-answer", "Unexpected Answer")
    assert "httpResponseBody of the answer is not Base64" in errors["4"]["detail"]
    assert errors["5"]["status"] == 418
    assert errors["5"]["type"]


@pytest.mark.long
async def test_a_failed_line_is_done_again_with_retry_failed_alone(desk: Desk) -> None:
    desk.write(urls(3))
    desk.server.script = lambda request: (
        problem("/download/internal-error") if request.json()["url"].endswith("1") else answered(request)
    )
    assert (await desk.run())[0] == 1
    assert (await desk.run())[0] == 1
    assert len(desk.server.requests) == 3
    desk.server.script = answered
    assert (await desk.run("--retry-failed"))[0] == 0
    assert len(desk.server.requests) == 4
    assert sorted((record["line"], "result" in record) for record in desk.records) == [(1, True), (2, True), (3, True)]


@pytest.mark.long
async def test_a_throttled_site_does_not_hold_up_the_others(desk: Desk) -> None:
    desk.write(urls(60, "busy.example", "shop.example"))
    limit = problem("/limits/over-domain-limit", 600)
    desk.server.script = lambda request: limit if "busy" in request.json()["url"] else answered(request)
    running = await desk.start("--concurrency", "4")
    await eventually_async(lambda: len(desk.records) == 60)
    running.process.send_signal(signal.SIGINT)
    status, said = await running.ended()
    assert status == 130
    assert "Stopped with 60 of 120 lines done" in said
    assert {record["url"].split("/")[2] for record in desk.records} == {"shop.example"}
    assert sum("busy" in request.json()["url"] for request in desk.server.requests) <= 4


# ── signals ──


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.full)]
)
async def test_the_first_signal_lets_what_is_in_flight_finish(desk: Desk, number: int, status: int) -> None:
    desk.write(urls(50))
    release = asyncio.Event()
    desk.server.script = [json_reply({"url": "https://shop.example/", **PAGE}, until=release)]
    running = await desk.start("--concurrency", "3")
    await eventually_async(lambda: len(desk.server.requests) == 3)
    running.process.send_signal(number)
    await running.heard("waiting for 3 in flight; press Ctrl-C again to stop at once")
    release.set()
    ended, said = await running.ended()
    assert ended == status
    assert said == "scrapy extract: Stopped with 3 of 50 lines done; the same command continues from here.\n"
    assert len(desk.records) == len(desk.server.requests) == 3
    assert (await desk.run())[0] == 0
    assert sorted(record["line"] for record in desk.records) == [*range(1, 51)]


@pytest.mark.long
async def test_the_second_signal_ends_at_once(desk: Desk) -> None:
    desk.write(urls(50))
    desk.server.script = [json_reply({"url": "https://shop.example/", **PAGE}, until=asyncio.Event())]
    running = await desk.start("--concurrency", "3")
    await eventually_async(lambda: len(desk.server.requests) == 3)
    running.process.send_signal(signal.SIGINT)
    await running.heard("press Ctrl-C again to stop at once")
    running.process.send_signal(signal.SIGINT)
    status, said = await running.ended()
    assert (status, desk.records) == (130, [])
    assert said == "scrapy extract: Stopped with 0 of 50 lines done; the same command continues from here.\n"


# ── bounds ──


class Counted(Source, frozen=True, kw_only=True):
    """A million sites, of which it is counted how many were read."""

    counter: list[int]

    def lines(self) -> Iterator[list[InputLine]]:
        for number in range(1, 1_000_001):
            self.counter[0] = number
            yield [InputLine(number, b"https://shop%d.example/" % number)]


@asynccontextmanager
async def a_run(server: PlayedServer, concurrency: int, file: int) -> AsyncIterator[tuple[ExtractRun, list[int]]]:
    """A run in this process, whose lines can be counted."""
    from scrapy.settings import Settings

    settings = Settings({"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": KEY})
    service, counter = ExtractService(settings, concurrency), [0]
    comparison = Comparison(Counted(counter=counter), LineParser({}, {}), None)
    run = ExtractRun(service, comparison, Recorder(), RecordWriter(file), Numbers(None, Done()))
    async with service.opened(run.fail):
        working = asyncio.create_task(run.work())
        try:
            yield run, counter
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def settled(read: Callable[[], object]) -> None:
    """Until nothing has changed for a while."""
    before, same = read(), 0
    while same < 10:
        await asyncio.sleep(0.02)
        same = same + 1 if read() == before else 0
        before = read()


async def test_of_a_million_lines_a_few_are_read_while_the_service_is_slow(desk: Desk) -> None:
    desk.server.script = [json_reply({"url": "https://shop.example/", **PAGE}, until=asyncio.Event())]
    with (desk.folder / "out").open("wb") as file:
        async with a_run(desk.server, 5, file.fileno()) as (run, counter):
            await eventually_async(lambda: counter[0] >= MOST and len(desk.server.requests) == 5)
            await settled(lambda: (counter[0], len(desk.server.requests)))
            assert len(desk.server.requests) == run.in_flight == 5
            assert counter[0] <= MOST + 10


async def test_a_reader_that_is_slow_slows_the_requests_down(desk: Desk) -> None:
    desk.server.script = [json_reply({"url": "https://shop.example/", "httpResponseBody": "AAAA" * 12_500})]
    ours, theirs = os.pipe()
    async with a_run(desk.server, 5, theirs):
        await eventually_async(lambda: len(desk.server.requests) >= 5)
        await settled(lambda: len(desk.server.requests))
        # The pipe holds one or two records, and those in flight wait for it.
        sent = len(desk.server.requests)
        assert sent <= 10
        read = 0
        while len(desk.server.requests) == sent:
            read += len(await asyncio.to_thread(os.read, ours, 65536))
        os.close(ours)  # Or the write that is under way never ends.
    os.close(theirs)


async def test_requests_that_wait_for_another_attempt_lend_their_place_but_not_without_bound(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_ext.commands.extraction.run._MOST_HELD", 100)
    desk.server.script = lambda _request: problem("/download/temporary-error", 600)
    with (desk.folder / "out").open("wb") as file:
        async with a_run(desk.server, 5, file.fileno()) as (run, _counter):
            await eventually_async(lambda: len(desk.server.requests) >= 105)
            await settled(lambda: len(desk.server.requests))
            assert len(desk.server.requests) == run.in_flight == 105
