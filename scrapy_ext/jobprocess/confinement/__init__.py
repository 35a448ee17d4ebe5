"""Confinement of a process that runs untrusted code: files, user, privileges, network.

A :class:`Confinement` is data: the server makes it, and ``scrapy_ext.jobprocess.supervisor`` applies it to the process
that it starts, before any code of a deployed project runs there. Rules that hold in this folder:

- It needs the standard library alone, and no package of the environment that it confines.
- When a defence fails that the system has (found by :mod:`probing`), the process does not start.
- A confinement is inherited by everything that the process starts, and cannot be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Confinement(NamedTuple):
    """Limits of one process and of all that it starts."""

    #: Files and folders that may be read and executed.
    read: Sequence[str] = ()
    #: Files and folders that may be read and written.
    write: Sequence[str] = ()
    #: User and group to run as; None: those of the supervisor.
    user: int | None = None
    group: int | None = None
    #: Addresses that may not be reached: ``NETWORK`` or ``NETWORK PORT``.
    denied: Sequence[str] = ()
    #: Ports of this machine, under any of its addresses, that may not be reached.
    denied_ports: Sequence[int] = ()
    #: Bytes that ``/dev/shm`` of the process may have, where that is its own.
    shared_memory: int = 256 * 2**20
    #: Defences of the system to use, as named in :mod:`applying`.
    defences: Sequence[str] = ()

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Confinement:
        """Return the confinement from its ``_asdict``."""
        return cls(**fields)
