"""Services of a crawl: those that the settings name, else an embedded server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.masking import shown_address
from scrapy_ext.client.http import is_local
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.crawl.session.embedded import EmbeddedServer, EmbeddedServerError, ServerAddress
from scrapy_ext.crawl.session.forked import server_of
from scrapy_ext.settings import Setting, SettingError


class Services(msgspec.Struct, frozen=True):
    """URLs and keys of the services of a crawl. ``repr`` omits the keys.

    ``platform_urls`` is None if no platform is needed and the settings name none.
    """

    extract_url: str
    extract_key: str
    platform_urls: PlatformUrls | None
    platform_key: str
    project: int
    #: The embedded server, which this process or another worker of this machine runs; None: there is none.
    server: ServerAddress | None = None

    def __repr__(self) -> str:
        return f"Services(extract_url={self.extract_url!r}, platform_urls={self.platform_urls!r})"


class Configured(msgspec.Struct, frozen=True):
    """Services that the settings name. None stands for the embedded service."""

    extract_url: str | None
    extract_key: str | None
    platform_urls: PlatformUrls | None
    platform_key: str | None
    project: int

    @classmethod
    def read(cls, settings: BaseSettings) -> Configured:
        """Read and check addresses, keys and project; raises :class:`SettingError`."""
        extract_url, urls = extraction_url(settings), platform_urls(settings)
        return cls(
            extract_url,
            service_key(settings, names.EXTRACT_API_KEY, names.EXTRACT_API_URL, is_remote=extract_url is not None),
            urls,
            service_key(settings, names.PLATFORM_API_KEY, names.PLATFORM_URL, is_remote=urls is not None),
            names.PLATFORM_PROJECT.read(settings),
        )


def extraction_url(settings: BaseSettings) -> str | None:
    """Return the address of the extraction service; raises :class:`SettingError`."""
    url = service_url(settings, names.EXTRACT_API_URL)
    if url is not None and not url.endswith("/v1"):
        raise SettingError("EXTRACT_API_URL", f"must end in /v1, got {url!r}", "Add the version to it.")
    return url


def platform_urls(settings: BaseSettings) -> PlatformUrls | None:
    """Return the addresses of the platform; raises :class:`SettingError`."""
    single, storage, app, jobq = (service_url(settings, setting) for setting in names.PLATFORM_ADDRESSES)
    storage = storage or single
    if storage is None and (app or jobq):
        raise SettingError(
            "PLATFORM_STORAGE_URL", "is not set, but another PLATFORM_ address is", "Set it, or PLATFORM_URL."
        )
    if storage is None:
        return None
    return PlatformUrls(app=app or single or storage, storage=storage, jobq=jobq or single or storage)


def service_url(settings: BaseSettings, setting: Setting) -> str | None:
    """Return an address, None if it is not set; raises :class:`SettingError`."""
    url: str | None = setting.read(settings)
    if not url:
        return None
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise SettingError(
            setting.name,
            f"must be an http or https URL{shown_address(url)}",
            "Write one such as https://platform.example.com.",
        )
    if parts.username or parts.password:
        raise SettingError(
            setting.name, "must not contain a key", "Remove it, and put it into the setting for the key."
        )
    return url.rstrip("/")


def service_key(settings: BaseSettings, key: Setting, url_setting: Setting, *, is_remote: bool) -> str | None:
    """Return the key of a service, None if it is the embedded one; raises :class:`SettingError`."""
    value: str | None = key.read(settings)
    if not is_remote:
        return None
    if not value:
        raise SettingError(
            key.name,
            f"is not set, but {url_setting.name} is",
            "Set it, or the variable of that name in the environment or in .env.",
        )
    if not value.isascii() or not value.isprintable() or ":" in value or " " in value:
        raise SettingError(key.name, "has a character that no key has", "Copy the key again.")
    return value


@contextlib.asynccontextmanager
async def services(
    settings: BaseSettings,
    *,
    extraction: bool,
    platform: bool,
    runner: bool = False,
    early: EmbeddedServer | None = None,
    on_lost: Callable[[EmbeddedServerError], None] | None = None,
) -> AsyncIterator[Services]:
    """Yield the services that the settings name, with an embedded server for the others.

    ``extraction``, ``platform``: which of the two are needed. No server is started for the other.
    ``runner``: an embedded server runs jobs as well.
    ``early``: an embedded server that has begun; it is stopped if it is not the one that is needed.
    ``on_lost``: called when an embedded server has ended and cannot be started again.

    A platform that the settings name must answer before a server is started. Raises :class:`SettingError`,
    :class:`EmbeddedServerError` and :class:`PlatformError`.
    """
    server = early
    try:
        configured = Configured.read(settings)
        embedded_platform = platform and configured.platform_urls is None
        embedded = (extraction and configured.extract_url is None) or embedded_platform
        if (shared := server_of(settings)) is not None:
            yield _resolve(configured, shared)
            return
        if early is not None and not (embedded and early.is_for(settings, platform=embedded_platform)):
            await early.stop()
            server = None
        if embedded and platform and configured.platform_urls is not None:
            await _check_platform(settings, configured)
        if embedded:
            server = server or EmbeddedServer(settings, platform=embedded_platform, runner=runner)
            server.on_lost = on_lost
            await server.start()
        yield _resolve(configured, server.address if server is not None else None)
    finally:
        if server is not None:
            await server.stop()


async def _check_platform(settings: BaseSettings, configured: Configured) -> None:
    async with new_platform_client(settings, _resolve(configured, None), attempts=1) as client:
        await client.jobq.count(configured.project)


def _resolve(configured: Configured, server: ServerAddress | None) -> Services:
    url = server.url if server is not None else ""
    return Services(
        configured.extract_url or f"{url}/v1",
        configured.extract_key or (server.extract_key if server is not None else ""),
        configured.platform_urls or (PlatformUrls.single(url) if url else None),
        configured.platform_key or (server.platform_key if server is not None else ""),
        configured.project,
        server,
    )


@contextlib.asynccontextmanager
async def platform_client(
    settings: BaseSettings, *, runner: bool = False, attempts: int | None = None
) -> AsyncIterator[tuple[PlatformClient, int]]:
    """Yield a client of the platform that the settings name, or of an embedded one, and the project ID.

    ``runner``: an embedded server runs jobs as well. ``attempts``: attempts of a call, instead of those of the
    settings.
    """
    async with (
        services(settings, extraction=False, platform=True, runner=runner) as found,
        new_platform_client(settings, found, attempts) as client,
    ):
        yield client, found.project


def new_platform_client(settings: BaseSettings, found: Services, attempts: int | None = None) -> PlatformClient:
    """Return a client with the settings' timeouts, or with this number of attempts for each call."""
    if found.platform_urls is None:
        raise RuntimeError("services() was called without a platform")
    return PlatformClient(
        found.platform_urls,
        found.platform_key,
        timeout=names.PLATFORM_TIMEOUT.read(settings),
        retry_time=names.PLATFORM_RETRY_TIME.read(settings) if attempts is None else 0.0,
        attempts=attempts or 5,
        # The loopback network is faster than compression.
        compress=not is_local(found.platform_urls.storage),
    )
