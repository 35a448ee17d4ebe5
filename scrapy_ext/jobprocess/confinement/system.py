"""Linux calls that Python's standard library lacks."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

IS_LINUX: Final = sys.platform == "linux"
#: The architecture of Linux; empty elsewhere. Not by the module ``platform``: it takes 0.4 MB of each job's supervisor.
MACHINE: Final = os.uname().machine if IS_LINUX else ""

#: The C library; Windows loads none without a name.
_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform != "win32" else None


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library that returns -1 for an error; raises ``OSError``."""
    result: int = getattr(_libc, name)(*(_wide(argument) for argument in arguments))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def system_call(number: int, *arguments: object) -> int:
    """Make a system call by its number; raises ``OSError``."""
    return call("syscall", number, *arguments)


def prctl(option: int, value: int = 0) -> None:
    """Set an option of this process; raises ``OSError``."""
    call("prctl", option, value, 0, 0, 0)


def hide_memory() -> None:
    """Hide the environment, memory and descriptors of this process from others of the same user, on Linux. Executing a
    program ends this."""
    if IS_LINUX:
        prctl(PR_SET_DUMPABLE, 0)


def _wide(argument: object) -> object:
    """Return an integer as wide as a register, which variadic functions read."""
    return ctypes.c_long(argument) if isinstance(argument, int) else argument
