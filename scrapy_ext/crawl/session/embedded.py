"""Services of a crawl: those that the settings name, else a server in a child process, on a free loopback port.

The child gets newly made keys by a descriptor that no other process has, and works in the project's data directory,
``.scrapy/platform``. A server for extraction alone works in a temporary directory, and leaves no data. The child stops
when its standard input ends. Only this process has the other end of that pipe, so that the child ends with it in every
case, SIGKILL included. Several servers may work in one data directory at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.client.http import is_local
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, log_level
from scrapy_ext.crawl.session.project import data_directory, project_folder
from scrapy_ext.server import starting
from scrapy_ext.server.config.command_line import config_from
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.settings import Setting, SettingError
from scrapy_ext.telemetry.exporting import DISABLED

logger = logging.getLogger(__name__)

#: Seconds in which a server must stop before it is killed.
STOP_TIMEOUT: Final = 15.0
#: Lines of the server's standard error that are kept for the message of a failure.
_KEPT_LINES: Final = 20
#: Level and logger in a line of the server's log, after date and time.
_HEAD: Final = re.compile(r"\S+ \S+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) (\S+): ")
#: Loggers of failed requests: the crawl, which made the request, reports its failure.
_REPORTED_BY_CRAWL: Final = ("scrapy_ext.server.requests", "scrapy_ext.server.disk")
#: Restarts of a server that ends unexpectedly.
_RESTARTS: Final = 10
#: Settings of the platform's addresses: of all of it, and of its parts.
PLATFORM_ADDRESSES: Final = (
    names.PLATFORM_URL,
    names.PLATFORM_STORAGE_URL,
    names.PLATFORM_APP_URL,
    names.PLATFORM_JOBQ_URL,
)


class EmbeddedServerError(RuntimeError):
    """The embedded server could not be started; the message has its error output."""


class Services(msgspec.Struct, frozen=True):
    """URLs and keys of the services of a crawl. ``repr`` omits the keys.

    ``platform_urls`` is None if no platform is needed and the settings name none.
    """

    extract_url: str
    extract_key: str
    platform_urls: PlatformUrls | None
    platform_key: str
    project: int

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
    single, storage, app, jobq = (service_url(settings, setting) for setting in PLATFORM_ADDRESSES)
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
        raise SettingError(setting.name, f"must be an http or https URL, got {url!r}", "Correct the address.")
    if parts.username or parts.password:
        raise SettingError(setting.name, "must not contain a key", "Put it into the setting for the key.")
    return url.rstrip("/")


def service_key(settings: BaseSettings, key: Setting, url_setting: Setting, *, is_remote: bool) -> str | None:
    """Return the key of a service, None if it is the embedded one; raises :class:`SettingError`."""
    value: str | None = key.read(settings)
    if not is_remote:
        if value:
            message = "%s is set, but %s is not, so that the key has no effect: the embedded service is used"
            logger.warning(message, key.name, url_setting.name)
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


def check_installed() -> None:
    """Raise :class:`EmbeddedServerError` if no server runs on this system, or dependencies of it are missing."""
    if starting.UNSUPPORTED:
        raise EmbeddedServerError(
            f"{starting.UNSUPPORTED}. Set EXTRACT_API_URL and PLATFORM_URL to use remote services, or switch off the "
            "components that need them with EXTRACT_API_ENABLED, PLATFORM_ENABLED and FRONTIER_ENABLED."
        )
    missing = [name for name in ("starlette", "uvicorn", "playwright", "jinja2") if not importlib.util.find_spec(name)]
    if missing:
        raise EmbeddedServerError(
            f'the embedded server needs {", ".join(missing)}: pip install "scrapy-ext[server]", '
            "or set EXTRACT_API_URL and PLATFORM_URL to use remote services."
        )


class EmbeddedServer:
    """Server in a child process. Call :meth:`start` once; :meth:`stop` may be called at any time. Without ``platform``
    its data is not kept.

    A child that ends unexpectedly (killed for its memory, say) is started again on the same port with the same keys;
    its clients notice a short outage. If that does not help, ``on_lost`` is called in the loop of :meth:`start`.
    """

    def __init__(
        self,
        settings: BaseSettings,
        on_lost: Callable[[EmbeddedServerError], None] | None = None,
        *,
        platform: bool = True,
        runner: bool = False,
    ) -> None:
        self._on_lost = on_lost
        # Its files are removed at the end of this process, too: `scrapy shell` stops no server.
        self._temporary = (
            None if platform else tempfile.TemporaryDirectory(prefix="scrapy-ext-", ignore_cleanup_errors=True)
        )
        data = data_directory(settings) if self._temporary is None else Path(self._temporary.name)
        self._timeout: float = names.SERVER_START_TIMEOUT.read(settings)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._log_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._thread: threading.Thread | None = None
        self.extract_key = os.urandom(16).hex()
        self.platform_key = os.urandom(16).hex()
        self._config = self._configured(settings, data, runner=runner)
        self._more_environment = {} if names.OPENTELEMETRY_ENABLED.read(settings) else {DISABLED: "true"}
        self.url = ""

    def _configured(self, settings: BaseSettings, data: Path, *, runner: bool) -> ServerConfig:
        given = names.of_server(settings)
        options = argparse.Namespace(
            data=data if self._temporary is not None or not given["SERVER_DATABASE"] else None,
            extract_key=self.extract_key,
            platform_key=self.platform_key,
            exit_with_stdin=True,
            runner=runner,
        )
        if runner:
            # Jobs must have ended, or be ready for a resume, before the server is killed.
            options.stop_grace = STOP_TIMEOUT * 2 / 3
            options.local_project = project_folder()
        try:
            return config_from(options, names.variables(), given)
        except ConfigError as error:
            raise EmbeddedServerError(f"the embedded server did not start: {error}") from None

    async def start(self) -> None:
        """Start the child and wait until it accepts requests; raises :class:`EmbeddedServerError`."""
        check_installed()
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[str] = loop.create_future()
        self._thread = threading.Thread(target=self._keep, args=(loop, ready), name="embedded-server", daemon=True)
        self._thread.start()
        try:
            self.url = await asyncio.wait_for(ready, self._timeout)
        except (*TIMEOUT_ERRORS, EmbeddedServerError) as error:
            await self.stop()
            if isinstance(error, EmbeddedServerError):
                raise
            late = f"the embedded server did not start within {self._timeout:g} s (SERVER_START_TIMEOUT)"
            raise EmbeddedServerError(late) from None
        logger.info("Embedded server ready at %s", self.url)

    async def stop(self) -> None:
        """Stop the child, and kill it if it does not end in time."""
        await asyncio.to_thread(self._stop)

    # ── in the thread of the child ──

    def _keep(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Future[str]) -> None:
        """Run the child, and start it again until it is stopped."""
        url, status = self._run(0, lambda url: _call(loop, _settle, ready, url, None))
        if not url:
            error = f"the embedded server did not start: {self._output()}"
            _call(loop, _settle, ready, "", EmbeddedServerError(error))
            return
        port = urlsplit(url).port or 0
        for restart in range(_RESTARTS):
            if self._stopping.is_set():
                return
            logger.error("The embedded server ended unexpectedly (status %s) and is started again", status)
            _, status = self._run(port, lambda _url: None)
            self._stopping.wait(min(0.1 * 2**restart, 10))
        if self._on_lost is not None and not self._stopping.is_set():
            error = f"the embedded server ended {_RESTARTS + 1} times and is not started again: {self._output()}"
            _call(loop, self._on_lost, EmbeddedServerError(error))

    def _output(self) -> str:
        return "\n".join(self._log_lines) or "it wrote no error output"

    def _run(self, port: int, on_ready: Callable[[str], None]) -> tuple[str, int]:
        """Run one child to its end; return its URL, empty if it was not ready, and its exit status."""
        with self._lock:
            if self._stopping.is_set():
                return "", 0
            process = self._process = self._spawn(port)
        url = ""
        with process:  # It closes the pipes.
            log = threading.Thread(target=self._read_log, args=(process.stderr,), daemon=True)
            log.start()
            for line in process.stdout or ():
                word, _, value = line.decode(errors="replace").strip().partition(" ")
                if word == "ready":
                    url = value
                    on_ready(url)
            status = process.wait()
            log.join(timeout=5)
        return url, status

    def _spawn(self, port: int) -> subprocess.Popen[bytes]:
        descriptor = starting.offer(msgspec.structs.replace(self._config, port=port))
        try:
            # In a session of its own, since the Ctrl-C that stops the crawl must not end its storage.
            return subprocess.Popen(  # noqa: S603  # our own interpreter and module
                [sys.executable, "-m", starting.MODULE, str(descriptor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=starting.environment() | self._more_environment,
                pass_fds=(descriptor,),
                start_new_session=True,
            )
        finally:
            os.close(descriptor)

    def _read_log(self, stream: IO[bytes]) -> None:
        level = logging.INFO
        for line in stream:
            text = line.decode(errors="replace").rstrip()
            self._log_lines.append(text)
            found = _HEAD.match(text)
            if found is not None:  # Lines of a traceback have the level of the line before them.
                level = logging.DEBUG if found[2] in _REPORTED_BY_CRAWL else log_level(found[1])
            logger.log(level if level >= logging.WARNING else logging.DEBUG, "server: %s", text)

    def _stop(self) -> None:
        self._stopping.set()
        with self._lock:
            process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]  # a pipe was asked for
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                logger.warning("The embedded server did not stop within %g s and is killed", STOP_TIMEOUT)
                process.kill()
            if self._thread is not None:
                self._thread.join(timeout=STOP_TIMEOUT)
        if self._temporary is not None:
            self._temporary.cleanup()


def _call(loop: asyncio.AbstractEventLoop, function: object, *args: object) -> None:
    # The loop may be closed when the child ends.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)  # type: ignore[arg-type]


def _settle(ready: asyncio.Future[str], url: str, error: Exception | None) -> None:
    if ready.done():
        return
    if error is not None:
        ready.set_exception(error)
    else:
        ready.set_result(url)


@contextlib.asynccontextmanager
async def services(
    settings: BaseSettings,
    *,
    extraction: bool,
    platform: bool,
    runner: bool = False,
    on_lost: Callable[[EmbeddedServerError], None] | None = None,
) -> AsyncIterator[Services]:
    """Yield the services that the settings name, with an embedded server for the others.

    ``extraction``, ``platform``: which of the two are needed. No server is started for the other.
    ``runner``: an embedded server runs jobs as well.
    ``on_lost``: called when an embedded server has ended and cannot be started again.

    A platform that the settings name must answer before a server is started. Raises :class:`SettingError`,
    :class:`EmbeddedServerError` and :class:`PlatformError`.
    """
    configured = Configured.read(settings)
    embedded_platform = platform and configured.platform_urls is None
    embedded = (extraction and configured.extract_url is None) or embedded_platform
    if embedded and platform and configured.platform_urls is not None:
        await _check_platform(settings, configured)
    server = EmbeddedServer(settings, on_lost, platform=embedded_platform, runner=runner) if embedded else None
    if server is not None:
        await server.start()
    try:
        yield _resolve(configured, server)
    finally:
        if server is not None:
            await server.stop()


async def _check_platform(settings: BaseSettings, configured: Configured) -> None:
    async with new_platform_client(settings, _resolve(configured, None), attempts=1) as client:
        await client.jobq.count(configured.project)


def _resolve(configured: Configured, server: EmbeddedServer | None) -> Services:
    url = server.url if server is not None else ""
    return Services(
        configured.extract_url or f"{url}/v1",
        configured.extract_key or (server.extract_key if server is not None else ""),
        configured.platform_urls or (PlatformUrls.single(url) if url else None),
        configured.platform_key or (server.platform_key if server is not None else ""),
        configured.project,
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
