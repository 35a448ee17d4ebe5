"""The client of the platform: one session, one attribute for each resource."""

from __future__ import annotations

from types import TracebackType

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.client.platform.activity import Activity
from scrapy_ext.client.platform.calls import get
from scrapy_ext.client.platform.collections import Collections
from scrapy_ext.client.platform.frontier import Frontier
from scrapy_ext.client.platform.jobq import JobQueue
from scrapy_ext.client.platform.jobs import Jobs
from scrapy_ext.client.platform.periodic import Periodic
from scrapy_ext.client.platform.records import Items, Logs, Requests
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import PlatformUrls
from scrapy_ext.client.platform.versions import DeployedVersions
from scrapy_ext.client.platform.webhooks import Webhooks
from scrapy_ext.client.retry import Backoff, Limits


class System:
    """The platform itself (platform-api.md, Common conventions)."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def timestamp(self) -> int:
        """Now, in milliseconds since the epoch, by the platform's clock."""
        call = get(Host.STORAGE, "/system/ts", accept="text/plain")
        return await self._transport.read(call, lambda answer: answer.json(int))


class PlatformClient:
    """A client of the platform at these addresses; every method raises
    :class:`~scrapy_ext.client.platform.errors.PlatformError`.

    It can be made anywhere, and opens its connections in the loop that first uses it. Close it with ``await
    close()``, or use it as an async context manager. ``timeout`` bounds each attempt, in seconds. A call that
    can be repeated is tried ``attempts`` times, or, when ``retry_time`` is not 0, for so many seconds.
    ``compress`` False saves the compression where the network is no bottleneck.
    """

    def __init__(
        self,
        urls: PlatformUrls,
        key: str,
        *,
        timeout: float = 60.0,
        retry_time: float = 0.0,
        attempts: int = 5,
        backoff: Backoff | None = None,
        compress: bool = True,
    ) -> None:
        limits = Limits(attempts, retry_time, backoff or Backoff())
        self.urls = urls
        self._transport = transport = Transport(urls, key, timeout=timeout, limits=limits, compress=compress)
        self.activity = Activity(transport)
        self.collections = Collections(transport)
        self.frontier = Frontier(transport)
        self.items = Items(transport)
        self.jobq = JobQueue(transport)
        self.jobs = Jobs(transport)
        self.logs = Logs(transport)
        self.periodic = Periodic(transport)
        self.requests = Requests(transport)
        self.system = System(transport)
        self.webhooks = Webhooks(transport)
        self.versions = DeployedVersions(transport)

    def __repr__(self) -> str:
        hosts = dict.fromkeys((self.urls.app, self.urls.storage, self.urls.jobq))
        return f"<PlatformClient of {', '.join(hosts)}>"

    async def __aenter__(self) -> PlatformClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()
