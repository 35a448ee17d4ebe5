"""Connections, answers and readiness while clients take all that there is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import aiohttp
import pytest

from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.jobprocess.proc import cgroup_limits, machine_memory
from scrapy_ext.server.http import limits, memory
from scrapy_ext.server.http.connections import RESERVE, Connections, limit_of
from scrapy_ext.server.http.memory import RequestMemory
from tests.support.eventually import eventually_async
from tests.support.http import Http, longest_wait
from tests.support.raw_connection import Raw
from tests.support.servers import RunningServer

MIB = 2**20
#: Connections of the server that has few.
FEW = 40


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that takes few connections, and has little memory."""
    options = ["--connections", str(FEW), "--memory", "48", "--open-metrics"]
    with RunningServer(tmp_path_factory.mktemp("few"), options=options) as server:
        yield server


async def metric(server: RunningServer, name: str) -> float:
    async with Http(server.url, None) as http:
        found = re.search(rf"^scrapy_ext_{re.escape(name)} (\S+)$", (await http.get("/metrics")).text, re.MULTILINE)
    assert found, name
    return float(found[1])


# ── connections ──


async def test_any_number_of_idle_connections_keeps_nobody_out(few: RunningServer) -> None:
    before = await metric(few, 'connections_cut_total{reason="limit"}')
    async with contextlib.AsyncExitStack() as stack, Http(few.url, few.platform_key) as known:
        assert (await known.get("/items/1/1/1")).status == 200
        for _ in range(5 * FEW):
            with contextlib.suppress(OSError):
                await stack.enter_async_context(Raw(few.url))
        for number in range(10):
            async with Http(few.url, few.platform_key) as http:
                assert (await http.post(f"/items/1/1/1?start={number}", [{"n": number}])).status == 200
                assert (await http.get("/healthz")).status == 200
        assert await metric(few, "connections") <= FEW + RESERVE
    assert await metric(few, 'connections_cut_total{reason="limit"}') > before


async def test_where_all_connections_are_busy_others_are_informed_and_health_is_answered(few: RunningServer) -> None:
    async with contextlib.AsyncExitStack() as stack:
        busy = []
        for number in range(FEW):
            busy.append(raw := await stack.enter_async_context(Raw(few.url, few.platform_key)))
            await raw.head("POST", f"/items/2/1/{number + 1}", then=b'{"a": 1}', Content_Length="9")
        while await metric(few, "requests_under_way") <= FEW:
            pass  # some are on their way
        async with Http(few.url, few.platform_key) as late:
            answer = await late.get("/items/2/1/1")
            assert (answer.status, int(answer.headers["Retry-After"])) == (503, 2)
            assert "--connections" in answer.text
        async with Http(few.url, few.extract_key) as late:
            answer = await late.post("/v1/extract", b"{}")
            assert (answer.status, int(answer.headers["Retry-After"])) == (503, 2)
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert (answer.json["type"], answer.json["status"]) == ("/limits/over-global-limit", 503)
        for path in ("/healthz", "/readyz", "/metrics"):
            async with Http(few.url, None) as watching:
                assert (await watching.get(path)).status == 200
        for raw in busy:
            await raw.send(b"\n")
            assert (await raw.answer()).status == 200
    async with Http(few.url, few.platform_key) as http:
        assert len((await http.get("/items/2")).lines) == FEW


class Fake:
    """A connection of an address."""

    def __init__(self, address: str) -> None:
        self.client = (address, 1)
        self.closed = ""

    def close_idle(self, reason: str) -> None:
        self.closed = reason


def test_an_address_has_a_bound_of_its_own_and_this_machine_and_proxies_have_none() -> None:
    connections = Connections(1000, 10, [ip_network("10.0.0.0/8")])
    for address in ("127.0.0.1", "::1", "10.1.2.3"):
        for _ in range(20):
            connections.made(each := Fake(address))
            assert connections.busy(each) is None
    team = [Fake("192.0.2.1") for _ in range(10)]
    for each in team:
        connections.made(each)
    for each in team[1:]:
        assert connections.busy(each) is None
    connections.made(newest := Fake("192.0.2.1"))
    assert [each.closed for each in team] == ["address"] + [""] * 9  # the one that had no request
    connections.lost(team[0])
    assert connections.busy(newest) is None
    connections.made(refused := Fake("192.0.2.1"))
    assert connections.busy(refused) == "address"
    connections.made(other := Fake("192.0.2.2"))
    assert connections.busy(other) is None
    for each in (*team[1:], newest, refused):
        connections.lost(each)
    connections.made(again := Fake("192.0.2.1"))
    assert connections.busy(again) is None
    assert len(connections) == 62


def test_idle_connections_go_before_busy_ones_and_the_oldest_first() -> None:
    connections = Connections(10)
    each = [Fake("127.0.0.1") for _ in range(10)]
    for connection in each:
        connections.made(connection)
        connections.busy(connection)
    for connection in each[5:]:
        connections.rest(connection)
    connections.made(Fake("127.0.0.1"))
    assert [connection.closed for connection in each] == [""] * 5 + ["limit"] + [""] * 4


def test_the_bound_leaves_files_for_others() -> None:
    assert limit_of(1_000_000) == limits.CONNECTIONS
    assert limit_of(1024) == 512
    assert limit_of(1_000_000, 10_000) == 10_000
    assert limit_of(1024, 10_000) == 512


async def test_requests_ahead_of_their_answers_are_bounded(few: RunningServer) -> None:
    async with Raw(few.url) as raw:
        await raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 5)
        assert [(await raw.answer()).status for _ in range(5)] == [200] * 5
        await raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        answers = (await raw.rest()).count(b"HTTP/1.1 200 OK")
    assert limits.PIPELINE <= answers < 1000
    assert await metric(few, 'connections_cut_total{reason="pipeline"}') >= 1


@pytest.mark.long
async def test_a_body_in_the_smallest_pieces_leaves_others_their_turn(few: RunningServer) -> None:
    body = b"1\r\n{\r\n1\r\n}\r\n1\r\n\n\r\n" * 12_000 + b"0\r\n\r\n"

    async def one(number: int) -> int:
        async with Raw(few.url, few.platform_key) as raw:
            await raw.head("POST", f"/items/3/1/{number + 1}", then=body, Transfer_Encoding="chunked")
            return (await raw.answer()).status

    async with Http(few.url, few.platform_key) as http:

        async def all_of_them() -> object:
            assert await asyncio.gather(*map(one, range(10))) == [200] * 10
            return await http.get("/system/ts")

        assert await longest_wait(http, all_of_them) < 0.5  # type: ignore[arg-type]
        assert len((await http.get("/items/3/1/1?count=10")).lines) == 10


# ── answers ──


def peak(server: RunningServer) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text("ascii"))
    assert found
    return int(found[1]) * 1024


@pytest.mark.long
async def test_readers_that_stop_hold_no_more_than_there_is_and_others_are_served(tmp_path: Path) -> None:
    with RunningServer(tmp_path, options=["--memory", "64", "--open-metrics"]) as server:
        async with contextlib.AsyncExitStack() as stack, Http(server.url, server.platform_key) as http:
            for start in range(16):
                blob = os.urandom(400_000).hex()
                assert (await http.post(f"/items/1/1/2?start={start}", [{"blob": blob}])).status == 200
            whole = (await http.get("/items/1/1/2")).body
            before = peak(server)
            for _ in range(200):
                raw = await stack.enter_async_context(Raw(server.url, server.platform_key))
                raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
                await raw.head("GET", "/items/1/1/2")
                assert (await http.get("/healthz")).status == 200

            async def body() -> bytes | None:
                try:
                    answer = await http.get("/items/1/1/2")
                except aiohttp.ClientPayloadError:
                    return None  # cut off, because a busy machine kept this reader waiting as long as the others wait
                assert answer.status in (200, 503)
                return answer.body

            # Those that read nothing are cut off after a second.
            await eventually_async(body, lambda found: found == whole)
            assert peak(server) - before < 200 * MIB
        await eventually_async(lambda: metric(server, "body_bytes_held"), lambda value: not value)


@pytest.mark.full
def test_the_attacks_that_once_took_gigabytes(tmp_path: Path) -> None:
    script = Path(__file__).parents[4] / "benchmarks" / "hostile_clients.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, cwd=tmp_path)
    found = json.loads(done.stdout.splitlines()[-1])
    bound = memory.default_limit() // MIB
    for attack in ("strings", "nested", "records", "readers", "idle", "pieces", "pipelines"):
        numbers = found[attack]
        assert numbers["peak"] - numbers["before"] < bound + 200, (attack, numbers)
        assert numbers["healthz_failed"] == 0, (attack, numbers)
        assert numbers["healthz"] > 0
    assert found["idle"]["answers"] == {"200": 20}


# ── memory ──


def test_memory_is_a_share_of_what_the_machine_or_the_control_group_has(tmp_path: Path) -> None:
    root, membership = tmp_path / "cgroup", tmp_path / "membership"
    (root / "a" / "b").mkdir(parents=True)
    (root / "memory" / "c").mkdir(parents=True)
    (root / "a" / "memory.max").write_text("3000000\n")
    (root / "a" / "b" / "memory.max").write_text("max\n")
    (root / "memory" / "c" / "memory.limit_in_bytes").write_text("2000000\n")
    membership.write_text("0::/a/b\n")
    assert cgroup_limits(str(root), str(membership)) == [3_000_000]
    membership.write_text("5:cpu,memory:/c\n4:pids:/c\n")
    assert cgroup_limits(str(root), str(membership)) == [2_000_000]
    membership.write_text("0::/elsewhere\n")
    assert cgroup_limits(str(root), str(membership)) == []
    assert memory.default_limit() >= min(limits.MEMORY, machine_memory() // 2)


@pytest.mark.parametrize(("total", "share"), [(64 * 1024, 2048), (8 * 1024, 512), (1024, 512), (512, 256)])
def test_the_share_is_bounded_below(monkeypatch: pytest.MonkeyPatch, total: int, share: int) -> None:
    monkeypatch.setattr(memory, "machine_memory", lambda: total * MIB)
    assert memory.default_limit() == share * MIB


class Stalled:
    def __init__(self) -> None:
        self.reason = ""

    def cut_off(self, reason: str) -> None:
        self.reason = reason


def test_the_slowest_readers_are_cut_off_where_memory_is_short() -> None:
    held = RequestMemory(1000)
    first, second = Stalled(), Stalled()
    held.stalled.update({first: -100.0, second: -50.0})
    assert held.hold(700)
    assert not first.reason
    assert held.hold(100)
    assert (first.reason, second.reason) == ("memory", "")
    assert list(held.stalled) == [second]


async def test_long_work_takes_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_TURN", -1.0)
    held, rounds = RequestMemory(1000), 0

    async def others() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async def work() -> None:
        for _ in range(10):
            async with held.turn():
                pass

    watching = asyncio.create_task(others())
    await asyncio.gather(*(work() for _ in range(10)))
    watching.cancel()
    assert rounds >= 90


# ── readiness ──


@pytest.mark.long
async def test_a_server_that_cannot_store_a_large_record_is_not_ready_until_it_can(tmp_path: Path) -> None:
    with RunningServer(tmp_path, file_limit=3_000_000) as server:
        async with Http(server.url, server.platform_key) as http:
            async with timeout_after(60):
                start = 0
                while (answer := await http.post(f"/items/1/1/1?start={start}", [_large()])).status == 200:
                    start += 1
            assert answer.status == 507
            assert (await http.post("/collections/1/s/c", [{"_key": "small"}])).status == 200
            answer = await http.get("/readyz")
            answer = await eventually_async(lambda: http.get("/readyz"), lambda answer: answer.status != 200)
            assert (answer.status, answer.json["status"]) == (503, "unavailable")
            assert "make room" in answer.json["message"]
            _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            await eventually_async(lambda: http.get("/readyz"), lambda answer: answer.status == 200)
            assert (await http.post(f"/items/1/1/1?start={start}", [_large()])).status == 200
            assert (await http.get("/api/scrapyd/listprojects.json")).json["projects"] == [1]
        assert "The server is ready again" in server.log()


def _large() -> dict[str, str]:
    return {"blob": os.urandom(450_000).hex()}
