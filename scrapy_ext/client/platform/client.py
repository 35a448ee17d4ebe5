"""The client of the platform: one session, one attribute per resource."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar, overload

from scrapy_ext.api.platform import retention
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.platform.administration import ProxySuccess, StorageUsage, Users
from scrapy_ext.client.platform.calls import get
from scrapy_ext.client.platform.collections import Collections
from scrapy_ext.client.platform.frontier import Frontier
from scrapy_ext.client.platform.imports import Imports
from scrapy_ext.client.platform.jobs import JobQueue, Jobs
from scrapy_ext.client.platform.periodic import Periodic
from scrapy_ext.client.platform.projects import Activity, Projects
from scrapy_ext.client.platform.receivers import ALERTS, WEBHOOKS, Receivers
from scrapy_ext.client.platform.records import Items, Logs, Requests, Samples
from scrapy_ext.client.platform.resource import Beginnings, Resource
from scrapy_ext.client.platform.rules import Deliveries, Monitors, Rules
from scrapy_ext.client.platform.snapshots import Snapshots
from scrapy_ext.client.platform.transport import PlatformUrls, Transport
from scrapy_ext.client.platform.versions import DeployedVersions
from scrapy_ext.client.platform.workers import Workers
from scrapy_ext.client.retry import Backoff, Limits

T = TypeVar("T")


class System(Resource):
    """The platform itself (platform-api.md, Common conventions)."""

    async def timestamp(self) -> int:
        """Return the time by the platform's clock, in milliseconds since the epoch."""
        return await self._json(get(Host.STORAGE, "/system/ts", accept="text/plain"), int)


class _Of(Generic[T]):
    """A resource of a client, made when it is first used."""

    def __init__(self, make: Callable[[Transport], T]) -> None:
        self._make = make
        self._name = ""

    def __set_name__(self, owner: type[PlatformClient], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, client: None, owner: type[PlatformClient]) -> _Of[T]: ...

    @overload
    def __get__(self, client: PlatformClient, owner: type[PlatformClient]) -> T: ...

    def __get__(self, client: PlatformClient | None, owner: type[PlatformClient]) -> _Of[T] | T:
        if client is None:
            return self
        made = self._make(client._transport)
        # From now on Python finds it there, before it asks this object.
        vars(client)[self._name] = made
        return made


class PlatformClient:
    """A client of the platform at these addresses; every method raises
    :class:`~scrapy_ext.client.platform.errors.PlatformError`.

    It can be created anywhere, and opens its connections in the event loop that first uses it. Close it with ``await
    close()``, or use it as an async context manager. ``timeout`` bounds each attempt, in seconds. A repeatable call has
    ``attempts`` attempts, or, when ``retry_time`` is not 0, as many as fit in that number of seconds. ``compress``
    False sends and requests uncompressed bodies, which suits a fast network. ``pace`` is awaited before each attempt.
    """

    activity = _Of(Activity)
    alerts = _Of(partial(Receivers, sort=ALERTS))
    beginnings = _Of(Beginnings)
    collections = _Of(Collections)
    deliveries = _Of(Deliveries)
    frontier = _Of(Frontier)
    imports = _Of(Imports)
    items = _Of(Items)
    jobq = _Of(JobQueue)
    jobs = _Of(Jobs)
    logs = _Of(Logs)
    monitors = _Of(Monitors)
    periodic = _Of(Periodic)
    projects = _Of(Projects)
    proxies = _Of(ProxySuccess)
    requests = _Of(Requests)
    retention = _Of(partial(Rules, sort=retention.SORT))
    samples = _Of(Samples)
    snapshots = _Of(lambda transport: Snapshots(Collections(transport)))
    system = _Of(System)
    usage = _Of(StorageUsage)
    users = _Of(Users)
    versions = _Of(DeployedVersions)
    webhooks = _Of(partial(Receivers, sort=WEBHOOKS))
    workers = _Of(Workers)

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
        self._transport = Transport(urls, key, timeout=timeout, limits=limits, compress=compress, pace=pace)

    def __repr__(self) -> str:
        hosts = dict.fromkeys((self.urls.app, self.urls.storage, self.urls.jobq))
        return f"<PlatformClient of {', '.join(hosts)}>"

    async def __aenter__(self) -> PlatformClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()
