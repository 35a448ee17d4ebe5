"""Histories of concurrent calls, explained by a model that makes one call after the other.

Each call takes effect at once, at some time between its beginning and its end (linearizability). :func:`explain` tries
the orders that this leaves, the way of Wing and Gong, and remembers which sets of calls led to which state, as Lowe
does. A call whose answer was lost may have taken effect or not. Histories are short here, a round of a few calls, so
that every state in which a round may end is found; the next round begins in one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar


class Outcome:
    """Knowledge of a call without a result."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


#: The answer was lost: the call was made or not, and nobody knows.
UNKNOWN = Outcome("UNKNOWN")
#: The store refused the call by a rule (``ContractError``).
REFUSED = Outcome("REFUSED")


class Call(NamedTuple):
    """A call: what was asked, what came back, and when it began and ended, in an order that all calls share."""

    operation: Any
    result: Any
    began: int
    ended: int


State = TypeVar("State", bound=Hashable)
#: The states in which an operation with this result can leave a state; none: it cannot have this result there.
Step = Callable[[State, Any, Any], Iterable[State]]


class UnexplainedError(AssertionError):
    """No order of the calls explains their results."""


def explain(step: Step[State], states: Iterable[State], calls: Sequence[Call]) -> frozenset[State]:
    """Every state in which these calls can have left one of the states; raises :class:`UnexplainedError`."""
    ends = [float("inf") if call.result is UNKNOWN else call.ended for call in calls]
    final: set[State] = set()
    everything = frozenset(range(len(calls)))
    waiting = [(everything, state) for state in states]
    seen = set(waiting)
    while waiting:
        left, state = waiting.pop()
        if all(calls[number].result is UNKNOWN for number in left):
            final.add(state)
        first_end = min((ends[number] for number in left), default=float("inf"))
        for number in left:
            call = calls[number]
            if call.began > first_end:  # another call had ended before this one began
                continue
            for following in step(state, call.operation, call.result):
                place = (left - {number}, following)
                if place not in seen:
                    seen.add(place)
                    waiting.append(place)
    if not final:
        raise UnexplainedError(text_of(states, calls))
    return frozenset(final)


def text_of(states: Iterable[Any], calls: Sequence[Call]) -> str:
    """A history as text."""
    lines = [f"  {call.began:>4} to {call.ended:<4} {call.operation} -> {call.result!r}" for call in calls]
    before = "\n".join(f"  {state!r}" for state in list(states)[:5])
    return "\n".join(["no order of these calls explains them:", *lines, "from one of these states:", before])
