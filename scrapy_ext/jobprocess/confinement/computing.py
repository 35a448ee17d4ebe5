"""Confinement of this process to computing: it reads the files of its Python, and uses what it has open.

It opens no other file, writes none, makes no socket, starts no program and signals no process. So a fault in a parser
that a hostile page reaches opens nothing else. Unlike a :class:`Confinement`, which a supervisor applies before a
program starts, a process applies this to itself, before its first input and before its first thread.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.jobprocess.confinement import landlock, seccomp, system
from scrapy_ext.jobprocess.confinement.applying import FILTER, LANDLOCK, give_up
from scrapy_ext.jobprocess.confinement.interpreter import interpreter_paths

#: Shared libraries, and what a Python program reads of the system while it computes.
_SYSTEM: Final = (
    *("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache"),
    *("/usr/share/zoneinfo", "/etc/localtime", "/etc/timezone", "/dev/null", "/dev/urandom", "/proc/self/statm"),
)


def compute_only() -> list[str]:
    """Confine this process as far as the system can; return the defences, as named in :mod:`applying`."""
    if not system.IS_LINUX:
        return []
    applied = []
    try:
        rules = landlock.Ruleset()
    except OSError:
        rules = None
    if rules is not None:
        for path in (*_SYSTEM, *interpreter_paths()):
            rules.allow(path, landlock.READ)
    give_up(None, None)
    if rules is not None:
        rules.restrict()
        applied.append(LANDLOCK)
    try:
        seccomp.install_for_computing()
        applied.append(FILTER)
    except OSError:
        pass
    return applied
