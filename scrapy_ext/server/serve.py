"""Runs the server: binds, starts, says that it is ready, and ends gracefully.

On standard output there is one line, ``ready http://HOST:PORT``, once requests are accepted; a worker, whose jobs alone
ask it something, says its name among the nodes instead of where. Whatever keeps the
server from starting is one line on standard error and a return code that is not 0.
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
from collections.abc import Generator
from typing import Final

import msgspec
import uvicorn

from scrapy_ext.server.app import build
from scrapy_ext.server.auth.keyring import weak_keys
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.config.options import SECRETS
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.connections import Connections, limit_of
from scrapy_ext.server.http.middleware import Front
from scrapy_ext.server.http.protocol import bounded
from scrapy_ext.server.observability import logs
from scrapy_ext.server.store import StoreError

#: After the grace of requests under way: for connections to close.
_LAST_SECONDS: Final = 2
#: Longer than clients keep idle connections, so that it is not the server that closes one just as it is used.
_KEEP_ALIVE_SECONDS: Final = 75
_MAX_CONNECTIONS: Final = limits.CONNECTIONS
_BACKLOG: Final = 1024
_MAX_FILES: Final = 16_384
#: The store's threads need the interpreter often and for a moment: they would wait five times as long by default.
_SWITCH_SECONDS: Final = 0.001
_HINTS: Final = """\
Pages for people: {url}/ (log in with the platform key)
For crawls: EXTRACT_API_URL={url}/v1 PLATFORM_URL={url}
Lost a key? Start with a new one in EXTRACT_API_KEY or PLATFORM_API_KEY."""
_UVICORN: Final = logging.getLogger("uvicorn.error")

logger = logging.getLogger(__name__)


def serve(config: ServerConfig) -> int:
    """Run until a signal (or the end of standard input, if so configured) comes; returns the exit code."""
    for name in SECRETS:
        # They are in `config`. No process that this one starts has any business with them.
        os.environ.pop(name, None)
    logs.start(config.log_format)
    if weak := weak_keys(config.extract_key, config.platform_key):
        logger.warning("%s", weak)
    _UVICORN.setLevel(logging.CRITICAL)  # what it would say of a failed start is said here, in one line
    try:
        listener = _listen(config.host, config.port)
    except OSError as error:
        where = f"{config.host} port {config.port}"
        return _failed(f"cannot listen on {where}: {error.strerror or error}. Choose another --port or --host.")
    _allow_many_sockets()
    sys.setswitchinterval(_SWITCH_SECONDS)
    config = msgspec.structs.replace(config, port=listener.getsockname()[1])
    with listener, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(config, listener))


async def _run(config: ServerConfig, listener: socket.socket) -> int:
    front = build(config)
    connections = Connections(
        limit_of(_files(), config.connections or _MAX_CONNECTIONS),
        config.connections_per_address,
        config.reverse_proxies,
    )
    server = _Server(
        uvicorn.Config(
            front,
            http=bounded(config.client_timeout, front.metrics, front.memory, connections),
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
        front,
    )
    front.connections = connections
    if config.exit_with_stdin:
        _watch_stdin(asyncio.get_running_loop(), server)
    try:
        await server.serve(sockets=[listener])
    except SystemExit:  # uvicorn's way to say that the application did not start
        failure = front.failure
        if not isinstance(failure, StoreError | ConfigError):
            logger.error("The server did not start", exc_info=failure)
        return _failed(str(failure))
    return 0


def _failed(reason: str) -> int:
    print(f"error: {reason}", file=sys.stderr, flush=True)  # noqa: T201 - the command's own output
    return 1


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, front: Front) -> None:
        super().__init__(config)
        self._front = front
        self._ending: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            # What is there now stays: looking at it again each time would make every full collection take 0.1 s.
            gc.collect()
            gc.freeze()
            _UVICORN.setLevel(logging.WARNING)
            url = f"http://{_address(sockets[0])}"
            said = self._front.ready
            if sys.stderr.isatty() and said is None:
                print(_HINTS.format(url=url), file=sys.stderr, flush=True)  # noqa: T201 - for the person who started it
            print(f"ready {said or url}", flush=True)  # noqa: T201 - what a starter waits for

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """A signal ends the server gracefully, and a second one at once; neither kills the process afterwards."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self.end)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def end(self) -> None:
        """Finish what is being answered, refuse what is new, then end; called again, end at once."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        else:
            self.force_exit = self.should_exit = True

    async def _end(self) -> None:
        await self._front.end(limits.GRACE)
        self.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _allow_many_sockets() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    try:
        import resource  # not on every platform

        highest = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wanted = _MAX_FILES if highest == resource.RLIM_INFINITY else min(highest, _MAX_FILES)
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, highest))
    except (ImportError, OSError, ValueError):
        return  # with fewer it works as well, for fewer clients


def _files() -> int:
    """The number of files and sockets that this process may open."""
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
    """End with whoever holds the other end of standard input, in whatever way that ends.

    A thread, because a read of standard input can block, and a daemon, because nothing may wait for it.
    """

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(server.end)

    threading.Thread(target=watch, name="stdin", daemon=True).start()
