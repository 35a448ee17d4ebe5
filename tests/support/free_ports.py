"""Free ports of this machine that are known before anything listens on them."""

from __future__ import annotations

import socket


def held_port() -> socket.socket:
    """Return a socket on a free port, which no other program gets as its free port as long as the socket is open.

    It does not listen, so that connections are refused. A server that sets ``SO_REUSEADDR``, as they do on Linux, can
    listen on the port all the same.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def number_of(held: socket.socket) -> int:
    port: int = held.getsockname()[1]
    return port
