"""User, capabilities and limits of a process that is confined."""

from __future__ import annotations

import contextlib
import os
import resource
import struct
from typing import Final

from scrapy_ext.jobprocess.confinement.system import PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, call, prctl

_CAPABILITY_VERSION_3: Final = 0x20080522
_MAX_CAPABILITIES: Final = 64
#: Processes and threads of a user that is not the server's, in all its jobs: the kernel counts by user. A crawl has
#: about 20, one with a browser a few hundred; systems have 32768 process IDs by default.
MAX_PROCESSES: Final = 4096


def give_up(user: int | None, group: int | None) -> None:
    """Become another user without further groups, and give up all capabilities, for good. Raises ``OSError``."""
    _bound(resource.RLIMIT_CORE, 0)
    for number in range(_MAX_CAPABILITIES):
        with contextlib.suppress(OSError):  # it has not the right to, and so not these capabilities; or there are fewer
            prctl(PR_CAPBSET_DROP, number)
    if user is not None and group is not None:
        _bound(resource.RLIMIT_NPROC, MAX_PROCESSES)
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    call("capset", struct.pack("Ii", _CAPABILITY_VERSION_3, 0), struct.pack("6I", *[0] * 6))
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def _bound(kind: int, most: int) -> None:
    _, highest = resource.getrlimit(kind)
    value = most if highest == resource.RLIM_INFINITY else min(most, highest)
    resource.setrlimit(kind, (value, value))
