"""The embedded server: a child process of a crawl or a command, on a free loopback port.

The child gets newly made keys by a descriptor that no other process has, and works in the project's data directory,
``.scrapy/platform``. A server for extraction alone works in a temporary directory, and leaves no data. The child stops
when its standard input ends. Only this process has the other end of that pipe, so that the child ends with it in every
case, SIGKILL included. Several servers may work in one data directory at once.

A server needs about half a second until it is ready, and so does Scrapy from the add-ons to the first request. So the
add-on begins the server as soon as the crawl's settings are known, and the crawl's session takes it when it opens. A
server that nobody takes ends with its crawler or this process, whichever is first.
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
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

import msgspec
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, log_level
from scrapy_ext.crawl.session.project import data_directory, project_folder
from scrapy_ext.server import launch
from scrapy_ext.server.config.command_line import config_from
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.settings import SettingError
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
#: Seconds between two attempts to have the port of a predecessor.
_PORT_PAUSE: Final = 0.1
#: Attribute of a crawler that holds its server until the session takes it.
_ATTRIBUTE: Final = "_scrapy_ext_early_server"


class EmbeddedServerError(RuntimeError):
    """The embedded server could not be started; the message has its error output."""


def check_installed() -> None:
    """Raise :class:`EmbeddedServerError` if no server runs on this system, or dependencies of it are missing."""
    if launch.UNSUPPORTED:
        raise EmbeddedServerError(
            f"{launch.UNSUPPORTED}. Set EXTRACT_API_URL and PLATFORM_URL to use remote services, or switch off the "
            "components that need them with EXTRACT_API_ENABLED, PLATFORM_ENABLED and FRONTIER_ENABLED."
        )
    missing = [name for name in ("starlette", "uvicorn", "playwright", "jinja2") if not importlib.util.find_spec(name)]
    if missing:
        raise EmbeddedServerError(
            f'the embedded server needs {", ".join(missing)}: pip install "scrapy-ext[server]", '
            "or set EXTRACT_API_URL and PLATFORM_URL to use remote services."
        )


class ServerAddress(msgspec.Struct, frozen=True):
    """Address and keys of an embedded server, at which another process can start it again. ``repr`` omits the keys.

    ``platform``: its data is kept.
    """

    url: str
    extract_key: str
    platform_key: str
    platform: bool

    def __repr__(self) -> str:
        return f"ServerAddress({self.url!r})"


class EmbeddedServer:
    """Server in a child process. Call :meth:`start` once; :meth:`stop` may be called at any time. Without ``platform``
    its data is not kept. :meth:`begin` before that lets the child start while this process prepares.

    A child that ends unexpectedly (killed for its memory, say) is started again on the same port with the same keys;
    its clients notice a short outage. If that does not help, ``on_lost`` is called in the loop of :meth:`start`.
    ``successor_at``: it replaces a server there, whose process has ended and which ends as well.
    """

    def __init__(
        self,
        settings: BaseSettings,
        *,
        platform: bool = True,
        runner: bool = False,
        successor_at: ServerAddress | None = None,
    ) -> None:
        #: Called when the server has ended and cannot be started again.
        self.on_lost: Callable[[EmbeddedServerError], None] | None = None
        # Its files are removed at the end of this process, too: `scrapy shell` stops no server.
        self._temporary = None if platform else _temporary_folder()
        self._timeout: float = names.SERVER_START_TIMEOUT.read(settings)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._log_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._thread: threading.Thread | None = None
        self.extract_key = successor_at.extract_key if successor_at else os.urandom(16).hex()
        self.platform_key = successor_at.platform_key if successor_at else os.urandom(16).hex()
        self._config = self._configured(settings, runner=runner)
        self._more_environment = _environment(settings)
        #: That of the predecessor, which may be ending; 0: any free port.
        self._port = urlsplit(successor_at.url).port or 0 if successor_at else 0
        self.url = ""

    @property
    def address(self) -> ServerAddress:
        return ServerAddress(self.url, self.extract_key, self.platform_key, self._temporary is None)

    def _configured(self, settings: BaseSettings, *, runner: bool) -> ServerConfig:
        given = names.of_server(settings)
        if self._temporary is not None:
            data: Path | None = Path(self._temporary.name)
        else:
            data = None if given["SERVER_DATABASE"] else _writable(data_directory(settings))
        options = argparse.Namespace(
            data=data,
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

    def is_for(self, settings: BaseSettings, *, platform: bool) -> bool:
        """Return whether a server with these settings, without a runner, would be the same."""
        return (
            (self._temporary is None) == platform
            and self._timeout == names.SERVER_START_TIMEOUT.read(settings)
            and self._config == self._configured(settings, runner=False)
            and self._more_environment == _environment(settings)
        )

    def begin(self) -> None:
        """Start the child without waiting for it; raises :class:`EmbeddedServerError` and :class:`OSError`."""
        check_installed()
        self._process = self._spawn(0)

    async def start(self) -> None:
        """Start the child, unless it has begun, and wait until it accepts requests.

        Raises :class:`EmbeddedServerError`.
        """
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
            late = f"the embedded server did not start within {self._timeout:g} s: raise SERVER_START_TIMEOUT"
            raise EmbeddedServerError(late) from None
        logger.info("Embedded server ready at %s", self.url)

    async def stop(self) -> None:
        """Stop the child, and kill it if it does not end in time."""
        await asyncio.to_thread(self._stop)

    def abandon(self) -> None:
        """Stop the child without waiting for its end."""
        threading.Thread(target=self._stop, daemon=True).start()

    # ── in the thread of the child ──

    def _keep(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Future[str]) -> None:
        """Run the child, and start it again until it is stopped."""

        def on_ready(url: str) -> None:
            _call(loop, _settle, ready, url, None)

        url, status = self._run(self._port, on_ready)
        while not url and self._port and not self._stopping.wait(_PORT_PAUSE):
            # Its predecessor has the port until it has ended; ``start`` bounds the wait.
            url, status = self._run(self._port, on_ready)
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
        if self.on_lost is not None and not self._stopping.is_set():
            error = f"the embedded server ended {_RESTARTS + 1} times and is not started again: {self._output()}"
            _call(loop, self.on_lost, EmbeddedServerError(error))

    def _output(self) -> str:
        return "\n".join(self._log_lines) or "it wrote no error output"

    def _run(self, port: int, on_ready: Callable[[str], None]) -> tuple[str, int]:
        """Run one child to its end; return its URL, empty if it was not ready, and its exit status."""
        with self._lock:
            if self._stopping.is_set():
                return "", 0
            if port or self._process is None:
                self._process = self._spawn(port)
            process = self._process
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
        descriptor = launch.offer(msgspec.structs.replace(self._config, port=port))
        try:
            # In a session of its own, since the Ctrl-C that stops the crawl must not end its storage.
            return subprocess.Popen(  # noqa: S603  # our own interpreter and module
                [sys.executable, "-m", launch.MODULE, str(descriptor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=launch.environment() | self._more_environment,
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
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                logger.warning("The embedded server did not stop within %g s and is killed", STOP_TIMEOUT)
                process.kill()
            if self._thread is not None:
                self._thread.join(timeout=STOP_TIMEOUT)
            else:
                for pipe in filter(None, (process.stdout, process.stderr)):
                    pipe.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="scrapy-ext-", ignore_cleanup_errors=True)
    except OSError as error:
        raise EmbeddedServerError(
            f"the embedded service has no folder for temporary files ({error}). Set TMPDIR to a folder that can be "
            "written, or EXTRACT_API_URL to use a service elsewhere."
        ) from None


def _writable(folder: Path) -> Path:
    """Return a folder in which files can be made; raises :class:`EmbeddedServerError` for any other."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder of another user, or on a file system that is mounted read-only.
        reason = "" if os.access(folder, os.W_OK | os.X_OK) else "read-only, or of another user"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise EmbeddedServerError(
            f"the embedded platform cannot write its data to {folder} ({reason}). Set SERVER_DATA to a folder that can "
            "be written, or PLATFORM_URL to use a platform elsewhere, which needs no folder."
        )
    return folder


def _environment(settings: BaseSettings) -> dict[str, str]:
    return {} if names.OPENTELEMETRY_ENABLED.read(settings) else {DISABLED: "true"}


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object) -> None:
    # The loop may be closed when the child ends.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)


def _settle(ready: asyncio.Future[str], url: str, error: Exception | None) -> None:
    if ready.done():
        return
    if error is not None:
        ready.set_exception(error)
    else:
        ready.set_result(url)


# ── begun early ──


def begin_early(crawler: Crawler, *, extraction: bool, platform: bool) -> None:
    """Begin the server of a crawl that needs one. Of an error here, the session reports what remains when it opens."""
    settings = crawler.settings
    try:
        for setting in names.SETTINGS.values():
            setting.read(settings)
        embedded_platform = platform and not any(url.read(settings) for url in names.PLATFORM_ADDRESSES)
        # Without a server in vain: a platform elsewhere must answer first.
        if not embedded_platform and (platform or not extraction or names.EXTRACT_API_URL.read(settings)):
            return
        server = EmbeddedServer(settings, platform=embedded_platform)
        server.begin()
    except (SettingError, EmbeddedServerError, OSError):
        return
    ending = weakref.finalize(crawler, server.abandon)
    # The child ends with this process by itself.
    ending.atexit = False
    setattr(crawler, _ATTRIBUTE, (server, ending))


def take_early(crawler: Crawler) -> EmbeddedServer | None:
    """Return the server that was begun for a crawler, once."""
    begun: tuple[EmbeddedServer, weakref.finalize[[], Crawler]] | None = vars(crawler).pop(_ATTRIBUTE, None)
    if begun is None:
        return None
    server, ending = begun
    ending.detach()
    return server
