"""Targets that answer wrongly: the rule waits with a reason, and the rules of other targets go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from scrapy_ext.server.delivery import delivering
from scrapy_ext.server.delivery.delivering import GRACE, TURN, Deliverer
from scrapy_ext.server.delivery.targets import Target, TargetError, open_target
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import DURATION
from tests.support.archives import add_rule, finished_job, local_objects
from tests.support.eventually import eventually_async
from tests.support.stores import Clock

TARGET = "s3://bucket/archive"
ANSWERS = {
    "refuses": b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    "says yes to everything": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
    "leads to an address of the cloud": b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/latest\r\n"
    b"Content-Length: 0\r\n\r\n",
    "is no HTTP server": b"\0\1\2\r\n\r\n",
}


@asynccontextmanager
async def answering(answer: bytes, requests: list[str]) -> AsyncIterator[str]:
    """The address of a server that gives one answer to each request, and keeps their first lines."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            requests.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")[0])
            writer.write(answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_hostile_target_holds_up_no_other(
    kind: str, store: Store, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await finished_job(store, clock, items=3)
    requests: list[str] = []
    async with answering(ANSWERS[kind], requests) as address:
        for name, value in (
            ("AWS_ENDPOINT_URL", address),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        hostile = await add_rule(store, target=TARGET)
        deliverer = Deliverer(store, [TARGET, folder.as_uri()], opened=Target)
        await deliverer.run_due()
        found = await store.deliveries.get(1, hostile.id)
        assert found is not None
        assert TARGET in (found.failure or "")
        # What the interrupted deliveries have left cannot be removed either.
        clock.now += DURATION + GRACE + 1
        left = [attempt.id for attempt in await store.deliveries.dead(GRACE)]
        assert len(left) == 3
        requests.clear()
        await add_rule(store, target=folder.as_uri())
        await deliverer.run_due()
        assert sum(name.endswith("/job.json") for name in local_objects(folder)) == 3
        assert sum(any(attempt in request for request in requests) for attempt in left) <= 1


async def test_a_target_that_does_not_answer_holds_up_no_other(
    store: Store, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await finished_job(store, clock, items=3)
    accepted = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        try:
            await asyncio.Event().wait()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for name, value in (("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "secret"), ("REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    await add_rule(store, target=TARGET)
    await add_rule(store, target=folder.as_uri())
    deliverer = Deliverer(store, [TARGET, folder.as_uri()], opened=Target)
    running = asyncio.create_task(deliverer.run_due())
    try:
        await eventually_async(
            lambda: sum(name.endswith("/job.json") for name in local_objects(folder)), lambda found: found == 3
        )
        await accepted.wait()
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        server.close()


async def test_what_a_rule_has_no_time_for_is_delivered_in_the_next_run(
    store: Store, clock: Clock, folder: Path
) -> None:
    for _ in range(5):
        await finished_job(store, clock, items=3)
    await add_rule(store, target=folder.as_uri())
    deliverer = Deliverer(store, [folder.as_uri()], turn=-1)
    assert await deliverer.run_due() == 0
    whole = Deliverer(store, [folder.as_uri()])
    assert await whole.run_due() == 5
    assert await whole.run_due() == 0


async def test_time_that_passes_with_one_rule_is_not_taken_from_the_next(
    store: Store, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await finished_job(store, clock, items=3)
    for _ in range(2):
        await add_rule(store, target=folder.as_uri())
    now = 0.0

    def opened(url: str) -> Target:
        nonlocal now
        now += 2 * TURN
        return open_target(url)

    monkeypatch.setattr(delivering, "elapsing", lambda: now)
    monkeypatch.setattr(delivering, "_RULES_AT_ONCE", 1)
    assert await Deliverer(store, [folder.as_uri()], opened=opened).run_due() == 2


async def test_a_redirect_of_a_target_gets_no_data_and_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library of targets follows those of reads, and has no option against it."""
    requests: list[str] = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower())
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    place = f"http://localhost:{server.sockets[0].getsockname()[1]}/latest"
    redirect = f"HTTP/1.1 307 Moved\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()
    async with server, answering(redirect, []) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        for name, value in (("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "secret"), ("REGION", "us-east-1")):
            monkeypatch.setenv(f"AWS_{name}", value)
        target = Target(TARGET)

        async def pieces() -> AsyncIterator[bytes]:
            yield b"records"

        with pytest.raises(TargetError):
            await target.put("items.jl", pieces())
        assert requests == []
        with pytest.raises(TargetError):
            [piece async for piece in target.read("items.jl")]
    assert [request.split()[0] for request in requests] == ["get"]
    assert not any("authorization" in request or "secret" in request for request in requests)
