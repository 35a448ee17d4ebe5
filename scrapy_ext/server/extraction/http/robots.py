"""robots.txt, on servers that are configured to obey it (RFC 9309).

* The rules are those for the caller's ``User-Agent``, or for everyone when the caller sends none.
* They apply to the requested URL and to its redirects. A page in the browser is checked before it is loaded and again
  at its final URL; its resources belong to it.
* Without a robots.txt (a 4xx answer) everything may be fetched. A site that cannot answer now (5xx) is queried again
  with the next request, and nothing of it is fetched before.
* Rules are kept for :data:`KEEP_SECONDS`, those of :data:`KEPT_SITES` sites. Requests for one site share a fetch.

A refused URL is 521, the one permanent problem that is about this URL alone. 451 is about whole domains and the
operator's own list; 403 is about the caller's account, and ends crawls.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from protego import Protego
from yarl import URL

from scrapy_ext.api.extraction.problems import permanent, temporary
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.extraction.http.fetch import HttpResult
from scrapy_ext.server.extraction.plan import HttpPlan
from scrapy_ext.server.net.upstream import Upstream

KEEP_SECONDS: Final = 3600.0
KEPT_SITES: Final = 1000
#: Bytes of a robots.txt that are read, as the standard requires.
READ_BYTES: Final = 500 * 1024
EVERYONE: Final = "*"

_Rules = asyncio.Task[Protego]


class Robots:
    """The rules of the sites. ``fetch`` makes an HTTP request through the guard."""

    def __init__(self, fetch: Callable[[HttpPlan], Awaitable[HttpResult]]) -> None:
        self._fetch = fetch
        #: By origin, with the time of expiry, in the order of last use.
        self._kept: OrderedDict[str, tuple[float, _Rules]] = OrderedDict()

    async def check(self, url: str, agent: str | None, upstream: Upstream | None = None) -> None:
        """Raise :class:`ExtractionError` for a URL that is refused (521), or whose rules cannot be fetched.

        ``agent`` is the caller's User-Agent.
        """
        where = URL(url, encoded=True)
        rules = await self._rules(str(where.origin()), upstream)
        # In a thread, because long rules take their time.
        if not await in_data_thread(rules.can_fetch, url, agent or EVERYONE):
            raise permanent(
                f"The robots.txt of {where.raw_host} forbids this URL, and this server obeys it.",
                remedy="Leave the URL out, or ask the operator about --obey-robots.",
            )

    async def _rules(self, origin: str, upstream: Upstream | None) -> Protego:
        now = asyncio.get_running_loop().time()
        until, task = self._kept.pop(origin, (0.0, None))
        if task is None or until < now or _failed(task):
            until, task = now + KEEP_SECONDS, asyncio.ensure_future(self._read(origin, upstream))
            # Retrieves its error, as no caller may be left to do so.
            task.add_done_callback(_failed)
        self._kept[origin] = (until, task)
        if len(self._kept) > KEPT_SITES:
            self._kept.popitem(last=False)
        # A cancelled caller does not cancel it for the others.
        return await asyncio.shield(task)

    async def _read(self, origin: str, upstream: Upstream | None) -> Protego:
        answer = await self._fetch(HttpPlan(url=f"{origin}/robots.txt", upstream=upstream))
        if answer.status >= 500:
            raise temporary(f"{URL(origin).raw_host} cannot return its robots.txt now (status {answer.status}).")
        body = answer.body[:READ_BYTES] if answer.status < 300 else b""
        return await in_data_thread(Protego.parse, body.decode("utf-8", "replace"))


def _failed(task: _Rules) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
