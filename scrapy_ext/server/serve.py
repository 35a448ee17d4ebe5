"""Start, readiness and graceful end of the server process.

The process prints one line on standard output once it accepts requests: ``ready http://HOST:PORT``, or the name of the
node for a worker. A failed start is one line on standard error and an exit code other than 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator, Iterator
from typing import Final

import msgspec
import uvicorn

from scrapy_ext.compatibility.python import Runner
from scrapy_ext.server import logs
from scrapy_ext.server.app import build
from scrapy_ext.server.auth.api_keys import weak_keys
from scrapy_ext.server.config.command_line import SECRETS
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.connections import Connections, limit_of
from scrapy_ext.server.http.memory import keep_freed
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.http.protocol import bounded
from scrapy_ext.server.status import StatusServer
from scrapy_ext.server.store import StoreError

#: Seconds for connections to close, after the grace of requests under way.
_LAST_SECONDS: Final = 2
#: Longer than clients keep idle connections: otherwise the server would close some just as they are used again.
_KEEP_ALIVE_SECONDS: Final = 75
_MAX_CONNECTIONS: Final = limits.CONNECTIONS
_BACKLOG: Final = 1024
_MAX_FILES: Final = 16_384
#: The store's threads need the interpreter often and briefly; with Python's default they wait five times as long.
_SWITCH_SECONDS: Final = 0.001
_HINTS: Final = """\
Pages for people: {url}/ (log in with the platform key)
For crawls: EXTRACT_API_URL={url}/v1 PLATFORM_URL={url}
Lost a key? Start with a new one in EXTRACT_API_KEY or PLATFORM_API_KEY."""
_UVICORN: Final = logging.getLogger("uvicorn.error")

logger = logging.getLogger(__name__)


def serve(config: ServerConfig) -> int:
    """Run until a signal (or the end of standard input, if so configured); return the exit code."""
    for name in SECRETS:
        # They are in `config`, and child processes must not inherit them.
        os.environ.pop(name, None)
    logs.start(config.log_format)
    if weak := weak_keys(config.extract_key, config.platform_key):
        logger.warning("%s", weak)
    _UVICORN.setLevel(logging.CRITICAL)  # a failed start is reported here, in one line
    with contextlib.ExitStack() as stack:
        try:
            listeners = [stack.enter_context(each) for each in _listeners(config)]
        except _ListenError as error:
            return _failed(str(error))
        return _serve(config, *listeners)


def _serve(config: ServerConfig, listener: socket.socket, status: socket.socket | None = None) -> int:
    _allow_many_sockets()
    keep_freed()
    sys.setswitchinterval(_SWITCH_SECONDS)
    config = msgspec.structs.replace(config, port=listener.getsockname()[1])
    with Runner(loop_factory=_loop_factory()) as runner:
        supervision = None if status is None else StatusServer(status, config.client_timeout)
        code: int = runner.run(_run(config, listener, supervision))
    return code


async def _run(config: ServerConfig, listener: socket.socket, status: StatusServer | None) -> int:
    middleware = build(config)
    connections = Connections(
        limit_of(_files(), config.connections or _MAX_CONNECTIONS),
        config.connections_per_address,
        config.reverse_proxies,
    )
    server = _Server(
        uvicorn.Config(
            middleware,
            http=bounded(config.client_timeout, middleware.metrics, middleware.memory, connections),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_LAST_SECONDS,
        ),
        middleware,
        status,
    )
    middleware.connections = connections
    server.about = _about(config)
    if config.exit_with_stdin:
        _watch_stdin(asyncio.get_running_loop(), server)
    try:
        await server.serve(sockets=[listener])
    except SystemExit:  # uvicorn's signal that the application did not start
        failure = middleware.failure
        if not isinstance(failure, StoreError | ConfigError):
            logger.error("The server did not start", exc_info=failure)
        return _failed(str(failure))
    finally:
        if status is not None:
            await status.stop()
    return 0


def _about(config: ServerConfig) -> str:
    """Return what a process is, for the person who reads its log: version, data and units. Empty for the server of a
    crawl, whose log is another."""
    if config.exit_with_stdin:
        return ""
    from scrapy_ext.server.http.openapi import package_version

    data = f"database {config.database}" if config.database is not None else f"data in {config.data.absolute()}"
    jobs = f"{config.units} units for jobs" if config.runner else "runs no jobs"
    return f"scrapy-ext {package_version()}, {data}, {jobs}"


def _print(line: str) -> None:
    """Write the line that programs wait for, if anybody still reads standard output."""
    try:
        print(line, flush=True)  # noqa: T201 - the command's own output
    except OSError:
        # Python flushes it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _failed(reason: str) -> int:
    print(f"error: {reason}", file=sys.stderr, flush=True)  # noqa: T201 - the command's own output
    return 1


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, middleware: RequestMiddleware, status: StatusServer | None) -> None:
        super().__init__(config)
        self._middleware = middleware
        self._status = status
        self._ending: asyncio.Task[None] | None = None
        self._has_signal = False
        #: What it is, for the log.
        self.about = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            # Present objects are permanent: without this, each full collection would take 0.1 s to visit them. Fewer
            # than one in a hundred is garbage; a collection before would take longer than it is worth.
            gc.freeze()
            gc.enable()
            _UVICORN.setLevel(logging.WARNING)
            if self._status is not None and self._middleware.status is not None:
                self._status.start(self._middleware.status)
            url = f"http://{_address(sockets[0])}"
            node = self._middleware.ready
            if self.about:
                logger.info("Ready at %s: %s", node or url, self.about)
            if sys.stderr.isatty() and node is None:
                print(_HINTS.format(url=url), file=sys.stderr, flush=True)  # noqa: T201 - for the person who started it
            _print(f"ready {node or url}")

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """A signal ends the server gracefully, and a second one at once; neither kills the process afterwards."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self._signalled)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _signalled(self) -> None:
        if self._has_signal:
            # The application is cancelled at its end, which uvicorn would log as its failure.
            _UVICORN.setLevel(logging.CRITICAL)
            self.force_exit = self.should_exit = True
        self._has_signal = True
        self.end()

    def end(self) -> None:
        """Finish requests under way, refuse new ones, then end."""
        if self._ending is None:
            if self.about:
                logger.info(
                    "Ending: %d requests are under way; running jobs continue on another node, or at the next start",
                    self._middleware.under_way,
                )
            self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        await self._middleware.end(limits.GRACE)
        self.should_exit = True


class _ListenError(Exception):
    """An address cannot be listened on; the message has the option with another."""


def _listeners(config: ServerConfig) -> Iterator[socket.socket]:
    """Yield the listener of the requests, and that of ``--status-address``, if any."""
    yield _listen(config.host, config.port, f"{config.host} port {config.port}", "--port or --host")
    if config.status_address is not None:
        host, _, port = config.status_address.rpartition(":")
        yield _listen(host.strip("[]"), int(port), config.status_address, "--status-address")


def _listen(host: str, port: int, shown: str, options: str) -> socket.socket:
    with contextlib.ExitStack() as stack:
        try:
            # As bytes, a plain name does not load the tables of other alphabets.
            name = host.encode() if host.isascii() else host
            family, kind, protocol, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise _ListenError(
                f"cannot listen on {shown}: {error.strerror or error}. Choose another {options}."
            ) from error
        stack.pop_all()
    return listener


def _allow_many_sockets() -> None:
    """Raise the limit of open files as far as the system allows: each connection is one."""
    try:
        import resource  # not on every platform

        highest = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wanted = _MAX_FILES if highest == resource.RLIM_INFINITY else min(highest, _MAX_FILES)
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, highest))
    except (ImportError, OSError, ValueError):
        return  # the server works with fewer, for fewer clients


def _files() -> int:
    """Return the number of files and sockets that this process may open."""
    try:
        import resource

        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    except ImportError:
        return _MAX_FILES


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # not on every platform
    except ImportError:
        return None
    return uvloop.Loop


def _watch_stdin(loop: asyncio.AbstractEventLoop, server: _Server) -> None:
    """End the server with the process at the other end of standard input, however that ends.

    A read of standard input can block, hence a thread; nothing may wait for it, hence a daemon.
    """

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(server.end)

    threading.Thread(target=watch, name="stdin", daemon=True).start()
