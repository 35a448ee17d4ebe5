"""The client of the platform: one session, one attribute per resource."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.platform.activity import Activity, Webhooks
from scrapy_ext.client.platform.beginnings import Beginnings
from scrapy_ext.client.platform.calls import get
from scrapy_ext.client.platform.collections import Collections
from scrapy_ext.client.platform.deliveries import Deliveries
from scrapy_ext.client.platform.frontier import Frontier
from scrapy_ext.client.platform.imports import Imports
from scrapy_ext.client.platform.jobs import JobQueue, Jobs, Periodic
from scrapy_ext.client.platform.monitors import Alerts, Monitors
from scrapy_ext.client.platform.projects import Projects
from scrapy_ext.client.platform.proxies import ProxySuccess
from scrapy_ext.client.platform.records import Items, Logs, Requests, Samples
from scrapy_ext.client.platform.resource import Resource
from scrapy_ext.client.platform.retention import Retention
from scrapy_ext.client.platform.snapshots import Snapshots
from scrapy_ext.client.platform.transport import PlatformUrls, Transport
from scrapy_ext.client.platform.usage import StorageUsage
from scrapy_ext.client.platform.users import Users
from scrapy_ext.client.platform.versions import DeployedVersions
from scrapy_ext.client.retry import Backoff, Limits


class System(Resource):
    """The platform itself (platform-api.md, Common conventions)."""

    async def timestamp(self) -> int:
        """Return the time by the platform's clock, in milliseconds since the epoch."""
        return await self._json(get(Host.STORAGE, "/system/ts", accept="text/plain"), int)


class PlatformClient:
    """A client of the platform at these addresses; every method raises
    :class:`~scrapy_ext.client.platform.errors.PlatformError`.

    It can be created anywhere, and opens its connections in the event loop that first uses it. Close it with ``await
    close()``, or use it as an async context manager. ``timeout`` bounds each attempt, in seconds. A repeatable call has
    ``attempts`` attempts, or, when ``retry_time`` is not 0, as many as fit in that number of seconds. ``compress``
    False sends and requests uncompressed bodies, which suits a fast network. ``pace`` is awaited before each attempt.
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
        pace: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        limits = Limits(attempts, retry_time, backoff or Backoff())
        self.urls = urls
        transport = Transport(urls, key, timeout=timeout, limits=limits, compress=compress, pace=pace)
        self._transport = transport
        self.activity = Activity(transport)
        self.alerts = Alerts(transport)
        self.beginnings = Beginnings(transport)
        self.collections = Collections(transport)
        self.deliveries = Deliveries(transport)
        self.frontier = Frontier(transport)
        self.imports = Imports(transport)
        self.items = Items(transport)
        self.jobq = JobQueue(transport)
        self.jobs = Jobs(transport)
        self.logs = Logs(transport)
        self.monitors = Monitors(transport)
        self.periodic = Periodic(transport)
        self.projects = Projects(transport)
        self.proxies = ProxySuccess(transport)
        self.requests = Requests(transport)
        self.samples = Samples(transport)
        self.retention = Retention(transport)
        self.snapshots = Snapshots(self.collections)
        self.system = System(transport)
        self.usage = StorageUsage(transport)
        self.users = Users(transport)
        self.webhooks = Webhooks(transport)
        self.versions = DeployedVersions(transport)

    def __repr__(self) -> str:
        hosts = dict.fromkeys((self.urls.app, self.urls.storage, self.urls.jobq))
        return f"<PlatformClient of {', '.join(hosts)}>"

    async def __aenter__(self) -> PlatformClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()
