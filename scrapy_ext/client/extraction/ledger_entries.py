"""Entries of a ledger in memory, and their changes since the last flush. No I/O, and no clock.

Each call is an operation on dicts and sets; :meth:`LedgerEntries.take` returns the changes of one flush.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile
from typing import NamedTuple

from scrapy_ext.client.extraction.budget import Spent


class LedgerChanges(NamedTuple):
    """Changes that one flush writes: the totals, new rows, and before them the keys whose rows are deleted. The key of
    a new row is one of these if it has a row already."""

    answers: dict[bytes, bytes | bytearray]
    requests: int
    cost: float
    in_flight: int
    removed: Collection[bytes] = ()


class Opened(NamedTuple):
    """Totals and keys of former runs."""

    spent: Spent
    #: Requests that had no answer when these ended: they may have been billed.
    unanswered: int
    keys: set[bytes]


class LedgerEntries:
    """Requests and answers of one run, and the keys of those before it."""

    def __init__(self, opened: Opened) -> None:
        #: Spent by all runs, this one included.
        self.spent = opened.spent
        self._former = opened.keys
        #: Keys that have a row, or will have once the current flush is done.
        self._rows = set(opened.keys)
        self._in_flight: set[bytes] = set()
        #: Answers that are not written, the oldest first, with the time from which they may be.
        self._pending: dict[bytes, tuple[float, bytes | bytearray]] = {}
        self.pending_bytes = 0
        #: Keys whose rows the next flush deletes.
        self._removed: set[bytes] = set()
        #: True if the next flush has something to write besides answers.
        self.has_changed = False

    @property
    def are_pending(self) -> bool:
        """True if an answer is not written."""
        return bool(self._pending)

    def is_former(self, key: bytes) -> bool:
        """Return true for an answer of a former run that no request has taken."""
        return key in self._former

    def take_former(self, key: bytes) -> None:
        self._former.discard(key)

    def sent(self, key: bytes, cost: float) -> None:
        self.spent.requests += 1
        self.spent.cost += cost
        self._in_flight.add(key)
        self.has_changed = True

    def failed(self, key: bytes, refund: float) -> None:
        self.spent.cost -= refund
        self._in_flight.discard(key)
        self.has_changed = True

    def answered(self, key: bytes) -> None:
        self._in_flight.discard(key)
        self._former.discard(key)

    def add(self, key: bytes, answer: bytes | bytearray, due: float) -> None:
        """Add an answer, in place of a former one; ``due``: time from which it may be written."""
        self._take_pending(key)
        self._pending[key] = (due, answer)
        self.pending_bytes += len(answer)
        self.has_changed = True

    def finished(self, key: bytes) -> None:
        """Remove an answer."""
        if key in self._pending:
            self._take_pending(key)
            # The file may count its request as unanswered.
            self.has_changed = True
        if key in self._rows:
            self._rows.discard(key)
            self._former.discard(key)
            self._removed.add(key)
            self.has_changed = True

    def take(self, now: float) -> LedgerChanges | None:
        """Return the changes to write, with the answers that are due; None without any."""
        keys = list(takewhile(lambda key: self._pending[key][0] <= now, self._pending))
        if not keys and not self.has_changed:
            return None
        answers = {key: self._take_pending(key) for key in keys}
        removed = self._removed.union(self._rows.intersection(answers))
        self._rows.update(answers)
        # Without its answer, a request counts as unanswered.
        unanswered = len(self._in_flight.union(self._pending))
        self._removed, self.has_changed = set(), False
        return LedgerChanges(answers, self.spent.requests, self.spent.cost, unanswered, removed)

    def dropped(self, keys: Collection[bytes]) -> None:
        """Forget the rows that a flush had no room for."""
        self._rows.difference_update(keys)
        self._former.difference_update(keys)

    def forget(self) -> None:
        """Forget all answers; what was spent counts on."""
        self._former, self._rows, self._removed, self._pending, self.pending_bytes = set(), set(), set(), {}, 0

    def _take_pending(self, key: bytes) -> bytes | bytearray:
        _, answer = self._pending.pop(key, (0.0, b""))
        self.pending_bytes -= len(answer)
        return answer
