"""Landlock: a process gives up the right to all files except those named. Linux 5.13 and later, for every user.

From version 6 of the interface (Linux 6.12) it also cannot send signals to processes outside, nor connect to their
abstract sockets. A process under Landlock cannot read the memory, environment or descriptors of one outside.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import Final

from scrapy_ext.jobprocess.confinement.system import PR_SET_NO_NEW_PRIVS, prctl, system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG: Final = 1
_RULE_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REFER, _TRUNCATE, _IOCTL_DEV = (1 << bit for bit in range(13, 16))
#: Rights to files and folders by the version that added them.
_RIGHTS: Final = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_SCOPED_SINCE: Final = 6
_SCOPED_SIGNALS: Final = 0b10
_SCOPED: Final = 0b01 | _SCOPED_SIGNALS  # abstract sockets, too

#: Rights that may be allowed for a path.
READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
WRITE: Final = ((1 << 13) - 1 | _REFER | _TRUNCATE | _IOCTL_DEV) & ~_MAKE_DEVICES


def version() -> int:
    """Return the version of the interface; raises ``OSError`` without Landlock."""
    return system_call(_CREATE_RULESET, None, 0, _VERSION_FLAG)


def enclose_signals() -> None:
    """Restrict the signals of this process, and of all that it starts, to these processes. Those that restrict
    themselves further cannot send signals to this one. Raises ``OSError`` on a system without this."""
    if version() < _SCOPED_SINCE:
        raise OSError(errno.ENOSYS, "the system does not keep signals in")
    # Every ruleset forbids renaming between folders unless a rule allows it.
    attributes = struct.pack("QQQ", _REFER, 0, _SCOPED_SIGNALS)
    descriptor = system_call(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        _add_rule(descriptor, "/", _REFER)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        system_call(_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)


class Ruleset:
    """The allowed paths. Raises ``OSError`` without Landlock."""

    def __init__(self) -> None:
        found = version()
        self._handled = sum(rights for since, rights in _RIGHTS.items() if since <= found)
        scoped = found >= _SCOPED_SINCE
        attributes = struct.pack("QQQ", self._handled, 0, _SCOPED) if scoped else struct.pack("Q", self._handled)
        self._descriptor = system_call(_CREATE_RULESET, attributes, len(attributes), 0)

    def allow(self, path: str, rights: int) -> None:
        """Allow :data:`READ` or :data:`WRITE` for a path and all below it; an absent path is left out."""
        _add_rule(self._descriptor, path, rights & self._handled)

    def restrict(self) -> None:
        """Give up all other rights; the process must have given up new privileges."""
        system_call(_RESTRICT_SELF, self._descriptor, 0)
        os.close(self._descriptor)


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, descriptor)
        system_call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
