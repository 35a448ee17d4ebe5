"""Deliveries over HTTP to a receiver on this machine, which the guard lets through by name."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import json
from collections.abc import AsyncIterator
from hashlib import sha256

import pytest

from scrapy_ext.api.platform.webhooks import Delivery, NewWebhook, new_secret, signed_headers
from scrapy_ext.server.net import guard as guard_module
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreBusyError
from scrapy_ext.server.store.outbox import FIRST_WAIT
from scrapy_ext.server.webhooks import Dispatcher, Sender
from tests.support.eventually import eventually_async
from tests.support.stores import Clock
from tests.support.webhook_receiver import Receiver

PROJECT = 7
SECRET = new_secret()


@contextlib.asynccontextmanager
async def sending(store: Store, *allowed: str, timeout: float = 30.0) -> AsyncIterator[None]:
    sender = Sender(Guard(allowed), timeout=timeout)
    task = asyncio.create_task(Dispatcher(store, sender, poll_interval=0.01).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


async def post(store: Store, *names: str) -> None:
    await store.activity.add(PROJECT, [json.dumps({"event": name}).encode() for name in names])


async def settled(store: Store, number: int = 1, attempts: int = 1) -> Delivery:
    """The newest delivery, once something came of it."""
    (newest,) = await eventually_async(
        lambda: store.webhooks.rows(PROJECT, number, 1),
        lambda newest: newest[0].attempts >= attempts and newest[0].outcome,
    )
    return newest


async def test_events_are_sent_signed(store: Store, clock: Clock, receiver: Receiver) -> None:
    await store.webhooks.add(PROJECT, NewWebhook(url=f"{receiver.url}?x=1", events=["job:*"]), secret=SECRET)
    async with sending(store, receiver.host):
        await post(store, "job:scheduled", "else", "job:started")
        bodies = await receiver.has(2)
    assert [each["event"] for each in bodies] == ["job:scheduled", "job:started"]
    for headers, body in receiver.requests:
        assert headers["webhook-id"] == json.loads(body)["id"]
        assert headers["webhook-timestamp"] == str(clock.now // 1000)
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
        assert headers["content-type"] == "application/json"


def test_a_signature_is_that_of_the_published_form() -> None:
    # The example of https://github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    headers = signed_headers(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(500, "answered 500"), (302, "answered 302: redirects are not followed"), (404, "answered 404")],
    ids=["error", "redirect", "missing"],
)
async def test_any_other_answer_is_a_failure_and_is_repeated_with_the_same_id(
    store: Store, clock: Clock, receiver: Receiver, status: int, outcome: str
) -> None:
    await store.webhooks.add(PROJECT, NewWebhook(url=receiver.url, events=["*"]), secret=SECRET)
    receiver.status = status
    async with sending(store, receiver.host):
        await post(store, "a")
        failed = await settled(store)
        assert (failed.state, failed.outcome, failed.due) == ("pending", outcome, clock.now + FIRST_WAIT)
        receiver.status = 200
        clock.now += FIRST_WAIT
        assert (await settled(store, attempts=2)).state
        await eventually_async(lambda: settled(store), lambda value: value.state == "delivered")
    assert [each["id"] for each in receiver.bodies] == ["7-1-1"] * 2  # and nothing went to /elsewhere


async def test_a_slow_receiver_is_given_up_for_now_and_holds_nobody_up(
    store: Store, receiver: Receiver, clock: Clock
) -> None:
    receiver.gate.clear()
    await store.webhooks.add(PROJECT, NewWebhook(url=receiver.url, events=["*"]), secret=SECRET)
    async with Receiver() as quick:
        await store.webhooks.add(PROJECT, NewWebhook(url=quick.url, events=["*"]), secret=SECRET)
        async with sending(store, receiver.host, quick.host, timeout=60):
            await post(store, "a", "b")
            assert [each["event"] for each in await quick.has(2)] == ["a", "b"]
            assert len(receiver.requests) == 1  # one at a time
        async with sending(store, receiver.host, timeout=0.05):
            clock.now += 2 * 60_000
            assert (await settled(store)).outcome == "no answer within 0.05 seconds"


NOT_PUBLIC = {
    "http://127.0.0.1:8000/": "127.0.0.1 has an address that is not public",
    "http://localhost:8000/": "localhost has an address that is not public",
    "http://[::1]:8000/": "not public",
    "http://[::ffff:127.0.0.1]:8000/": "not public",
    "http://169.254.169.254/latest": "not public",
    "http://2130706433:8000/": "not public",
    "http://127.0.0.1:22/": "Port 22 of 127.0.0.1 is not one",
}


async def test_addresses_that_are_not_public_are_not_called(store: Store) -> None:
    for url in NOT_PUBLIC:
        await store.webhooks.add(PROJECT, NewWebhook(url=url, events=["*"]), secret=SECRET)
    async with sending(store):
        await post(store, "a")
        for number, outcome in enumerate(NOT_PUBLIC.values(), 1):
            assert outcome in (await settled(store, number)).outcome


async def test_what_cannot_be_reached_is_said_without_more(store: Store, receiver: Receiver) -> None:
    host = receiver.host
    await receiver.__aexit__()
    await store.webhooks.add(PROJECT, NewWebhook(url=f"http://{host}/secret-path", events=["*"]), secret=SECRET)
    await store.webhooks.add(PROJECT, NewWebhook(url=f"https://{host}/", events=["*"]), secret=SECRET)
    async with sending(store, host):
        await post(store, "a")
        for number in (1, 2):
            assert (await settled(store, number)).outcome == "no connection"


async def test_it_goes_on_after_an_outage_of_the_database(
    store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.webhooks.add(PROJECT, NewWebhook(url=receiver.url, events=["*"]), secret=SECRET)
    outages = [StoreBusyError("busy"), RuntimeError("odd")]
    waiting, claim = store.webhooks.waiting, store.webhooks.claim

    async def away(*arguments: int) -> object:
        if outages:
            raise outages.pop()
        return await (claim(*arguments) if arguments else waiting())

    monkeypatch.setattr(store.webhooks, "claim", away)
    async with sending(store, receiver.host):
        await post(store, "a")
        await receiver.has(1)
    outages.append(StoreBusyError("busy"))
    monkeypatch.setattr(store.webhooks, "waiting", away)
    async with sending(store, receiver.host):
        await post(store, "b")
        await receiver.has(2)
    assert outages == []


async def test_a_name_that_turns_private_between_two_lookups_is_not_called(store: Store, receiver: Receiver) -> None:
    """The last lookup is the one that is connected to, and is checked like the others."""
    answers = [["93.184.215.14"], ["127.0.0.1"]]
    asked = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    port = int(receiver.host.rpartition(":")[2])
    guard = Guard([f"other.example:{port}"], resolve=resolve, cache_time=0)
    sender = Sender(guard)
    guard_ports, guard_module.PORTS = guard_module.PORTS, frozenset({port})
    try:
        await store.webhooks.add(
            PROJECT, NewWebhook(url=f"http://rebind.example:{port}/hook", events=["*"]), secret=SECRET
        )
        await post(store, "a")
        task = asyncio.create_task(Dispatcher(store, sender, poll_interval=0.01).run())
        outcome = (await settled(store)).outcome
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    finally:
        guard_module.PORTS = guard_ports
    assert "not public" in outcome
    assert asked == ["rebind.example"] * 2
    assert receiver.requests == []
