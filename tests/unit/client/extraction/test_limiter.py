from __future__ import annotations

import asyncio
import random

import pytest

from scrapy_ext.api.extraction.problems import Scope
from scrapy_ext.client.extraction import Limiter
from scrapy_ext.client.extraction.admission import Admission
from scrapy_ext.client.extraction.limiter import Closing
from tests.support.eventually import eventually_async

A, B, C = "a.example", "b.example", "c.example"


def entered(admission: Admission, *domains: str) -> Admission:
    for number, domain in enumerate(domains):
        admission.enter(domain, number)
    return admission


def tickets(admission: Admission, now: float = 0.0) -> list[int]:
    return [ticket for _, ticket in admission.admit(now)]


def test_no_more_than_the_total_go_at_once():
    admission = entered(Admission(2, 0), A, B, C)
    assert tickets(admission) == [0, 1]
    assert tickets(admission) == []
    admission.finish(A)
    assert tickets(admission) == [2]
    assert (admission.active, admission.waiting) == (2, 0)


def test_a_delay_lies_between_two_starts_of_one_domain_and_holds_no_other():
    admission = entered(Admission(10, 0, delay_of=lambda domain: 2.0 if domain == A else 0.0), A, A, A, B, B)
    assert sorted(tickets(admission, 0.0)) == [0, 3, 4]
    admission.finish(A, 0.0)
    assert admission.next_change(0.0) == 2.0
    assert tickets(admission, 1.9) == []
    assert tickets(admission, 2.0) == [1]
    assert tickets(admission, 4.5) == [2]


def test_until_a_request_has_finished_a_delay_begins_at_its_end():
    # The service may need a second for the first one, and the next would reach the site at once.
    admission = entered(Admission(10, 0, delay_of=lambda domain: 2.0), A, A, A)
    assert tickets(admission, 0.0) == [0]
    assert tickets(admission, 3.0) == []
    admission.finish(A, 5.0)
    assert tickets(admission, 6.9) == []
    assert tickets(admission, 7.0) == [1]
    assert tickets(admission, 9.0) == [2]


def test_a_delay_and_a_cap_that_change_count_for_the_next_start():
    delay, cap = 0.0, 2
    admission = Admission(10, 0, lambda domain: cap, lambda domain: delay)
    assert admission.enter_now(A, 0.0)
    admission.finish(A, 0.0)
    delay = 2.0
    assert not admission.enter_now(A, 1.0)
    entered(admission, A)
    assert tickets(admission, 1.9) == []
    assert tickets(admission, 2.0) == [0]
    delay, cap = 0.0, 1
    assert not admission.enter_now(A, 9.0)
    cap = 2
    assert admission.enter_now(A, 9.0)


def test_a_random_delay_is_drawn_again_whenever_a_request_could_start():
    # As Scrapy's downloader does, so that the mean is above the setting.
    drawn = iter([0.0, 1.0, 1.0, 1.5, 1.0, 1.0])
    admission = entered(Admission(10, 0, delay_of=lambda domain: next(drawn)), A, A)
    assert tickets(admission, 0.0) == [0]
    admission.finish(A)
    assert tickets(admission, 1.0) == []
    assert tickets(admission, 1.5) == [1]


def test_no_more_than_its_cap_go_to_one_domain_and_the_others_do_not_wait_for_it():
    admission = entered(Admission(10, 1), A, A, A, B)
    assert sorted(tickets(admission)) == [0, 3]
    admission.finish(A)
    assert tickets(admission) == [1]


def test_a_domain_can_have_a_cap_of_its_own():
    admission = entered(Admission(0, 1, {A: 2, B: 1, C: 0}.__getitem__), A, A, A, B, B, C, C, C)
    assert sorted(tickets(admission)) == [0, 1, 3, 5, 6, 7]


def test_domains_take_turns():
    admission = entered(Admission(1, 0), A, A, A, B, B, C)
    order = []
    while admission.waiting or admission.active:
        for domain, ticket in admission.admit(0):
            order.append(ticket)
            admission.finish(domain)
    assert order == [0, 3, 5, 1, 4, 2]


@pytest.mark.parametrize("scope", [Scope.DOMAIN, Scope.ORGANISATION_DOMAIN])
def test_a_limit_of_a_domain_holds_back_that_domain_alone(scope):
    admission = entered(Admission(10, 0), A, B)
    admission.pause(scope, A, 5.0)
    assert tickets(admission, 0.0) == [1]
    assert admission.next_change(0.0) == 5.0
    assert tickets(admission, 4.9) == []
    assert tickets(admission, 5.0) == [0]
    assert admission.next_change(5.0) is None


@pytest.mark.parametrize("scope", [Scope.USER, Scope.GLOBAL])
def test_a_limit_of_the_user_or_of_all_holds_everything_back(scope):
    admission = entered(Admission(10, 0), A, B)
    admission.pause(scope, A, 5.0)
    assert tickets(admission, 4.9) == []
    assert admission.next_change(4.9) == 5.0
    assert tickets(admission, 5.0) == [0, 1]


def test_what_is_no_limit_holds_nothing_back():
    admission = entered(Admission(10, 0), A)
    admission.pause(Scope.NONE, A, 5.0)
    assert tickets(admission) == [0]


def test_a_pause_can_grow_and_not_shrink():
    admission = entered(Admission(10, 0), A)
    for until in (5.0, 9.0, 7.0):
        admission.pause(Scope.DOMAIN, A, until)
    assert tickets(admission, 5.0) == []
    assert tickets(admission, 8.9) == []
    assert tickets(admission, 9.0) == [0]


def test_both_pauses_must_end():
    admission = entered(Admission(10, 0), A)
    admission.pause(Scope.DOMAIN, A, 5.0)
    admission.pause(Scope.GLOBAL, B, 3.0)
    assert admission.next_change(0.0) == 3.0
    assert tickets(admission, 3.0) == []
    assert admission.next_change(3.0) == 5.0
    assert tickets(admission, 5.0) == [0]


def test_requests_that_come_during_a_pause_wait_for_its_end():
    admission: Admission[int] = Admission(10, 0)
    admission.pause(Scope.DOMAIN, A, 5.0)
    entered(admission, A, A)
    assert tickets(admission, 1.0) == []
    assert tickets(admission, 6.0) == [0, 1]


def test_a_request_that_gives_up_is_passed_over():
    admission = entered(Admission(1, 0), A, A, A)
    assert tickets(admission) == [0]
    admission.leave(A, 1)
    admission.leave(A, 1)
    admission.finish(A)
    assert tickets(admission) == [2]
    assert admission.waiting == 0


def test_whatever_happens_caps_hold_and_nothing_is_forgotten():
    chance = random.Random(3)
    admission: Admission[int] = Admission(5, 2)
    domains = [f"d{n}" for n in range(4)]
    active: dict[str, list[int]] = {domain: [] for domain in domains}
    done: set[int] = set()
    waiting: dict[int, str] = {}
    entered_count = 0
    for now in range(5000):
        match chance.randrange(5):
            case 0 | 1:
                domain = chance.choice(domains)
                admission.enter(domain, entered_count)
                waiting[entered_count] = domain
                entered_count += 1
            case 2:
                domain = chance.choice(domains)
                if active[domain]:
                    done.add(active[domain].pop())
                    admission.finish(domain)
            case 3 if waiting:
                ticket = chance.choice(list(waiting))
                admission.leave(waiting.pop(ticket), ticket)
                done.add(ticket)
            case 4:
                scope = chance.choice([Scope.DOMAIN, Scope.DOMAIN, Scope.GLOBAL])
                admission.pause(scope, chance.choice(domains), now + chance.randrange(4))
        for domain, ticket in admission.admit(now):
            del waiting[ticket]
            active[domain].append(ticket)
        assert all(len(tickets) <= 2 for tickets in active.values())
        assert sum(map(len, active.values())) == admission.active <= 5
        assert len(waiting) == admission.waiting
    now = 10_000
    while admission.active or admission.waiting:
        now += 1
        for domain, ticket in admission.admit(now):
            active[domain].append(ticket)
        for domain, tickets_ in active.items():
            while tickets_:
                done.add(tickets_.pop())
                admission.finish(domain)
    assert done == set(range(entered_count))


# ── with futures and a timer ──


async def hold(limiter: Limiter, domain: str, release: asyncio.Event, entered: list[str] | None = None) -> None:
    with await limiter.permit(domain):
        if entered is not None:
            entered.append(domain)
        await release.wait()


async def sleeper(limiter: Limiter, domain: str, seconds: float) -> None:
    limiter.begin(domain)
    try:
        await limiter.back_off(domain, seconds)
    finally:
        limiter.end(domain)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_turns_are_given_up_by_leaving_them():
    limiter, release = Limiter(1, 1), asyncio.Event()
    tasks = [asyncio.ensure_future(hold(limiter, A, release)) for _ in range(3)]
    await settled()
    assert (limiter.active, limiter.waiting) == (1, 2)
    release.set()
    await asyncio.gather(*tasks)
    assert (limiter.active, limiter.waiting) == (0, 0)


async def test_a_failure_inside_gives_the_turn_up_too():
    limiter = Limiter(1, 1)
    with pytest.raises(RuntimeError), await limiter.permit(A):
        raise RuntimeError
    with await limiter.permit(A):
        assert limiter.active == 1


async def test_a_pause_ends_by_itself():
    limiter = Limiter(0, 0)
    loop = asyncio.get_running_loop()
    started = loop.time()
    limiter.refused(Scope.DOMAIN, A, 0.1, started)
    with await limiter.permit(B):
        pass
    with await limiter.permit(A):
        assert loop.time() - started >= 0.1


async def test_waiting_can_be_cancelled_and_the_place_goes_to_another():
    limiter, release = Limiter(1, 0), asyncio.Event()
    first, second, third = (asyncio.ensure_future(hold(limiter, A, release)) for _ in range(3))
    await settled()
    second.cancel()
    await settled()
    assert (second.cancelled(), limiter.waiting) == (True, 1)
    release.set()
    await asyncio.gather(first, third)
    assert (limiter.active, limiter.waiting) == (0, 0)


async def test_a_request_cancelled_at_the_moment_of_its_turn_leaves_no_place_taken():
    for settle_first in (False, True):
        limiter, release, other = Limiter(1, 0), asyncio.Event(), asyncio.Event()
        first = asyncio.ensure_future(hold(limiter, A, release))
        await settled()
        second = asyncio.ensure_future(hold(limiter, A, other))
        third = asyncio.ensure_future(hold(limiter, A, release))
        await settled()
        # Before the turn is given, or after it was given and before the task knows.
        if settle_first:
            first.add_done_callback(lambda _, task=second: task.cancel())
            release.set()
        else:
            release.set()
            second.cancel()
        await asyncio.gather(first, third)
        await asyncio.wait([second])
        assert second.cancelled()
        assert (limiter.active, limiter.waiting) == (0, 0)


async def test_the_end_of_a_pause_is_notified_even_when_nothing_waits():
    limiter = Limiter(0, 0)
    notified: list[str] = []
    limiter.on_room.append(notified.append)
    limiter.refused(Scope.DOMAIN, A, 0.01, 0.0)
    assert (limiter.has_room(A), limiter.has_room(B)) == (False, True)
    await eventually_async(lambda: notified)
    assert (notified, limiter.has_room(A)) == ([A], True)
    limiter.close()
    assert limiter._timer is None


async def test_a_limit_halves_the_window_once_and_success_opens_it_again():
    admission: Admission[int] = Admission(0, 8)
    entered(admission, *[A] * 20)
    assert len(tickets(admission, 0.0)) == 8
    for _ in range(8):
        admission.refused(Scope.DOMAIN, A, 0.0, 1.0)
        admission.finish(A)
    assert len(tickets(admission, 1.0)) == 4
    assert admission.held(1.0) == 8
    sizes = []
    for _ in range(3):
        admission.succeeded(A)
        admission.finish(A)
        sizes.append(len(tickets(admission, 2.0)))
    assert sizes == [1, 1, 1]
    for _ in range(40):
        admission.succeeded(A)
    admission.finish(A)
    assert (len(tickets(admission, 3.0)), admission.held(3.0)) == (5, 0)


async def test_a_limit_of_the_user_makes_the_window_of_all_smaller():
    admission = entered(Admission(8, 0), *"abcdefghijkl")
    assert len(tickets(admission, 0.0)) == 8
    for domain in "abcdefgh":
        admission.refused(Scope.USER, domain, 0.0, 1.0)
        admission.finish(domain)
    assert len(tickets(admission, 1.0)) == 4


async def test_closing_ends_every_wait_and_lets_none_begin():
    limiter, release = Limiter(1, 1), asyncio.Event()
    first, waiting = (asyncio.ensure_future(hold(limiter, A, release)) for _ in range(2))
    sleeping = asyncio.ensure_future(sleeper(limiter, A, 3600))
    await settled()
    assert (limiter.waiting, limiter.held) == (1, 1)
    limiter.close()
    for task in (waiting, sleeping, asyncio.ensure_future(hold(limiter, B, release))):
        with pytest.raises(Closing):
            await task
    assert (limiter.active, limiter.waiting, limiter.held) == (1, 0, 0)
    release.set()
    await first
    assert limiter.active == 0


def test_room_is_counted_in_extractions_not_in_attempts():
    admission: Admission[int] = Admission(0, 2)
    assert admission.has_room(A, 0, 0.0)
    admission.begin(A)
    admission.begin(A)
    assert (admission.has_room(A, 0, 0.0), admission.has_room(B, 0, 0.0)) == (False, True)
    admission.end(A)
    assert admission.has_room(A, 0, 0.0)
    # Those that have left the queue and are not here yet count too.
    assert (admission.has_room(A, 2, 0.0), admission.has_room(B, 2, 0.0)) == (False, False)


def test_a_request_that_waits_for_a_limit_lends_its_place_and_one_that_waits_for_its_turn_does_not():
    admission = entered(Admission(2, 1), A, A, B, C)
    assert sorted(tickets(admission, 0.0)) == [0, 2]
    assert (admission.waiting, admission.held(0.0)) == (2, 0)
    admission.pause(Scope.DOMAIN, A, 5.0)
    assert (admission.held(0.0), admission.held(5.0)) == (1, 0)
    admission.pause(Scope.USER, A, 5.0)
    assert (admission.held(0.0), admission.held(5.0)) == (2, 0)


def test_delays_and_caps_of_the_caller_are_no_limits_of_the_service():
    admission: Admission[int] = Admission(0, 1, delay_of=lambda domain: 10.0)
    assert admission.enter_now(A, 0.0)
    assert (admission.has_room(A, 1, 0.0), admission.is_limited(A, 0.0)) == (False, False)
    admission.pause(Scope.DOMAIN, A, 5.0)
    assert (admission.is_limited(A, 4.0), admission.is_limited(A, 5.0), admission.is_limited(B, 0.0)) == (
        True,
        False,
        False,
    )
    assert not admission.enter_now(A, 7.0), "the delay is longer than the limit"


async def test_when_the_crawl_closes_what_waits_for_its_turn_is_sent_and_what_waits_for_a_limit_is_not():
    limiter, release = Limiter(0, 1), asyncio.Event()
    release.set()
    first = asyncio.ensure_future(hold(limiter, A, asyncio.Event()))
    await settled()
    turn, limited = (asyncio.ensure_future(hold(limiter, domain, release)) for domain in (A, B))
    await settled()
    assert limited.done()
    limiter.refused(Scope.DOMAIN, B, 3600, asyncio.get_running_loop().time())
    limited = asyncio.ensure_future(hold(limiter, B, release))
    sleeping = asyncio.ensure_future(sleeper(limiter, C, 3600))
    await settled()
    limiter.wind_up()
    later = asyncio.ensure_future(hold(limiter, B, release))
    for task in (limited, sleeping, later):
        with pytest.raises(Closing):
            await task
    assert not turn.done()
    first.cancel()
    await turn
    await hold(limiter, C, release)


def test_a_throttled_domain_is_remembered_for_a_while_and_not_for_ever():
    admission = entered(Admission(0, 8), *[A] * 8)
    tickets(admission, 0.0)
    for _ in range(8):
        admission.refused(Scope.DOMAIN, A, 0.0, 1.0)
        admission.finish(A)
    assert (admission.has_room(A, 3, 1.0), admission.has_room(A, 4, 1.0)) == (True, False)
    admission.end_pauses(1000.0)
    assert admission.has_room(A, 7, 1000.0)
    assert admission._domains == {}


def test_domains_that_are_done_are_forgotten():
    admission: Admission[int] = Admission(2, 1)
    for number in range(100):
        domain = f"d{number}"
        admission.begin(domain)
        assert admission.enter_now(domain, 0.0)
        admission.finish(domain)
        admission.end(domain)
        admission.pause(Scope.DOMAIN, domain, 1.0)
    admission.admit(2.0)
    assert admission._domains == {}


async def test_who_waits_for_another_attempt_holds_back_others_of_the_domain_only_when_there_are_many():
    limiter = Limiter(0, 1)
    sleepers = []
    for count in range(1, 40):
        sleepers.append(asyncio.ensure_future(sleeper(limiter, A, 3600)))
        await settled()
        assert limiter.has_room(A) == (count <= 32)
    assert limiter.held == 39
    limiter.close()
    await asyncio.wait(sleepers)
    assert limiter._admission._domains == {}


async def test_attempts_that_are_repeated_do_not_keep_out_what_was_not_tried_yet():
    limiter, release = Limiter(1, 0), asyncio.Event()
    first = asyncio.ensure_future(hold(limiter, A, release))
    await settled()

    async def turn(*, again: bool) -> None:
        with await limiter.permit(B, again=again):
            pass

    tasks = [asyncio.ensure_future(turn(again=again)) for again in (True, True, False)]
    await settled()
    assert (limiter.waiting, limiter.held) == (3, 2)
    release.set()
    await asyncio.gather(first, *tasks)
    assert limiter.held == 0


async def test_an_attempt_that_is_repeated_lends_its_place_also_while_it_is_sent():
    limiter, release = Limiter(2, 0), asyncio.Event()

    async def turn() -> None:
        with await limiter.permit(A, again=True):
            await release.wait()

    tasks = [asyncio.ensure_future(turn()) for _ in range(2)]
    await settled()
    assert (limiter.active, limiter.waiting, limiter.held) == (2, 0, 2)
    release.set()
    await asyncio.gather(*tasks)
    assert limiter.held == 0
