"""``python -m example_project.site``: serve the site until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import threading

import uvicorn

from example_project.site.app import build


def _sockets(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets; also on ::1 for 127.0.0.1, because browsers may resolve localhost to either."""
    first = socket.create_server((host, port), backlog=512)
    opened = [first]
    if host == "127.0.0.1":
        try:
            opened.append(socket.create_server(("::1", first.getsockname()[1]), family=socket.AF_INET6, backlog=512))
        except OSError as error:
            print(f"serving 127.0.0.1 only, not ::1: {error}", file=sys.stderr)
    return opened


def _stop_with_stdin(server: uvicorn.Server) -> None:
    def watch() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True

    threading.Thread(target=watch, daemon=True).start()


class _Server(uvicorn.Server):
    """Server that prints its URL once it accepts requests."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(f"ready {self._address}", flush=True)


def main() -> int:
    """Serve; return 1 when the port is taken."""
    parser = argparse.ArgumentParser(prog="python -m example_project.site", description="A small site to crawl.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8600, help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument("--exit-with-stdin", action="store_true", help="stop when standard input is closed")
    options = parser.parse_args()
    try:
        sockets = _sockets(options.host, options.port)
    except OSError as error:
        print(f"cannot listen on {options.host}:{options.port}: {error}. Choose another --port.", file=sys.stderr)
        return 1
    shown = "localhost" if options.host == "127.0.0.1" else options.host
    config = uvicorn.Config(build(), log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    server = _Server(config, f"http://{shown}:{sockets[0].getsockname()[1]}")
    if options.exit_with_stdin:
        _stop_with_stdin(server)
    try:
        asyncio.run(server.serve(sockets))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
