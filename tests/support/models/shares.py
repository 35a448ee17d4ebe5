"""Permits and grants of a group: its workers never have more than a limit open, nor spend more than a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.permits import LASTS, SECONDS, BudgetReport, DomainReport
from scrapy_ext.api.platform.workers import Report, ReportAnswer, Silent
from scrapy_ext.server.store.jobs.jobs import NewJob
from tests.support.models.machine import EXAMPLES, EXAMPLES_IN_FULL, STEPS, STEPS_IN_FULL
from tests.support.models.worlds import PROJECTS, StoreWorld

LIMIT, DELAY, BUDGET = 3, 700, 50
DOMAIN = "a.example"
WORKERS = 3
_NONCES = count(1)


@dataclass
class Worker:
    """A worker that keeps to the rules of its permits."""

    attempt: int
    number: int = 1
    open: int = 0
    cap: int = 0
    until: float = 0.0
    used: int = 0
    granted: int = 0
    sent: int = 0
    #: The answer to its last report was lost: it may have been granted more than it knows.
    is_unsure: bool = False
    #: Report whose answer was lost, and which comes a second time.
    lost: list[Report] = field(default_factory=list)


class Shares(RuleBasedStateMachine):
    """Workers that report, start requests, spend, are killed, and sleep; answers that are lost."""

    def __init__(self, world: StoreWorld) -> None:
        super().__init__()
        self.world = world
        self.turn = 0
        self.spent = 0
        #: Unused grants of killed workers, at most.
        self.killed = 0
        self.starts: list[int] = []
        (self.key,) = world.run(self._added())
        self.workers = [self._joined() for _ in range(WORKERS)]

    async def _added(self) -> list[JobKey]:
        added = await self.world.stores[0].jobs.add(next(PROJECTS), [NewJob("s", JobState.RUNNING, {})], "me")
        return [key for key in added if isinstance(key, JobKey)]

    @rule(data=st.data())
    def several(self, data: st.DataObject) -> None:
        for action, *arguments in data.draw(st.lists(_ACTIONS, min_size=1, max_size=20)):
            getattr(self, action)(*arguments)

    @property
    def now(self) -> int:
        return self.world.clock.now

    def _send(self, report: Report) -> ReportAnswer:
        self.turn += 1
        answer: ReportAnswer = self.world.run(self.world.stores[self.turn % 2].groups.report(self.key, report))
        return answer

    def _joined(self) -> Worker:
        joined = self._send(Report(job=str(self.key), nonce=f"{next(_NONCES):032x}", number=1, workers="3"))
        assert joined.attempt is not None
        return Worker(joined.attempt)

    def report(self, who: int, want: int, spends: int, lost: bool) -> None:
        worker = self.workers[who]
        worker.number += 1
        valid = worker.cap if self.now < worker.until else 0
        held = worker.cap = max(worker.open, min(valid, worker.open + want))
        worker.sent = self.now
        worker.granted = min(worker.granted, worker.used + spends)
        report = Report(
            job=str(self.key),
            attempt=worker.attempt,
            number=worker.number,
            domains={DOMAIN: DomainReport(LIMIT, worker.open + want, held, DELAY)},
            budgets={"requests": BudgetReport(BUDGET, worker.used, worker.granted, spends)},
        )
        answer = self._send(report)
        permit, grant = answer.permits[DOMAIN], answer.grants["requests"]
        self.starts += [self.now + start for start in permit.starts]
        worker.is_unsure = lost
        if lost:
            worker.lost.append(report)
            return
        worker.cap, worker.until = permit.concurrency, self.now + permit.seconds * 1000
        worker.granted = grant.amount
        if grant.over:
            assert self.spent + self.killed + spends > BUDGET

    def run(self, who: int, want: int, spends: int, lost: bool) -> None:
        """A report, and what the worker does with its answer."""
        self.report(who, want, spends, lost)
        self.start(who, want)
        self.spend(who, spends)

    def repeat(self, who: int) -> None:
        """A report comes a second time, after others."""
        worker = self.workers[who]
        if worker.lost:
            self._send(worker.lost.pop())

    def start(self, who: int, requests: int) -> None:
        worker = self.workers[who]
        for _ in range(requests):
            if worker.open < worker.cap and self.now < worker.until:
                worker.open += 1
        assert sum(worker.open for worker in self.workers) <= LIMIT

    def spend(self, who: int, requests: int) -> None:
        worker = self.workers[who]
        some = min(requests, worker.granted - worker.used)
        worker.used += some
        self.spent += some
        assert self.spent <= BUDGET

    def end(self, who: int) -> None:
        worker = self.workers[who]
        worker.open = max(worker.open - 1, 0)

    def wait(self, ms: int) -> None:
        """Requests of a worker end that sends no report for so long."""
        self.world.clock.now += ms
        for worker in self.workers:
            if self.now >= worker.sent + LASTS:
                worker.open = 0

    def kill(self, who: int) -> None:
        """Another worker finds it silent, and a new one comes."""
        killed, other = self.workers[who], self.workers[(who + 1) % WORKERS]
        other.number += 1
        silent = (Silent(killed.attempt, killed.number),)
        self._send(Report(job=str(self.key), attempt=other.attempt, number=other.number, silent=silent))
        self.killed += BUDGET - killed.used if killed.is_unsure else killed.granted - killed.used
        self.workers[who] = self._joined()

    def teardown(self) -> None:
        """Compare all start times."""
        times = sorted(self.starts)
        assert all(later - sooner >= DELAY for sooner, later in pairwise(times)), times


_WHO = st.integers(0, WORKERS - 1)
_LOST = st.sampled_from([False, False, True])
_RUN = st.tuples(st.just("run"), _WHO, st.integers(1, 5), st.integers(1, 9), _LOST)
_ACTIONS = st.one_of(
    *[_RUN] * 6,
    st.tuples(st.just("report"), _WHO, st.integers(0, 2), st.integers(0, 2), _LOST),
    *[st.tuples(st.just("end"), _WHO)] * 2,
    st.tuples(st.just("repeat"), _WHO),
    st.tuples(st.just("wait"), st.sampled_from([10, 500, 2000])),
    st.tuples(st.just("wait"), st.sampled_from([5000, 6500, LASTS + 1])),
    st.tuples(st.just("kill"), _WHO),
)


def check_shares(world: StoreWorld, config: pytest.Config) -> None:
    full = config.getoption("--full")
    make: Callable[[], Shares] = lambda: Shares(world)  # noqa: E731
    run_state_machine_as_test(
        make,
        settings=settings(
            max_examples=EXAMPLES_IN_FULL if full else EXAMPLES,
            stateful_step_count=STEPS_IN_FULL if full else STEPS // 2,
            derandomize=not full,
            database=None,
            deadline=None,
            print_blob=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


assert SECONDS * 1000 < LASTS
