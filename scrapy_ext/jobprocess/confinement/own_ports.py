"""TCP ports on which this server listens for itself alone, such as those of the browser's proxies.

They come and go while jobs run, so the supervisors share the server's memory of them: a bit for each port, in a file
without a name that is handed to them as a descriptor.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

_PORTS: Final = 65536


def add(port: int) -> None:
    """Let no confined process connect to this port any more."""
    _set(port, 1 << port % 8)


def discard(port: int) -> None:
    """The end of :func:`add`."""
    _set(port, 0)


def has(descriptor: int, port: int) -> bool:
    """Return whether the server that has handed over a descriptor listens for itself at a port."""
    return bool(os.pread(descriptor, 1, port // 8)[0] & 1 << port % 8)


@cache
def descriptor() -> int | None:
    """The descriptor of the ports of this process; None where the system has no such files."""
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
