"""Operation of a server: health, metrics, logs, rate limits, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from scrapy_ext.api.violations import CONTROL_CHARACTERS
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.auth.rates import BURST, RateLimits
from scrapy_ext.server.logs import JsonLines, Lines
from scrapy_ext.server.store import Store
from tests.support.eventually import TIMEOUT, eventually, eventually_async
from tests.support.http import Http
from tests.support.raw_connection import Raw
from tests.support.servers import RunningServer


@pytest.fixture(scope="module")
def logging_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that logs JSON, takes every request for slow, limits rates, and shows metrics to anyone."""
    options = ["--log-format", "json", "--slow-request", "0.000001", "--open-metrics", "--rate-limit", "0.01"]
    with RunningServer(tmp_path_factory.mktemp("logging_server"), options=[*options, "--rate-burst", "5"]) as server:
        yield server


def logged(server: RunningServer) -> list[dict[str, Any]]:
    """The lines of its log, every one of which is JSON."""
    return [json.loads(line) for line in server.log().splitlines()]


def values(text: str) -> dict[str, float]:
    """Samples of the metrics, and a check of the form of each line."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP \w+ .+\.|TYPE \w+ (counter|gauge|histogram))", line), line
            continue
        match = re.fullmatch(r'(\w+(?:\{(?:\w+="[^"\\]*",?)+\})?) ([0-9.e+-]+)', line)
        assert match, line
        assert match[1] not in found
        found[match[1]] = float(match[2])
    return found


# ── ids ──


async def test_every_answer_has_the_id_of_its_request(http: Http) -> None:
    seen = set()
    for path in ("/items/1/1/1", "/nothing", "/items/x", "/healthz", "/", "/v1/extract", "/api/run.json"):
        seen.add((await http.get(path)).headers["X-Request-ID"])
        assert (await http.get(path, X_Request_ID="from-a.proxy_1")).headers["X-Request-ID"] == "from-a.proxy_1"
    assert len(seen) == 7
    for odd in ("", "a" * 65, "a b", 'x"y', "ä"):
        assert (await http.get("/healthz", X_Request_ID=odd)).headers["X-Request-ID"] not in ("", odd)


# ── health ──


async def test_anyone_may_ask_whether_it_is_well(server: RunningServer) -> None:
    async with Http(server.url, None) as http:
        assert (await http.get("/healthz")).text == "ok\n"
        answer = await http.get("/readyz")
        assert (answer.status, answer.json) == (200, {"status": "ok"})


@pytest.mark.long
async def test_a_full_disk_is_not_ready_and_says_why_to_who_has_the_key(tmp_path: Path) -> None:
    with RunningServer(tmp_path, file_limit=2_000_000) as server:
        async with Http(server.url, server.platform_key) as http, Http(server.url, None) as stranger:
            assert (await http.get("/readyz")).status == 200
            blob, start = os.urandom(40_000).hex(), 0
            while (answer := await http.post(f"/items/1/1/1?start={start}", [{"blob": blob}])).status == 200:
                start += 1
            assert answer.status == 507
            assert answer.json["request_id"] == answer.headers["X-Request-ID"]
            while (await http.post(f"/items/1/1/1?start={start}", [{"n": start}])).status == 200:
                start += 1  # the last of the room
            # What was seen holds for a moment.
            answer = await eventually_async(lambda: http.get("/readyz"), lambda answer: answer.status != 200)
            assert (answer.status, answer.json["status"]) == (503, "unavailable")
            assert "make room" in answer.json["message"]
            assert (await stranger.get("/readyz")).json == {"status": "unavailable"}
            async with Http(server.url, "wrong") as guesser:
                guesses = await asyncio.gather(*(guesser.get("/readyz") for _ in range(2 * BURST)))
            assert {guess.status for guess in guesses} == {503, 429}
            assert not any("make room" in guess.text for guess in guesses)
            assert (await stranger.get("/healthz")).status == 200
        log = server.log()
    assert "The server is not ready" in log
    assert re.search(r"WARNING scrapy_ext.server.requests: POST /items/1/1/1 507 .*who=api", log)


# ── metrics ──


async def test_metrics_need_a_key_that_opens_all_projects(server: RunningServer) -> None:
    store = await Store.open(server.where)
    try:
        limited = await add_key(store, "limited-metrics", frozenset({1}), may_write=True)
    finally:
        await store.close()
    for key in (None, "", "wrong", server.extract_key):
        async with Http(server.url, key) as http:
            answer = await http.get("/metrics")
            assert (answer.status, "scrapy_ext" in answer.text) == (401, False)
    async with Http(server.url, limited) as http, timeout_after(60):
        answer = await eventually_async(lambda: http.get("/metrics"), lambda answer: answer.status != 401)
        assert answer.status == 403
        assert "limited-metrics is limited to projects" in answer.text


async def test_metrics_count_what_happens(http: Http, project: int) -> None:
    before = values((await http.get("/metrics")).text)
    for start in range(3):
        assert (await http.post(f"/items/{project}/1/1?start={start * 10}", [{"a": 1}] * 10)).status == 200
    await http.get("/items/x")
    await http.call("PURGE", f"/items/{project}")
    await http.get("/no-such-thing")
    after = values((await http.get("/metrics")).text)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    posts = 'resource="items",method="POST",status="2xx"'
    assert grown(f"scrapy_ext_http_requests_total{{{posts}}}") == 3
    assert grown(f"scrapy_ext_http_request_duration_seconds_count{{{posts}}}") == 3
    assert grown(f'scrapy_ext_http_request_duration_seconds_bucket{{{posts},le="+Inf"}}') == 3
    assert grown(f"scrapy_ext_http_request_bytes_total{{{posts}}}") == 3 * 10 * len('{"a": 1}\n')
    assert grown('scrapy_ext_http_requests_total{resource="items",method="GET",status="4xx"}') == 1
    assert grown('scrapy_ext_http_requests_total{resource="items",method="other",status="4xx"}') == 1
    assert grown('scrapy_ext_http_requests_total{resource="other",method="GET",status="4xx"}') == 1
    assert grown('scrapy_ext_records_written_total{resource="items"}') == 30
    assert grown("scrapy_ext_store_writes_total") >= 3
    assert grown("scrapy_ext_store_commit_writes_count") >= 1
    assert after["scrapy_ext_connections"] >= 1
    assert after["scrapy_ext_requests_under_way"] == 1
    assert after["scrapy_ext_body_bytes_held"] == 0
    assert after["scrapy_ext_database_bytes"] > 4096
    assert after["process_resident_memory_bytes"] > 10_000_000
    assert not any("nothing" in name or "PURGE" in name for name in after)


async def test_what_never_became_a_request_is_counted_too(http: Http, server: RunningServer) -> None:
    name = 'scrapy_ext_http_unreadable_total{status="400"}'
    before = values((await http.get("/metrics")).text)
    async with Raw(server.url) as raw:
        await raw.send(b"nonsense\r\n\r\n")
        assert (await raw.answer()).status == 400
    after = values((await http.get("/metrics")).text)
    assert after[name] - before.get(name, 0) == 1


# ── logs ──


async def test_json_logs_have_requests_and_never_keys(logging_server: RunningServer) -> None:
    async with Http(logging_server.url, None) as http:
        path = f"/items/5/1/1?start=0&apikey={logging_server.platform_key}"
        answer = await http.post(path, [{"a": 1}], X_Request_ID="the-one")
        assert answer.status == 200
        await http.get(f"/items/x?apikey={logging_server.platform_key}")
        await http.get(f"/{'x' * 500}")
    # The log is written a moment after the answer.
    lines = await eventually_async(
        lambda: logged(logging_server), lambda lines: max(len(line.get("path", "")) for line in lines) >= 200
    )
    (line,) = [line for line in lines if line.get("request_id") == "the-one"]
    assert line["message"] == "request"
    assert (line["method"], line["path"], line["status"], line["who"]) == ("POST", "/items/5/1/1", 200, "api")
    assert (line["received"], line["sent"]) == (9, 0)
    assert line["duration_ms"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"])
    assert max(len(line.get("path", "")) for line in lines) == 200
    assert logging_server.platform_key not in logging_server.log()


async def test_an_extraction_is_logged_with_its_domain_and_its_problem_and_without_its_url(
    logging_server: RunningServer,
) -> None:
    async with Http(logging_server.url, logging_server.extract_key) as http:
        for request, url in (("refused", "http://localhost:1/hidden?token=hidden"), ("malformed", "hidden")):
            body = json.dumps({"url": url, "httpResponseBody": True}).encode()
            await http.post("/v1/extract", body, X_Request_ID=request)
    # The log is written a moment after the answer.
    found: dict[str, dict[str, Any]] = await eventually_async(
        lambda: {line.get("request_id", ""): line for line in logged(logging_server)},
        lambda found: {"refused", "malformed"} <= found.keys(),
    )
    assert (found["refused"]["domain"], found["refused"]["problem"]) == ("localhost", "/website/domain-unreachable")
    assert found["malformed"]["problem"] == "/request/invalid"
    assert "hidden" not in logging_server.log()


async def test_a_refused_request_is_logged_if_the_key_was_right(server: RunningServer) -> None:
    async with Http(server.url, server.platform_key) as http:
        known = (await http.get("/items/not-a-number")).headers["X-Request-ID"]
    async with Http(server.url, "wrong") as http:
        unknown = (await http.get("/items/not-a-number")).headers["X-Request-ID"]
    assert known in server.log()
    assert unknown not in server.log()


# ── rates ──


async def test_a_caller_that_asks_too_often_gets_429_with_the_time_to_wait(logging_server: RunningServer) -> None:
    store = await Store.open(logging_server.data)
    try:
        keys = [await add_key(store, f"rated-{number}", None, may_write=True) for number in range(2)]
    finally:
        await store.close()
    for key in keys:  # each has its own
        async with Http(logging_server.url, key) as http:
            await eventually_async(lambda: http.get("/jobq/1/count"), lambda answer: answer.status != 401)
            assert [(await http.get("/hcf/1/list")).status for _ in range(5)] == [200] * 4 + [429]
            answer = await http.get("/jobq/1/count")
            assert (answer.status, answer.json["error"]) == (429, "Too Many Requests")
            assert 0 < int(answer.headers["Retry-After"]) <= 100
            assert (await http.get("/readyz")).status == 200
            assert (await http.get("/metrics")).status == 200


def test_tokens_come_back_and_buckets_are_bounded() -> None:
    now = 0.0
    limits = RateLimits(2.0, 3, lambda: now)
    assert [limits.take("a") for _ in range(4)] == [0, 0, 0, 1]
    assert limits.take("b") == 0
    now = 0.5
    assert [limits.take("a") for _ in range(2)] == [0, 1]
    now = 1000.0
    assert [limits.take("a") for _ in range(4)] == [0, 0, 0, 1]
    for number in range(20_000):
        limits.take(str(number))
    assert len(limits) == 10_000


# ── the end ──


@pytest.mark.long
async def test_the_end_under_load_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    stored: dict[int, int] = {}
    refused = []
    with RunningServer(tmp_path) as server:
        async with Http(server.url, server.platform_key) as http:

            async def write(job: int) -> None:
                for number in range(100_000):
                    try:
                        answer = await http.post(f"/items/1/1/{job}?start={number}", [{"mark": [job, number]}])
                    except aiohttp.ClientError:
                        return  # the connection was closed between two requests
                    if answer.status != 200:
                        refused.append(answer)
                        return
                    stored[job] = number + 1
                    if sum(stored.values()) == 100:
                        server.process.send_signal(signal.SIGTERM)

            await asyncio.gather(*(write(job) for job in range(1, 17)))
        assert await asyncio.to_thread(server.stop) == 0
    assert sum(stored.values()) >= 100
    for answer in refused:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.json["request_id"] == answer.headers["X-Request-ID"]
    with RunningServer(tmp_path) as server:
        async with Http(server.url, server.platform_key) as http:
            for job, number in stored.items():
                kept = (await http.get(f"/items/1/1/{job}")).lines
                assert kept[:number] == [{"mark": [job, each]} for each in range(number)]


async def test_what_has_begun_is_finished_and_what_is_new_is_refused(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server:
        body = b'{"begun": 1}\n' * 1000
        async with Raw(server.url, server.platform_key) as begun, Http(server.url, server.platform_key) as http:
            await begun.head("POST", "/items/1/1/1", Content_Length=str(len(body)))
            await begun.send(body[:-1])
            await eventually_async(lambda: http.get("/metrics"), lambda answer: "requests_under_way 2" in answer.text)
            server.process.send_signal(signal.SIGTERM)
            answer = await eventually_async(
                lambda: http.post("/items/1/1/2?start=0", [{"new": 1}]), lambda answer: answer.status != 200
            )
            assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
            answer = await http.get("/readyz")
            assert (answer.status, answer.json["message"]) == (503, "The server is shutting down.")
            await begun.send(body[-1:])
            assert (await begun.answer()).status == 200
        assert await asyncio.to_thread(server.stop) == 0
    with RunningServer(tmp_path) as server:
        async with Http(server.url, server.platform_key) as http:
            assert len((await http.get("/items/1/1/1")).lines) == 1000


def test_a_line_of_the_log_steers_no_terminal_and_cannot_be_made_by_others() -> None:
    text = "spider \x1b[2Ja\x9b\u202e\r\n2026-01-01 00:00:00,000 ERROR scrapy_ext: forged"
    record = logging.LogRecord("scrapy_ext", logging.INFO, "", 0, "%s", (text,), None)
    line = Lines("%(levelname)s %(message)s").format(record)
    assert line.splitlines() == [
        "INFO spider \\u001b[2Ja\\u009b\\u202e\\u000d",
        "  2026-01-01 00:00:00,000 ERROR scrapy_ext: forged",
    ]
    (line,) = JsonLines().format(record).split("\n")
    assert CONTROL_CHARACTERS.search(line) is None
    assert json.loads(line)["message"] == text


@contextlib.contextmanager
def started(folder: Path, *options: str, closed: Sequence[int] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """A server, without the standard streams of these numbers. Its log is the file ``log`` in the folder."""

    def close() -> None:
        for number in closed:
            os.close(number)

    keys = {"EXTRACT_API_KEY": "e" * 32, "PLATFORM_API_KEY": "p" * 32}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy_ext.server", "--port", "0", "--data", str(folder / "data"), *options],
            env={**os.environ, **keys},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=close,  # noqa: PLW1509 - no thread of this process is at work here
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(TIMEOUT)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def ready(folder: Path) -> None:
    eventually(lambda: "Ready at" in (folder / "log").read_text())


@pytest.mark.parametrize("closed", [[0], [1], [0, 1]], ids=["input", "output", "both"])
def test_a_server_without_standard_streams_starts_and_ends_well(tmp_path: Path, closed: list[int]) -> None:
    with started(tmp_path, "--no-runner", closed=closed) as process:
        ready(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_server_whose_output_nobody_reads_serves(tmp_path: Path) -> None:
    with started(tmp_path, "--no-runner") as process:
        assert process.stdout is not None
        process.stdout.close()
        ready(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("last", [signal.SIGTERM, None], ids=["a second signal", "the end of standard input"])
def test_a_server_that_is_told_twice_to_end_logs_no_traceback(tmp_path: Path, last: signal.Signals | None) -> None:
    options = ["--no-runner"] if last is not None else ["--no-runner", "--exit-with-stdin"]
    with started(tmp_path, *options) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ready ")
        process.send_signal(signal.SIGTERM)
        if last is None:
            assert process.stdin is not None
            process.stdin.close()
        else:
            time.sleep(0.05)  # of two pending signals, the system delivers one
            process.send_signal(last)
        assert process.wait(TIMEOUT) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
