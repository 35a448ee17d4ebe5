"""Application of a confinement to this process: files, user, capabilities, limits and the filter of system calls.

A supervisor applies a :class:`Confinement` with :func:`confine`, before it executes a program. A process that computes
with what strangers wrote applies :func:`compute_only` to itself, before its first input and its first thread.
"""

from __future__ import annotations

import contextlib
import os
import resource
import site
import struct
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scrapy_ext.jobprocess.confinement import Confinement, landlock, seccomp, system, view
from scrapy_ext.jobprocess.confinement.system import PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, call, prctl

LANDLOCK: Final = "landlock"
#: Applied by the supervisor to itself: it can send signals only to processes below it.
SIGNALS: Final = "signals"
VIEW: Final = "view"
FILTER: Final = "filter"
CONNECTIONS: Final = "connections"

_CAPABILITY_VERSION_3: Final = 0x20080522
_MAX_CAPABILITIES: Final = 64
#: Processes and threads of another user than the server's, in all its jobs: the kernel counts by user. A crawl has
#: about 20, one with a browser a few hundred; systems have 32768 process IDs by default.
MAX_PROCESSES: Final = 4096
#: Shared libraries, and what a Python program reads of the system while it computes.
_SYSTEM: Final = (
    *("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache"),
    *("/usr/share/zoneinfo", "/etc/localtime", "/etc/timezone", "/dev/null", "/dev/urandom", "/proc/self/statm"),
)


def view_of(wanted: Confinement) -> int:
    """Return the descriptor of the process's view of the file system, or -1 without one. Raises ``OSError``."""
    if VIEW not in wanted.defences or wanted.user is None or wanted.group is None:
        return -1
    return view.make([*wanted.read, *wanted.write], wanted.user, wanted.group, wanted.shared_memory)


def confine(wanted: Confinement, its_view: int) -> int:
    """Confine this process. Returns the descriptor that receives its calls with addresses (:mod:`connections`), or -1.
    Raises ``OSError``: then the process must end."""
    if its_view >= 0:
        view.enter(its_view)
    files = (
        _files((wanted.read, landlock.READ), (wanted.write, landlock.WRITE)) if LANDLOCK in wanted.defences else None
    )
    give_up(wanted.user, wanted.group)
    if files is not None:
        files.restrict()
    if CONNECTIONS in wanted.defences:
        return seccomp.install(seccomp.NOTIFYING_JOB)
    return seccomp.install(seccomp.JOB) if FILTER in wanted.defences else -1


def compute_only() -> list[str]:
    """Confine this process to computing as far as the system can; return the defences.

    It reads the files of its Python, and uses what it has open. It opens no other file, writes none, makes no socket,
    starts no program and signals no process. So a fault in a parser that a hostile page reaches opens nothing else.
    """
    if not system.IS_LINUX:
        return []
    applied = []
    try:
        files = _files(((*_SYSTEM, *interpreter_paths()), landlock.READ))
    except OSError:
        files = None
    give_up(None, None)
    if files is not None:
        files.restrict()
        applied.append(LANDLOCK)
    with contextlib.suppress(OSError):
        seccomp.install(seccomp.COMPUTING)
        applied.append(FILTER)
    return applied


def give_up(user: int | None, group: int | None) -> None:
    """Become another user without further groups, and give up all capabilities, for good. Raises ``OSError``."""
    _limit(resource.RLIMIT_CORE, 0)
    for number in range(_MAX_CAPABILITIES):
        with contextlib.suppress(OSError):  # without the right to, which means without the capability; or past the last
            prctl(PR_CAPBSET_DROP, number)
    if user is not None and group is not None:
        _limit(resource.RLIMIT_NPROC, MAX_PROCESSES)
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    call("capset", struct.pack("Ii", _CAPABILITY_VERSION_3, 0), struct.pack("6I", *[0] * 6))
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def _limit(kind: int, most: int) -> None:
    _, highest = resource.getrlimit(kind)
    value = most if highest == resource.RLIM_INFINITY else min(most, highest)
    resource.setrlimit(kind, (value, value))


def _files(*allowed: tuple[Iterable[str], int]) -> landlock.Ruleset:
    rules = landlock.Ruleset()
    for paths, rights in allowed:
        for path in paths:
            rules.allow(path, rights)
    return rules


# ── files of this Python, which every confined process of it may read ──


def interpreter_paths() -> list[str]:
    """Return the files of this Python, its packages and this package."""
    python = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), f"{sys.prefix}/pyvenv.cfg"]
    python += [f"{prefix}/{part}" for prefix in (sys.base_prefix, sys.base_exec_prefix) for part in ("bin", "lib")]
    python += [f"{sys.prefix}/bin", str(Path(sys.executable).parent)]
    return [*python, *package_folders(), str(Path(__file__).resolve().parents[2])]


def package_folders() -> list[str]:
    """Return the folders of installed packages."""
    known = [*site.getsitepackages(), site.getusersitepackages()]
    return [folder for folder in sys.path if folder in known or folder.endswith(("site-packages", "dist-packages"))]
