"""Requests that were read and not begun: a bounded number of them, so that a site that has to wait is passed by
others."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from scrapy_ext.commands.extraction.request_lines import Wanted

#: Requests held at most,
MOST: Final = 1000
#: and the bytes of their lines, beyond which there is no further one.
MOST_BYTES: Final = 32 * 2**20


class Window:
    """Requests by domain. Domains take turns, and the requests of one keep their order."""

    def __init__(self) -> None:
        self._domains: OrderedDict[str, deque[Wanted]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether no further request is to be read."""
        return self._count >= MOST or self._bytes >= MOST_BYTES

    def add(self, wanted: Wanted) -> None:
        """A request was read."""
        self._domains.setdefault(wanted.domain, deque()).append(wanted)
        self._count += 1
        self._bytes += wanted.size

    def take(self, has_room: Callable[[str], bool]) -> Wanted | None:
        """The next request whose domain has room; None: there is none."""
        domain = next((name for name in self._domains if has_room(name)), None)
        if domain is None:
            return None
        requests = self._domains[domain]
        wanted = requests.popleft()
        if requests:
            self._domains.move_to_end(domain)
        else:
            del self._domains[domain]
        self._count -= 1
        self._bytes -= wanted.size
        return wanted

    def clear(self) -> None:
        """Drop them all."""
        self._domains.clear()
        self._count = self._bytes = 0
