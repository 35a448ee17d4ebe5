"""The outbox: what is kept for webhooks, when it is sent again, and when that ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.webhooks import MAX_MESSAGE_BYTES, NewWebhook, Webhook
from scrapy_ext.server.store import Store, webhook_queue
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.outbox import GIVE_UP
from scrapy_ext.server.store.webhook_queue import ClaimedEvent
from scrapy_ext.server.store.webhooks import DISABLE
from tests.support.stores import Clock

PROJECT = 7
HOUR = 3_600_000


async def hook(store: Store, *events: str, project: int = PROJECT) -> Webhook:
    return await store.webhooks.add(
        project, NewWebhook(url="https://hooks.example/", events=list(events or ("*",))), secret="whsec_c2VjcmV0"
    )


async def post(store: Store, *names: str) -> None:
    await store.activity.add(PROJECT, [json.dumps({"event": name}).encode() for name in names])


async def claimed(store: Store, number: int = 1) -> ClaimedEvent:
    found = await store.webhooks.claim(PROJECT, number)
    assert found is not None
    return found


async def activity(store: Store, prefix: str = "webhook:") -> list[dict[str, Any]]:
    found = [json.loads(one.event) async for page in store.activity.scan(PROJECT) for one in page]
    return [each for each in found if str(each.get("event")).startswith(prefix)][::-1]


async def test_an_event_is_kept_for_the_webhooks_that_want_it(store: Store, clock: Clock) -> None:
    for events in (["*"], ["job:*", "other"], ["job:completed"]):
        await hook(store, *events)
    await hook(store, project=8)
    await store.jobs.add(PROJECT, [NewJob("books", JobState.PENDING, {})], "me")
    await post(store, "job:completed", "other", "else")
    names = [[each.event for each in await store.webhooks.rows(PROJECT, number)] for number in (1, 2, 3)]
    assert names == [
        ["else", "other", "job:completed", "job:scheduled"],
        ["other", "job:completed", "job:scheduled"],
        ["job:completed"],
    ]
    assert await store.webhooks.rows(8, 1) == []
    assert await store.webhooks.waiting() == [(PROJECT, 1), (PROJECT, 2), (PROJECT, 3)]
    first = await claimed(store)
    assert json.loads(first.body) == {
        "id": "7-1-1",
        "event": "job:scheduled",
        "project": 7,
        "ts": clock.now,
        "message": {"event": "job:scheduled", "job": "7/1/1", "user": "me"},
    }
    assert (first.id, first.attempts, first.url, first.secret) == (
        "7-1-1",
        1,
        "https://hooks.example/",
        "whsec_c2VjcmV0",
    )


async def test_it_is_kept_with_the_message_or_not_at_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await hook(store)

    async def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("cut off")

    with monkeypatch.context() as patched:
        patched.setattr(webhook_queue, "add_rows", fails)
        with pytest.raises(RuntimeError, match="cut off"):
            await store.jobs.add(PROJECT, [NewJob("books", JobState.PENDING, {})], "me")
    assert await activity(store, "") == []
    assert (sum((await store.jobs.states(PROJECT)).values()), await store.webhooks.waiting()) == (0, [])


async def test_messages_without_a_name_large_ones_and_those_about_webhooks_are_not_sent(store: Store) -> None:
    await hook(store)
    large = json.dumps({"event": "large", "text": "x" * MAX_MESSAGE_BYTES}).encode()
    odd = [b'{"event":1}', b'{"a":"b"}', b'{"event":"nul\\u0000"}', b'{"event":"webhook:full"}', large]
    await store.activity.add(PROJECT, odd)
    assert await store.webhooks.rows(PROJECT, 1) == []
    assert len(await activity(store, "")) == len(odd)


async def test_the_first_delivery_that_is_given_up_is_reported(store: Store, clock: Clock) -> None:
    await hook(store)
    for name in ("a", "b"):
        await post(store, name)
        clock.now += GIVE_UP
        await store.webhooks.refused(await claimed(store), "answered 500")
    (event,) = await activity(store)
    assert (event["event"], event["user"], event["webhook"]) == ("webhook:given-up", "webhook 1", 1)
    assert "7-1-1" in event["message"]
    assert "answered 500" in event["message"]


async def test_a_test_that_fails_is_no_failure_of_its_webhook(store: Store) -> None:
    await hook(store)
    delivery = await store.webhooks.test(PROJECT, 1)
    assert delivery is not None
    assert (delivery.event, delivery.state) == ("webhook:test", "pending")
    sent = await claimed(store)
    assert sent.id == delivery.id
    await store.webhooks.refused(sent, "no connection")
    assert [webhook.failing_since for webhook in await store.webhooks.listed(PROJECT)] == [None]


async def test_a_webhook_that_accepts_nothing_for_days_is_disabled_and_reported(store: Store, clock: Clock) -> None:
    await hook(store)
    start = clock.now
    await post(store, "a")
    await store.webhooks.refused(await claimed(store), "no connection")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert (webhook.disabled, webhook.failing_since) == (False, start)
    clock.now += DISABLE
    await post(store, "b")
    await store.webhooks.refused(await claimed(store), "no connection")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert webhook.disabled
    assert "webhook:disabled" in [event["event"] for event in await activity(store)]
    await post(store, "c")
    assert await store.webhooks.waiting() == []
    enabled = await store.webhooks.disable(PROJECT, 1, False)
    assert enabled is not None
    assert (enabled.disabled, enabled.failing_since) == (False, None)
    await post(store, "d")
    assert (await store.webhooks.rows(PROJECT, 1))[0].event == "d"


async def test_a_success_ends_a_time_of_failures(store: Store, clock: Clock) -> None:
    await hook(store)
    await post(store, "a", "b")
    await store.webhooks.refused(await claimed(store), "no connection")
    await store.webhooks.accepted(await claimed(store), "answered 204")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert webhook.failing_since is None
    clock.now += DISABLE
    await store.webhooks.refused(await claimed(store), "no connection")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert (webhook.disabled, webhook.failing_since) == (False, clock.now)


async def test_the_outbox_is_bounded_and_says_when_it_is_full(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_queue, "MAX_PENDING", 5)
    await hook(store)
    await hook(store, "other")
    for _ in range(3):
        await post(store, "a", "b", "c")
    assert [each.event for each in await store.webhooks.rows(PROJECT, 1)] == ["b", "a", "c", "b", "a"]
    (event,) = await activity(store)
    assert (event["event"], event["webhook"]) == ("webhook:full", 1)
    await store.webhooks.accepted(await claimed(store), "answered 200")
    await post(store, "d")
    assert (await store.webhooks.rows(PROJECT, 1))[0].event == "d"
