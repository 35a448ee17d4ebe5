"""The checker of histories itself: it takes what one call after the other explains, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.models.history import UNKNOWN, Call, UnexplainedError, explain


def register(state: int, operation: Any, result: Any) -> Iterator[int]:
    """A number that is read, set, and added to."""
    name, value = operation
    if name == "set":
        yield value
    elif name == "add" and result in (UNKNOWN, state):
        yield state + value
    elif name == "read" and result == state:
        yield state


def ends(*calls: tuple[str, int, Any, int, int]) -> frozenset[int]:
    return explain(register, [0], [Call((name, value), *rest) for name, value, *rest in calls])


def test_calls_one_after_the_other_have_one_order() -> None:
    assert ends(("set", 1, None, 0, 1), ("read", 0, 1, 2, 3)) == {1}
    with pytest.raises(UnexplainedError, match="read"):
        ends(("set", 1, None, 0, 1), ("read", 0, 0, 2, 3))


def test_calls_at_once_have_any_order_that_their_results_leave() -> None:
    assert ends(("set", 1, None, 0, 3), ("set", 2, None, 1, 2)) == {1, 2}
    assert ends(("set", 1, None, 0, 3), ("set", 2, None, 1, 2), ("read", 0, 1, 4, 5)) == {1}
    assert ends(("set", 1, None, 0, 9), ("read", 0, 1, 1, 2), ("read", 0, 1, 3, 4)) == {1}
    with pytest.raises(UnexplainedError):  # what was seen once stays so
        ends(("set", 1, None, 0, 9), ("read", 0, 1, 1, 2), ("read", 0, 0, 3, 4))


def test_what_adds_is_done_once() -> None:
    assert ends(("add", 1, 0, 0, 3), ("add", 1, 1, 1, 2)) == {2}
    with pytest.raises(UnexplainedError):
        ends(("add", 1, 0, 0, 3), ("add", 1, 0, 1, 2))


def test_a_call_whose_answer_was_lost_was_made_or_not() -> None:
    assert ends(("add", 5, UNKNOWN, 0, 1)) == {0, 5}
    assert ends(("add", 5, UNKNOWN, 0, 1), ("read", 0, 0, 2, 3), ("read", 0, 5, 4, 5)) == {5}
    assert ends(("add", 5, UNKNOWN, 4, 5), ("read", 0, 0, 0, 1)) == {0, 5}
    with pytest.raises(UnexplainedError):  # never twice
        ends(("add", 5, UNKNOWN, 0, 1), ("read", 0, 10, 2, 3))
    with pytest.raises(UnexplainedError):  # nor before it was asked for
        ends(("read", 0, 5, 0, 1), ("add", 5, UNKNOWN, 2, 3))


def test_a_round_of_many_calls_is_explained_soon() -> None:
    calls = [("add", 2**n, UNKNOWN, 0, 1) for n in range(8)]
    assert len(ends(*calls)) == 256
    assert ends(*calls, ("read", 0, 255, 2, 3)) == {255}
