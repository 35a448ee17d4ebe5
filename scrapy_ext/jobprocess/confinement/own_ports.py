"""TCP ports that this server uses internally, such as those of the browser's proxies: no job may connect to them.

They change while jobs run, so the supervisors share the server's memory of them: a bit per port, in an anonymous file
whose descriptor they inherit.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

_PORTS: Final = 65536


def add(port: int) -> None:
    """Refuse connections of confined processes to this port from now on."""
    _set(port, 1 << port % 8)


def discard(port: int) -> None:
    """Undo :func:`add`."""
    _set(port, 0)


def has(descriptor: int, port: int) -> bool:
    """Return whether the server to which a descriptor belongs uses a port internally."""
    return bool(os.pread(descriptor, 1, port // 8)[0] & 1 << port % 8)


@cache
def descriptor() -> int | None:
    """Return the descriptor of the ports of this process; None on a system without anonymous files."""
    if not hasattr(os, "memfd_create"):
        return None
    made = os.memfd_create("ports")
    os.ftruncate(made, _PORTS // 8)
    return made


def _set(port: int, bit: int) -> None:
    made = descriptor()
    if made is None:
        return
    others = os.pread(made, 1, port // 8)[0] & ~(1 << port % 8)
    os.pwrite(made, bytes([others | bit]), port // 8)
