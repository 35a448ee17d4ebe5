"""Dead letters: requests of a frontier whose last attempt failed, and their return to the queue."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.frontier import FrontierRequest

#: The slot of dead letters. No crawl reads it.
DEAD_LETTERS: Final = "dead-letters"
#: Maximum characters of a stored error.
_MAX_ERROR: Final = 2000
#: Separator between a fingerprint and the number of times that its request was put back.
_PUT_BACK: Final = "~"


class PutBack(NamedTuple):
    """A request to queue again, and its slot."""

    slot: str
    request: FrontierRequest


def dead_letter(slot: int, fp: str, form: Any, error: str) -> FrontierRequest:
    """Return the dead letter of a request of ``slot``, with its error."""
    letter = {"slot": slot, "fp": fp, "request": form, "error": error[:_MAX_ERROR]}
    # Two slots may have the same fingerprint.
    return FrontierRequest(f"{slot}/{fp}", letter)


def revived(key: str, letter: Any) -> PutBack:
    """Return the request of a dead letter, to queue it again; raises ``ValueError`` for another record."""
    try:
        slot, fp, form = str(int(letter["slot"])), str(letter["fp"]), letter["request"]
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{key} in slot {DEAD_LETTERS} is not a dead letter") from None
    return PutBack(slot, _requeued(fp, form))


def _requeued(fp: str, form: Any) -> FrontierRequest:
    """Return the request with a new fingerprint, since its slot has seen the old one."""
    if not isinstance(form, dict):
        return FrontierRequest(next_fingerprint(fp), form)
    priority = form.get("priority", 0)
    return FrontierRequest(next_fingerprint(fp), form, p=-priority if isinstance(priority, int) else 0)


def next_fingerprint(fp: str) -> str:
    """Return the fingerprint for the next attempt of a request whose slot has seen ``fp``."""
    original, separator, times = fp.rpartition(_PUT_BACK)
    if separator and times.isascii() and times.isdigit():
        return f"{original}{_PUT_BACK}{int(times) + 1}"
    return f"{fp}{_PUT_BACK}1"
