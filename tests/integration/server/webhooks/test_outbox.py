"""The outbox: what is kept for webhooks, when it is sent again, and when that ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.webhooks import MAX_MESSAGE_BYTES, MAX_WEBHOOKS, Webhook
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.activity import outbox
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.webhooks import webhooks
from scrapy_ext.server.store.webhooks.webhooks import CLAIM, DISABLE, GIVE_UP, KEPT, Claimed
from tests.support.stores import Clock

PROJECT = 7
HOUR = 3_600_000


async def hook(store: Store, *events: str, project: int = PROJECT) -> Webhook:
    return await store.webhooks.add(project, "https://hooks.example/", list(events or ("*",)), "whsec_c2VjcmV0")


async def post(store: Store, *names: str) -> None:
    await store.activity.add(PROJECT, [json.dumps({"event": name}).encode() for name in names])


async def claimed(store: Store, number: int = 1) -> Claimed:
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
    names = [[each.event for each in await store.webhooks.deliveries(PROJECT, number)] for number in (1, 2, 3)]
    assert names == [
        ["else", "other", "job:completed", "job:scheduled"],
        ["other", "job:completed", "job:scheduled"],
        ["job:completed"],
    ]
    assert await store.webhooks.deliveries(8, 1) == []
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
        patched.setattr(outbox, "add_deliveries", fails)
        with pytest.raises(RuntimeError, match="cut off"):
            await store.jobs.add(PROJECT, [NewJob("books", JobState.PENDING, {})], "me")
    assert await activity(store, "") == []
    assert (sum((await store.jobs.states(PROJECT)).values()), await store.webhooks.waiting()) == (0, [])


async def test_messages_without_a_name_large_ones_and_those_about_webhooks_are_not_sent(store: Store) -> None:
    await hook(store)
    large = json.dumps({"event": "large", "text": "x" * MAX_MESSAGE_BYTES}).encode()
    odd = [b'{"event":1}', b'{"a":"b"}', b'{"event":"nul\\u0000"}', b'{"event":"webhook:full"}', large]
    await store.activity.add(PROJECT, odd)
    assert await store.webhooks.deliveries(PROJECT, 1) == []
    assert len(await activity(store, "")) == len(odd)


async def test_what_was_claimed_is_claimed_again_after_a_minute_and_not_before(store: Store, clock: Clock) -> None:
    await hook(store)
    await post(store, "a")
    first = await claimed(store)
    assert (await store.webhooks.claim(PROJECT, 1), await store.webhooks.waiting()) == (None, [])
    clock.now += CLAIM
    again = await claimed(store)
    assert (again.id, again.body, again.attempts) == (first.id, first.body, 2)
    await store.webhooks.delivered(again, "answered 200")
    await store.webhooks.failed(first, "no connection")  # of the one that had it first, late
    clock.now += 2 * CLAIM
    assert await store.webhooks.claim(PROJECT, 1) is None
    (delivery,) = await store.webhooks.deliveries(PROJECT, 1)
    assert (delivery.state, delivery.attempts, delivery.due, delivery.outcome) == ("delivered", 2, None, "answered 200")


async def test_failures_are_repeated_more_and_more_rarely_and_given_up_after_a_day(store: Store, clock: Clock) -> None:
    await hook(store)
    await post(store, "a")
    start, waits = clock.now, []
    while await store.webhooks.waiting():
        await store.webhooks.failed(await claimed(store), "answered 500")
        (delivery,) = await store.webhooks.deliveries(PROJECT, 1)
        if delivery.due is not None:
            waits.append((delivery.due - clock.now) // 1000)
            clock.now = delivery.due
    assert waits[:10] == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    assert GIVE_UP - HOUR < clock.now - start <= GIVE_UP
    assert (delivery.state, delivery.attempts, delivery.outcome) == ("given up", len(waits) + 1, "answered 500")
    await post(store, "b")
    clock.now += GIVE_UP
    await store.webhooks.failed(await claimed(store), "answered 500")
    (event,) = await activity(store)  # about the first only
    assert (event["event"], event["user"], event["webhook"]) == ("webhook:given-up", "webhook 1", 1)
    assert "7-1-1" in event["message"]
    assert "answered 500" in event["message"]


async def test_a_webhook_that_accepts_nothing_for_days_is_disabled_and_reported(store: Store, clock: Clock) -> None:
    await hook(store)
    start = clock.now
    await post(store, "a")
    await store.webhooks.failed(await claimed(store), "no connection")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert (webhook.disabled, webhook.failing_since) == (False, start)
    clock.now += DISABLE
    await post(store, "b")
    await store.webhooks.failed(await claimed(store), "no connection")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert webhook.disabled
    assert "webhook:disabled" in [event["event"] for event in await activity(store)]
    await post(store, "c")
    assert await store.webhooks.waiting() == []
    enabled = await store.webhooks.disable(PROJECT, 1, False)
    assert enabled is not None
    assert (enabled.disabled, enabled.failing_since) == (False, None)
    await post(store, "d")
    assert (await store.webhooks.deliveries(PROJECT, 1))[0].event == "d"


async def test_a_success_ends_a_time_of_failures(store: Store, clock: Clock) -> None:
    await hook(store)
    await post(store, "a", "b")
    await store.webhooks.failed(await claimed(store), "no connection")
    await store.webhooks.delivered(await claimed(store), "answered 204")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert webhook.failing_since is None
    clock.now += DISABLE
    await store.webhooks.failed(await claimed(store), "no connection")
    (webhook,) = await store.webhooks.listed(PROJECT)
    assert (webhook.disabled, webhook.failing_since) == (False, clock.now)


async def test_the_outbox_is_bounded_and_says_when_it_is_full(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_PENDING", 5)
    await hook(store)
    await hook(store, "other")
    for _ in range(3):
        await post(store, "a", "b", "c")
    assert [each.event for each in await store.webhooks.deliveries(PROJECT, 1)] == ["b", "a", "c", "b", "a"]
    (event,) = await activity(store)
    assert (event["event"], event["webhook"]) == ("webhook:full", 1)
    await store.webhooks.delivered(await claimed(store), "answered 200")
    await post(store, "d")
    assert (await store.webhooks.deliveries(PROJECT, 1))[0].event == "d"


async def test_of_those_that_are_done_the_newest_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "KEPT", 3)
    assert KEPT > 3
    await hook(store)
    await post(store, *"abcdefg")
    for _ in range(6):
        await store.webhooks.delivered(await claimed(store), "answered 200")
    assert [(each.event, each.state) for each in await store.webhooks.deliveries(PROJECT, 1)] == [
        ("g", "pending"),
        ("f", "delivered"),
        ("e", "delivered"),
        ("d", "delivered"),
    ]


async def test_a_test_comes_first_also_to_a_disabled_webhook_and_is_not_repeated(store: Store) -> None:
    await hook(store)
    await post(store, "a")
    delivery = await store.webhooks.test(PROJECT, 1)
    assert delivery is not None
    assert (delivery.event, delivery.state) == ("webhook:test", "pending")
    sent = await claimed(store)
    assert sent.id == delivery.id
    await store.webhooks.failed(sent, "no connection")
    assert [each.state for each in await store.webhooks.deliveries(PROJECT, 1)] == ["given up", "pending"]
    assert [webhook.failing_since for webhook in await store.webhooks.listed(PROJECT)] == [None]
    assert await activity(store) == []
    await store.webhooks.disable(PROJECT, 1, True)
    assert await store.webhooks.claim(PROJECT, 1) is None
    assert await store.webhooks.test(PROJECT, 1) is not None
    await store.webhooks.delivered(await claimed(store), "answered 200")
    assert await store.webhooks.test(PROJECT, 2) is None


async def test_a_webhook_that_was_removed_receives_nothing(store: Store) -> None:
    await hook(store)
    await post(store, "a")
    sent = await claimed(store)
    assert await store.webhooks.remove(PROJECT, 1)
    assert not await store.webhooks.remove(PROJECT, 1)
    await store.webhooks.failed(sent, "no connection")
    await store.webhooks.delivered(sent, "answered 200")
    assert await store.webhooks.deliveries(PROJECT, 1) == []
    assert (await hook(store)).id == 2


async def test_a_project_has_a_limited_number_of_them(store: Store) -> None:
    for _ in range(MAX_WEBHOOKS):
        await hook(store)
    with pytest.raises(ContractError, match="which is the limit"):
        await hook(store)


async def test_a_clock_that_was_wrong_by_a_year_holds_nothing_up(store: Store, clock: Clock) -> None:
    await hook(store)
    clock.now += 365 * 24 * HOUR
    await post(store, "a")
    await store.webhooks.failed(await claimed(store), "no connection")
    assert await store.webhooks.waiting() == []
    clock.now -= 365 * 24 * HOUR
    assert await store.webhooks.waiting() == [(PROJECT, 1)]
    again = await claimed(store)
    assert again.attempts == 2
    assert (await store.webhooks.claim(PROJECT, 1), await store.webhooks.waiting()) == (None, [])
