"""Log lines of a fault that every request meets while it lasts."""

from __future__ import annotations

import time
from typing import Final

#: Seconds from one line to the next.
_INTERVAL: Final = 60.0


class Repeats:
    """Count of one fault, which is logged once per minute."""

    def __init__(self) -> None:
        self._logged = float("-inf")
        self._since = 0

    def due(self) -> int:
        """Count an occurrence; return the number since the last line if a line is due now, else 0."""
        self._since += 1
        now = time.monotonic()
        if now - self._logged < _INTERVAL:
            return 0
        count, self._logged, self._since = self._since, now, 0
        return count
