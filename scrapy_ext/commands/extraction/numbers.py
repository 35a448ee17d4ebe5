"""How far a run is."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from typing import Final

from scrapy_ext.commands.extraction.resume import Done
from scrapy_ext.commands.terminal.times import length

#: The rate is that of the last so many seconds,
_RATE_SECONDS: Final = 20.0
#: looked at so often.
_SAMPLE_SECONDS: Final = 1.0
#: Kinds of errors that the summary names.
_KINDS: Final = 5


class Numbers:
    """Lines that are done, and how. ``total`` is None where it is not known; ``done`` are those that an earlier run
    has done."""

    def __init__(self, total: int | None, done: Done) -> None:
        self.total = total
        self.answered = done.answered
        self.failed = done.failed
        self.earlier = len(done)
        self.kinds: Counter[str] = Counter()
        #: What the answers of this run cost; None where there are no prices.
        self.cost: float | None = None
        self._last_error = ""
        self._started = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque([(self._started, self.done)])

    @property
    def done(self) -> int:
        """Lines with a record, of this run and those before."""
        return self.answered + self.failed

    @property
    def is_all(self) -> bool:
        """Whether no line is left, as far as is known."""
        return self.total is not None and self.done >= self.total

    @property
    def seconds(self) -> float:
        """How long this run has taken."""
        return time.monotonic() - self._started

    def add_answer(self) -> None:
        """A line was answered."""
        self.answered += 1

    def add_failure(self, kind: str, told: str) -> None:
        """A line failed."""
        self.failed += 1
        self._last_error = told
        # The names are the service's: it cannot make more of them than one remembers.
        self.kinds[kind if kind in self.kinds or len(self.kinds) < 100 else "other"] += 1

    def rate(self) -> float:
        """Lines a second, of late."""
        now = time.monotonic()
        if now - self._samples[-1][0] >= _SAMPLE_SECONDS:
            self._samples.append((now, self.done))
        while len(self._samples) > 1 and now - self._samples[0][0] > _RATE_SECONDS:
            self._samples.popleft()
        since, done = self._samples[0]
        return (self.done - done) / (now - since) if now > since else 0.0

    def parts(self) -> list[str]:
        """What there is to tell on the way."""
        rate = self.rate()
        told = [f"{self.done}/{self.total}" if self.total is not None else lines(self.done), f"{rate:.1f}/s"]
        if self.failed:
            told.append(f"{self.failed} failed")
        if self.cost is not None:
            told.append(f"cost {self.cost:.4g}")
        if self.total is not None and rate > 0 and self.total > self.done:
            told.append(f"{_time((self.total - self.done) / rate)} left")
        return told

    def summary(self) -> str:
        """What there is to tell at the end."""
        if self.total == 1 and self._last_error:
            return self._last_error
        told = f"{self.answered} answered, {self.failed} failed"
        if self.kinds:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common(_KINDS))
            told += f" ({kinds}{', …' if len(self.kinds) > _KINDS else ''})"
        earlier = f", {self.earlier} of them before" if 0 < self.earlier < self.done else ""
        cost = f", cost {self.cost:.4g}" if self.cost is not None else ""
        ended = "all of them before" if self.earlier == self.done > 0 else f"in {_time(self.seconds)}"
        return f"{lines(self.done)}{earlier}: {told}, {ended}{cost}"


def lines(number: int) -> str:
    """A number of lines."""
    return f"{number} line" if number == 1 else f"{number} lines"


def _time(seconds: float) -> str:
    """In whole seconds: of an estimate nothing more can be believed."""
    return f"{math.ceil(seconds)}s" if seconds <= 59 else length(1000 * seconds)
