"""Application of a :class:`Confinement` to this process, before it executes a program: files, user, capabilities,
limits and the filter of system calls."""

from __future__ import annotations

import contextlib
import os
import resource
import struct
from typing import Final

from scrapy_ext.jobprocess.confinement import Confinement, landlock, seccomp, view
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
    files = _files(wanted) if LANDLOCK in wanted.defences else None
    give_up(wanted.user, wanted.group)
    if files is not None:
        files.restrict()
    if FILTER not in wanted.defences and CONNECTIONS not in wanted.defences:
        return -1
    return seccomp.install(notify=CONNECTIONS in wanted.defences)


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


def _files(wanted: Confinement) -> landlock.Ruleset:
    rules = landlock.Ruleset()
    for paths, rights in ((wanted.read, landlock.READ), (wanted.write, landlock.WRITE)):
        for path in paths:
            rules.allow(path, rights)
    return rules
