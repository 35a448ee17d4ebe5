"""Division of limits and budgets among workers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_ext.api.platform.permits import (
    AHEAD,
    LASTS,
    BudgetReport,
    BudgetShare,
    Decision,
    Domain,
    DomainReport,
    Share,
    decide,
    divided,
    granted,
)

NOW = 1_000_000
NO_TIMES = Domain()


def share(attempt: int, amount: int, *, want: int = 9, limit: int = 8, delay: int = 0, expires: int = NOW + 1) -> Share:
    return Share(attempt, limit, want, amount, delay, expires)


def decided(report: DomainReport, *others: Share, domain: Domain = NO_TIMES, now: int = NOW) -> Decision:
    return decide(1, report, others, domain, now, drawn=lambda least, most: least)


@pytest.mark.parametrize(
    ("most", "wants", "parts"),
    [
        (8, [9, 9], [4, 4]),
        (8, [1, 9], [1, 7]),
        (8, [1, 1], [4, 4]),
        (8, [0, 1], [0, 8]),
        (7, [9, 2, 9], [2, 2, 3]),
        (1, [1, 1], [0, 1]),
        (1, [9, 1], [0, 1]),
        (2, [9, 1, 5, 3], [0, 0, 1, 1]),
        (0, [1, 1], [0, 0]),
        (8, [0, 0], [0, 0]),
    ],
)
def test_a_limit_is_divided_by_what_workers_want(most: int, wants: list[int], parts: list[int]) -> None:
    assert divided(most, wants) == parts


def test_workers_take_turns_at_a_limit_that_is_less_than_their_number() -> None:
    assert [divided(1, [1, 1, 1], first) for first in range(3)] == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(0, 40), st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(0, 8))
def test_all_of_a_limit_is_divided_and_no_more(most: int, wants: list[int], turn: int) -> None:
    parts = divided(most, wants, turn % len(wants))
    assert sum(parts) == (most if any(wants) else 0)
    assert all(not part for part, want in zip(parts, wants, strict=True) if not want)
    if most >= len(wants):
        assert all(part for part, want in zip(parts, wants, strict=True) if want)


@pytest.mark.parametrize(
    ("report", "others", "concurrency", "amount"),
    [
        pytest.param(DomainReport(8, want=9), [], 8, 8, id="alone"),
        pytest.param(DomainReport(8, want=9), [share(2, 8)], 0, 0, id="another one has all"),
        pytest.param(DomainReport(8, want=9), [share(2, 8, expires=NOW)], 8, 8, id="its permit has expired"),
        pytest.param(DomainReport(8, want=9), [share(2, 5)], 3, 3, id="what it has given back"),
        pytest.param(DomainReport(8, want=9, held=8), [share(2, 0)], 4, 8, id="a reduction that is not confirmed"),
        pytest.param(DomainReport(8, want=9, held=4), [share(2, 0)], 4, 4, id="a confirmed one"),
        pytest.param(DomainReport(8, want=0, held=2), [share(2, 0)], 0, 2, id="requests that end, and no more"),
        pytest.param(DomainReport(8, want=9), [share(2, 1, limit=4)], 2, 2, id="the smallest limit counts"),
    ],
)
def test_a_permit_is_what_the_others_leave(
    report: DomainReport, others: list[Share], concurrency: int, amount: int
) -> None:
    found = decided(report, *others)
    assert found.share is not None
    assert (found.permit.concurrency, found.share.amount) == (concurrency, amount)
    assert found.share.expires == NOW + LASTS


def test_a_worker_gives_its_permit_back() -> None:
    found = decided(DomainReport(8))
    assert (found.share, found.permit.concurrency) == (None, 0)


@pytest.mark.parametrize(
    ("report", "others", "domain", "starts"),
    [
        pytest.param(DomainReport(8, 9, delay=1000), [], Domain(), (0, 1000, 2000), id="alone"),
        pytest.param(DomainReport(8, 9, delay=1000), [share(2, 1)], Domain(), (0, 1000), id="half of them"),
        pytest.param(DomainReport(8, 2, delay=1000), [], Domain(), (0, 1000), id="as many as wanted"),
        pytest.param(DomainReport(8, 2, delay=1000, starts=1), [], Domain(), (0,), id="it has one left"),
        pytest.param(DomainReport(8, 9, delay=1000), [], Domain(NOW + 2500), (2500,), id="others have the next ones"),
        pytest.param(DomainReport(8, 9, delay=9000), [], Domain(NOW + 9000), (), id="too far ahead"),
        pytest.param(DomainReport(8, 9, delay=1000), [], Domain(0, NOW + 9000), (), id="in a pause"),
        pytest.param(DomainReport(8, 9), [share(2, 1, delay=2000)], Domain(), (0,), id="the longest delay counts"),
        pytest.param(DomainReport(8, 9, delay=1000), [], Domain(NOW + 10**7), (), id="the clock has jumped back"),
        pytest.param(DomainReport(8, 9, delay=1000, randomize=True), [], Domain(), (0, 750, 1500), id="drawn"),
        pytest.param(DomainReport(8, 9), [], Domain(), (), id="no delay"),
        pytest.param(DomainReport(8, 9, delay=1000), [share(2, 8)], Domain(), (), id="no permit"),
    ],
)
def test_start_times_are_one_sequence_for_all_workers(
    report: DomainReport, others: list[Share], domain: Domain, starts: tuple[int, ...]
) -> None:
    found = decided(report, *others, domain=domain)
    assert found.permit.starts == starts
    assert found.domain.next_start <= NOW + AHEAD + 1.25 * max(found.permit.delay, 1) or domain.paused_until


def test_a_worker_without_a_permit_takes_no_part_in_the_start_times() -> None:
    waiting = share(2, 0)._replace(want=5)
    assert decided(DomainReport(1, 9, held=1, delay=1000), waiting).permit.starts == (0, 1000, 2000)


@pytest.mark.parametrize(
    ("report", "others", "next_start"),
    [
        pytest.param(DomainReport(1, 0, delay=1000, starts=2), [], 1000, id="given back with the permit"),
        pytest.param(DomainReport(1, 5, delay=1000, starts=2), [share(2, 1)], 3000, id="others may have later ones"),
        pytest.param(DomainReport(1, 0, delay=1000, starts=2), [share(2, 0)], 1000, id="another one waits"),
        pytest.param(DomainReport(1, 5, held=1, delay=1000, starts=2), [], 3000, id="it keeps them"),
        pytest.param(DomainReport(1, 0, delay=1000, starts=9), [], 0, id="none is earlier than now"),
        pytest.param(DomainReport(1, 0, delay=1000, randomize=True, starts=2), [], 1500, id="the shortest distance"),
    ],
)
def test_start_times_that_are_given_back_are_given_again(
    report: DomainReport, others: list[Share], next_start: int
) -> None:
    found = decided(report, *others, domain=Domain(NOW + 3000))
    first = min([NOW + start for start in found.permit.starts], default=found.domain.next_start)
    assert first == NOW + next_start


def test_an_answer_has_a_bounded_number_of_start_times() -> None:
    report = DomainReport(limit=1, want=10**9, delay=1)
    assert len(decided(report).permit.starts) == AHEAD
    assert len(decide(1, report, (), NO_TIMES, NOW, most_starts=7).permit.starts) == 7
    assert decide(1, report, (), NO_TIMES, NOW, most_starts=0).permit.starts == ()


def test_a_holder_learns_that_another_worker_waits_for_a_permit() -> None:
    assert decided(DomainReport(1, 9, held=1), share(2, 0)._replace(want=1)).permit.short
    assert not decided(DomainReport(2, 9, held=1), share(2, 1)).permit.short
    assert not decided(DomainReport(1, 9, held=1), share(2, 0)._replace(want=0)).permit.short


def test_a_pause_reaches_the_others_and_does_not_become_shorter() -> None:
    paused = decided(DomainReport(8, 1, pause=60.0))
    assert paused.permit.pause == 60
    assert decided(DomainReport(8, 1, pause=5.0), domain=paused.domain).permit.pause == 60
    assert decided(DomainReport(8, 1), domain=paused.domain, now=NOW + 59_000).permit.pause == 1


@pytest.mark.parametrize(
    ("report", "others", "workers", "amount", "over"),
    [
        pytest.param(BudgetReport(100, want=1), [], 2, 10, False, id="a fifth, divided"),
        pytest.param(BudgetReport(100, want=30), [], 2, 30, False, id="at least what is needed"),
        pytest.param(BudgetReport(100, used=5, held=9, want=0), [], 2, 9, False, id="nothing is wanted"),
        pytest.param(BudgetReport(100, want=1), [BudgetShare(100, 40, ended=False)], 2, 0, False, id="wait for others"),
        pytest.param(BudgetReport(100, want=1), [BudgetShare(100, 40, ended=True)], 2, 0, True, id="a killed one"),
        pytest.param(BudgetReport(100, want=1), [BudgetShare(100, 100, ended=False)], 2, 0, True, id="all is used"),
        pytest.param(BudgetReport(100, want=3), [BudgetShare(98, 98, ended=True)], 1, 0, True, id="too little is left"),
        pytest.param(BudgetReport(10, used=20, held=20, want=1), [], 1, 20, True, id="the limit was lowered"),
    ],
)
def test_a_grant_is_a_part_of_the_rest(
    report: BudgetReport, others: Sequence[BudgetShare], workers: int, amount: int, over: bool
) -> None:
    found = granted({"cost": report}, {"cost": others}, workers)["cost"]
    assert (found.amount, found.over) == (amount, over)


def test_what_is_wanted_is_granted_together_or_not_at_all() -> None:
    requests = BudgetReport(100, used=5, held=5, want=1)
    cost = BudgetReport(100, used=60, held=60, want=30)
    for other, amounts in ((BudgetShare(10, 10, ended=False), (14, 90)), (BudgetShare(20, 10, ended=False), (5, 60))):
        found = granted({"requests": requests, "cost": cost}, {"requests": [], "cost": [other]}, 2)
        assert tuple(grant.amount for grant in found.values()) == amounts
