"""The outbox of each kind: when a row is sent again, when that ends, and which rows are kept."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from scrapy_ext.api.platform.alerts import MAX_TARGETS, NewTarget
from scrapy_ext.api.platform.webhooks import MAX_WEBHOOKS, NewWebhook
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.store import Store, outbox, webhook_queue
from scrapy_ext.server.store.expiry.expiry import DAY
from scrapy_ext.server.store.expiry.steps import Steps
from scrapy_ext.server.store.monitors import alerts
from scrapy_ext.server.store.monitors.alerts import Composed
from scrapy_ext.server.store.outbox import GIVE_UP, KEPT, Claimed, OutboxStore
from tests.support.stores import Clock

PROJECT = 7
HOUR = 3_600_000


class Kind(NamedTuple):
    """A kind of outbox, with a receiver of the number 1."""

    of: Callable[[Store], OutboxStore[Any, Any, Any]]
    add_receiver: Callable[[Store], Awaitable[Any]]
    #: Adds a row with a name.
    add: Callable[[Store, str], Awaitable[None]]
    #: Adds a test; returns its record.
    test: Callable[[Store, int], Awaitable[Any]]
    expiry: Callable[[Store, int], Steps]
    most: int
    #: Time (ms) of a claim, state of an accepted row, and the activity messages about the kind.
    claim: int
    sent: str
    events: str


async def _add_event(store: Store, name: str) -> None:
    await store.activity.add(PROJECT, [json.dumps({"event": name}).encode()])


async def _add_message(store: Store, name: str) -> None:
    await store._engine.write(alerts._put, PROJECT, Composed("alert", name, "items is 12"), store.clock())


async def _test_target(store: Store, number: int) -> Any:
    target = await store.alerts.get(PROJECT, 1)
    return None if target is None else await store.alerts.test(PROJECT, number, Messages(None).test(target))


KINDS = {
    "webhooks": Kind(
        of=lambda store: store.webhooks,
        add_receiver=lambda store: store.webhooks.add(
            PROJECT, NewWebhook(url="https://hooks.example/", events=["*"]), secret="whsec_c2VjcmV0"
        ),
        add=_add_event,
        test=lambda store, number: store.webhooks.test(PROJECT, number),
        expiry=lambda store, days: store.expiry.deliveries(days),
        most=MAX_WEBHOOKS,
        claim=webhook_queue.CLAIM,
        sent="delivered",
        events="webhook:",
    ),
    "alerts": Kind(
        of=lambda store: store.alerts,
        add_receiver=lambda store: store.alerts.add(PROJECT, NewTarget("on-call", "json://localhost")),
        add=_add_message,
        test=_test_target,
        expiry=lambda store, days: store.expiry.monitor_results(days),
        most=MAX_TARGETS,
        claim=alerts.CLAIM,
        sent="sent",
        events="alert:",
    ),
}


@pytest.fixture(params=KINDS)
async def kind(request: pytest.FixtureRequest, store: Store) -> Kind:
    kind = KINDS[request.param]
    await kind.add_receiver(store)
    return kind


async def claimed(store: Store, kind: Kind) -> Claimed:
    found = await kind.of(store).claim(PROJECT, 1)
    assert isinstance(found, Claimed)
    return found


async def states(store: Store, kind: Kind) -> list[str]:
    return [each.state for each in await kind.of(store).rows(PROJECT, 1)]


async def events(store: Store, kind: Kind) -> list[Any]:
    found = [json.loads(one.event) async for page in store.activity.scan(PROJECT) for one in page]
    return [each for each in found if each["event"].startswith(kind.events)]


async def test_what_was_claimed_is_claimed_again_after_a_time_and_has_one_result(
    store: Store, clock: Clock, kind: Kind
) -> None:
    await kind.add(store, "a")
    first = await claimed(store, kind)
    for early in (0, kind.claim - 1):  # another server does not send it meanwhile
        clock.now += early
        assert (await kind.of(store).claim(PROJECT, 1), await kind.of(store).waiting()) == (None, [])
    clock.now += 1
    assert await kind.of(store).waiting() == [(PROJECT, 1)]
    again = await claimed(store, kind)
    assert (first.attempts, again.attempts) == (1, 2)
    assert replace(again, attempts=1) == first
    await kind.of(store).accepted(again, "answered 200")
    await kind.of(store).refused(first, "no connection")  # of the one that had it first, late
    clock.now += 2 * kind.claim
    assert await kind.of(store).claim(PROJECT, 1) is None
    (row,) = await kind.of(store).rows(PROJECT, 1)
    assert (row.state, row.attempts, row.due, row.outcome) == (kind.sent, 2, None, "answered 200")


async def test_failures_are_repeated_more_and_more_rarely_and_given_up_after_a_day(
    store: Store, clock: Clock, kind: Kind
) -> None:
    await kind.add(store, "a")
    start, waits = clock.now, []
    while await kind.of(store).waiting():
        await kind.of(store).refused(await claimed(store, kind), "answered 500" + 1000 * "x")
        (row,) = await kind.of(store).rows(PROJECT, 1)
        if row.due is not None:
            waits.append((row.due - clock.now) // 1000)
            clock.now = row.due
    assert waits[:10] == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    assert max(waits) == 3600
    assert GIVE_UP - HOUR < clock.now - start <= GIVE_UP
    assert (row.state, row.attempts) == ("given up", len(waits) + 1)
    assert row.outcome == ("answered 500" + 1000 * "x")[:500]
    assert [each["event"] for each in await events(store, kind)] == [f"{kind.events}given-up"]


async def test_one_that_was_given_up_is_sent_again_with_its_number(store: Store, clock: Clock, kind: Kind) -> None:
    await kind.add(store, "a")
    first = await claimed(store, kind)
    assert await kind.of(store).resend(PROJECT, 1, first.number) is None  # it is pending
    clock.now += GIVE_UP
    await kind.of(store).refused(first, "no connection")
    await kind.add(store, "b")
    again = await kind.of(store).resend(PROJECT, 1, first.number)
    assert (again.state, again.due, again.attempts) == ("pending", 0, 1)
    resent = await claimed(store, kind)  # before the later one
    assert replace(resent, attempts=1) == first
    await kind.of(store).refused(resent, "answered 500")  # it is too old to be tried more often
    assert (await kind.of(store).rows(PROJECT, 1))[-1].state == "given up"
    assert await kind.of(store).resend(PROJECT, 1, first.number) is not None
    await kind.of(store).accepted(await claimed(store, kind), "answered 200")
    assert (await kind.of(store).rows(PROJECT, 1))[-1].state == kind.sent
    for row, receiver in ((first.number, 1), (first.number, 2), (99, 1)):
        assert await kind.of(store).resend(PROJECT, receiver, row) is None


async def test_of_those_that_are_done_the_newest_are_kept(
    store: Store, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "KEPT", 3)
    assert KEPT > 3
    for name in "abcdefg":
        await kind.add(store, name)
    numbers = [(await claimed(store, kind)) for _ in range(6)]
    for each in numbers:
        await kind.of(store).accepted(each, "answered 200")
    rows = await kind.of(store).rows(PROJECT, 1)
    assert [each.state for each in rows] == ["pending", *[kind.sent] * 3]
    assert [each.attempts for each in rows] == [0, 1, 1, 1]


async def test_a_test_comes_first_also_to_a_disabled_receiver_and_is_not_repeated(store: Store, kind: Kind) -> None:
    await kind.add(store, "a")
    test = await kind.test(store, 1)
    assert test.state == "pending"
    sent = await claimed(store, kind)
    await kind.of(store).refused(sent, "no connection")
    assert await states(store, kind) == ["given up", "pending"]
    assert (await kind.of(store).rows(PROJECT, 1))[0].id == test.id
    assert await events(store, kind) == []
    await kind.of(store).disable(PROJECT, 1, True)
    assert await states(store, kind) == ["given up"]
    assert await kind.of(store).claim(PROJECT, 1) is None
    assert await kind.test(store, 1) is not None
    await kind.of(store).accepted(await claimed(store, kind), "answered 200")
    assert await kind.test(store, 2) is None
    await kind.add(store, "b")
    assert await kind.of(store).waiting() == []
    await kind.of(store).disable(PROJECT, 1, False)
    await kind.add(store, "c")
    assert await states(store, kind) == ["pending", kind.sent, "given up"]


async def test_a_receiver_that_was_removed_receives_nothing(store: Store, kind: Kind) -> None:
    await kind.add(store, "a")
    await kind.add(store, "b")
    sent = await claimed(store, kind)
    assert await kind.of(store).remove(PROJECT, 1)
    assert not await kind.of(store).remove(PROJECT, 1)
    assert (await kind.of(store).waiting(), await kind.of(store).claim(PROJECT, 1)) == ([], None)
    await kind.of(store).refused(sent, "no connection")
    await kind.of(store).accepted(sent, "answered 200")
    assert await kind.of(store).rows(PROJECT, 1) == []
    assert (await kind.add_receiver(store)).id == 2


async def test_a_project_has_a_limited_number_of_receivers(store: Store, kind: Kind) -> None:
    for _ in range(1, kind.most):
        await kind.add_receiver(store)
    with pytest.raises(ContractError, match=f"has {kind.most} .* which is the limit"):
        await kind.add_receiver(store)
    assert len(await kind.of(store).listed(PROJECT)) == kind.most


async def test_a_clock_that_was_wrong_by_a_year_holds_nothing_up(store: Store, clock: Clock, kind: Kind) -> None:
    clock.now += 365 * 24 * HOUR
    await kind.add(store, "a")
    await kind.of(store).refused(await claimed(store, kind), "no connection")
    assert await kind.of(store).waiting() == []
    clock.now -= 365 * 24 * HOUR
    assert await kind.of(store).waiting() == [(PROJECT, 1)]
    assert (await claimed(store, kind)).attempts == 2
    assert (await kind.of(store).claim(PROJECT, 1), await kind.of(store).waiting()) == (None, [])


async def test_past_rows_go_by_age_and_pending_ones_stay(store: Store, clock: Clock, kind: Kind) -> None:
    for name in ("one", "two", "three"):
        await kind.add(store, name)
    await kind.of(store).accepted(await claimed(store, kind), "answered 200")
    clock.now += GIVE_UP
    await kind.of(store).refused(await claimed(store, kind), "no answer")
    assert await states(store, kind) == ["pending", "given up", kind.sent]
    clock.now += 30 * DAY - GIVE_UP - 1
    assert sum([rows async for rows in kind.expiry(store, 30)]) == 0
    clock.now += 1
    assert sum([rows async for rows in kind.expiry(store, 30)]) == 2
    assert await states(store, kind) == ["pending"]
