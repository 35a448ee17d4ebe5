"""The machine that makes histories: one call at a time or several at once, in quiet and in trouble."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from typing import Any, ClassVar, Protocol

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.support.models.history import UNKNOWN, Call, explain
from tests.support.models.worlds import PROJECTS, Asked, Trouble, World

#: Examples of one machine, and steps of one example.
EXAMPLES, STEPS = 7, 20
EXAMPLES_IN_FULL, STEPS_IN_FULL = 60, 30
#: Calls of one step.
IN_TURN, AT_ONCE = 10, 5


class Model(Protocol):
    """Promises of a store as a machine without concurrency. Its state has independent parts:
    keys, jobs, slots."""

    #: Tables whose rows others lock, for trouble.
    tables: ClassVar[tuple[str, ...]]

    def initial(self, part: Any) -> Hashable:
        """The state of a part that nothing was done to."""

    def parts(self, call: Call) -> Iterable[tuple[Any, Call]]:
        """A call as the parts see it that it is about."""

    def step(self, state: Any, operation: Any, result: Any) -> Iterable[Any]:
        """The states in which an operation with this result can leave a part; ``UNKNOWN``: any result."""

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        """Operations; they are the same for the same choices, whatever was done before. ``at_once``: those that take
        effect at one time, so that others may be under way."""


class Driver(Protocol):
    """Makes operations in a world."""

    def resolved(self, operation: Any) -> Any:
        """The operation as the model knows it: with the time at which it is made, and names that were given out."""

    def make(self, operation: Any) -> Awaitable[Any]:
        """Make an operation; returns its result."""


class Machine(RuleBasedStateMachine):
    """Rules that are the same for every store."""

    def __init__(self, world: World, model: Model, driver: Driver) -> None:
        super().__init__()
        self.world = world
        self.model = model
        self.driver = driver
        self.states: dict[Any, frozenset[Any]] = {}

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Choose what the history is mostly about, where a model has that."""
        focuses = getattr(self.model, "focuses", None)
        if focuses is not None:
            self.model.focus = data.draw(focuses)  # type: ignore[attr-defined]

    @rule(data=st.data())
    def in_turn(self, data: st.DataObject) -> None:
        """Calls one after the other."""
        for operation in data.draw(st.lists(self.model.operations(at_once=False), min_size=1, max_size=IN_TURN)):
            self.play([(operation, 0)])

    @rule(data=st.data())
    def at_once(self, data: st.DataObject) -> None:
        """Calls at once."""
        each = st.tuples(self.model.operations(at_once=True), st.integers(0, 3))
        drawn = data.draw(st.lists(each, min_size=2, max_size=AT_ONCE))
        self.play(drawn, data.draw(st.sampled_from(self.world.troubles)))

    def play(self, drawn: list[tuple[Any, int]], trouble: Trouble = Trouble.NONE) -> None:
        """Make calls at once, and explain what came of them."""
        asked = [self._asked(operation, turns) for operation, turns in drawn]
        calls = self.world.round(asked, trouble, self.model.tables)
        by_part: dict[Any, list[Call]] = {}
        for call in calls:
            for part, seen in self.model.parts(call):
                by_part.setdefault(part, []).append(seen)
        for part, seen in by_part.items():
            before = self.states.get(part) or frozenset([self.model.initial(part)])
            self.states[part] = explain(self.model.step, before, seen)

    def teardown(self) -> None:
        """Put away what would be in the way of others."""
        end = getattr(self.driver, "end", None)
        if end is not None:
            self.world.run(end())

    def _asked(self, operation: Any, turns: int) -> Asked:
        resolved = self.driver.resolved(operation)
        return Asked(resolved, lambda: self.driver.make(resolved), turns)


def check(
    world: World, model: Model, driver: Callable[[Any, int], Driver], config: pytest.Config, *, part: float = 1.0
) -> None:
    """Make histories of a store, each in a project of its own, as many as the run of the tests asks for; ``part``: of
    the usual number."""
    full = config.getoption("--full")
    world.begin()
    run_state_machine_as_test(
        lambda: Machine(world, model, driver(world, next(PROJECTS))),
        settings=settings(
            max_examples=max(1, round((EXAMPLES_IN_FULL if full else EXAMPLES) * part)),
            stateful_step_count=STEPS_IN_FULL if full else STEPS,
            derandomize=not full,
            database=None,
            deadline=None,
            print_blob=True,
            # What hangs on the order in which others come to their turn may not come again while it is made smaller.
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def made(kind: Callable[..., Any], *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Operations of a kind, of these parts. (Hypothesis would make up the fields that are left out.)"""
    return st.tuples(*parts).map(lambda given: kind(*given))


def either(result: Any, *expected: Any) -> bool:
    """Return True if a result is one of those, or is not known."""
    return result is UNKNOWN or any(result == each for each in expected)


def only(condition: bool, state: Any) -> Iterator[Any]:
    """The state, if that is how it can be."""
    if condition:
        yield state
