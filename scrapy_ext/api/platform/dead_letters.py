"""Requests that a crawl has set aside in its frontier: their form in the slot that keeps them, and how they return."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.frontier import FrontierRequest

#: The slot of requests that were set aside. No crawl reads it.
DEAD_LETTERS: Final = "dead-letters"
#: Characters of an error that are kept.
_MAX_ERROR: Final = 2000
#: Separates a fingerprint from the number of times that its request was put back.
_PUT_BACK: Final = "~"


class PutBack(NamedTuple):
    """A request that returns to the queue, and the slot to which it does."""

    slot: str
    request: FrontierRequest


def dead_letter(slot: int, fp: str, form: Any, error: str) -> FrontierRequest:
    """The request to keep in the slot of dead letters: one of ``slot``, with its error."""
    letter = {"slot": slot, "fp": fp, "request": form, "error": error[:_MAX_ERROR]}
    # Two slots can have the same fingerprint.
    return FrontierRequest(f"{slot}/{fp}", letter)


def revived(key: str, letter: Any) -> PutBack:
    """The request of a dead letter, to be queued again; raises ``ValueError`` for what is no dead letter."""
    try:
        slot, fp, form = str(int(letter["slot"])), str(letter["fp"]), letter["request"]
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{key} in slot {DEAD_LETTERS} is no request that was set aside") from None
    return PutBack(slot, _alive(fp, form))


def _alive(fp: str, form: Any) -> FrontierRequest:
    """Under a new fingerprint, since its slot knows the one it had."""
    if not isinstance(form, dict):
        return FrontierRequest(next_life(fp), form)
    priority = form.get("priority", 0)
    return FrontierRequest(next_life(fp), form, p=-priority if isinstance(priority, int) else 0)


def next_life(fp: str) -> str:
    """The fingerprint under which a request is put back into a slot that knows the one it had."""
    original, separator, times = fp.rpartition(_PUT_BACK)
    if separator and times.isascii() and times.isdigit():
        return f"{original}{_PUT_BACK}{int(times) + 1}"
    return f"{fp}{_PUT_BACK}1"
