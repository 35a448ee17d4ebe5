"""The filters of system calls: :data:`JOB` of a confined process, :data:`COMPUTING` of one that only computes.

A filter is a table of rules. Every other call is allowed. Rules that hold for both:

- Calls that reach into other processes or change the system are refused, and so are those of other architectures.
- User namespaces are refused: inside its own one a process has rights that give access to more of the kernel.
- Memory of System V and POSIX message queues are refused: they outlive the process, and count for nobody.
- ``io_uring`` would make the same calls unseen; it is refused like an unknown call.

The sockets of a job are TCP, UDP, Unix, and netlink for the machine's own addresses. Its calls with an address are
passed to the supervisor (:mod:`connections`), on kernels that can.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from scrapy_ext.jobprocess.confinement.system import MACHINE, system_call

Steps = list[bytes]
#: Calls by name, and what is done at each; the steps end the program.
Filter = Sequence[tuple[Iterable[str], Steps]]

_SET_MODE_FILTER: Final = 1
_FLAG_NEW_LISTENER: Final = 1 << 3
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
#: Instructions: load a word of the data, compare it, mask it, return.
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
#: Offsets in the data: number of the call, architecture, and the arguments, low halves first.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
#: First number of the calls of another ABI (x32).
_FOREIGN: Final = 0x40000000
_TYPE_MASK: Final = 0xF  # of a socket, without its flags
_NEW_USER, _THREAD = 0x10000000, 0x00010000
#: Commands of ``fcntl`` that name the receiver of a descriptor's signals, and the signal.
_SIGNAL_COMMANDS: Final = (8, 10, 15)
_NETLINK: Final = 16

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Numbers of calls on x86_64 and aarch64; -1: the architecture does not have the call.
Numbers = Mapping[str, tuple[int, int]]

#: Calls that reach into other processes, open files past their folders, or change the system.
_REACHING: Final[Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "open_by_handle_at": (304, 265),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
}
#: Calls that are refused like unknown ones. A filter cannot read the flags of clone3; libraries then use clone.
_HIDDEN: Final[Numbers] = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "clone3": (435, 435),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
}
#: Calls whose arguments decide.
_DECIDED: Final[Numbers] = {
    "unshare": (272, 97),
    "clone": (56, 220),
    "socket": (41, 198),
    "connect": (42, 203),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "fcntl": (72, 25),
    "seccomp": (317, 277),
}
#: Calls about the time that processes have; the first argument names one, and 0 is the caller.
_SCHEDULING: Final[Numbers] = {
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
#: Calls that computing does not need: programs, signals and sockets; the time of other processes; modes, owners, times
#: and attributes of files, which Landlock leaves alone; and changes of files by others.
_BESIDE_COMPUTING: Final[Numbers] = {
    "socketpair": (53, 199),
    "bind": (49, 200),
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, -1),
    "vfork": (58, -1),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "inotify_init": (253, -1),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
}
_CALLS: Final[Numbers] = {**_REACHING, **_HIDDEN, **_DECIDED, **_SCHEDULING, **_BESIDE_COMPUTING}


def number_of(call: str, machine: str = MACHINE) -> int:
    """Return the number of a call, negative if the machine does not have it; raises ``OSError`` for a machine without
    filters."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {machine}")
    return _CALLS[call][list(_ARCHITECTURES).index(machine)]


# ── steps of a program ──


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _if(value: int, then: Steps) -> Steps:
    return [_step(_EQUAL, value, 0, len(then)), *then]


def _argument(index: int) -> bytes:
    return _step(_LOAD, _ARGUMENTS + 8 * index)


_REFUSED: Final = [_refuse(errno.EPERM)]
_UNKNOWN: Final = [_refuse(errno.ENOSYS)]
_ALLOWED: Final = [_step(_RETURN, _ALLOW)]
_NOTIFIED: Final = [_step(_RETURN, _NOTIFY)]


def _sockets() -> Iterator[bytes]:
    """Yield the steps for ``socket``."""
    yield _argument(0)
    yield from _if(socket.AF_UNIX, _ALLOWED)
    for family in (socket.AF_INET, socket.AF_INET6):
        checks = [_argument(1), _step(_AND, _TYPE_MASK)]
        for kind, protocol in ((socket.SOCK_STREAM, socket.IPPROTO_TCP), (socket.SOCK_DGRAM, socket.IPPROTO_UDP)):
            checks += _if(kind, [_argument(2), *_if(0, _ALLOWED), *_if(protocol, _ALLOWED), *_REFUSED])
        yield from _if(family, [*checks, *_REFUSED])
    yield from _if(_NETLINK, [_argument(2), *_if(0, _ALLOWED)])
    yield from _REFUSED


def _with_address() -> Iterator[bytes]:
    """Yield the steps for ``sendto``: notify if the address is not NULL."""
    for half in (0, 4):
        yield _step(_LOAD, _ARGUMENTS + 4 * 8 + half)
        yield from (_step(_EQUAL, 0, 1, 0), *_NOTIFIED)
    yield from _ALLOWED


#: Refused to every process.
_COMMON: Final[Filter] = (
    (_HIDDEN, _UNKNOWN),
    (_REACHING, _REFUSED),
)
JOB: Final[Filter] = (
    *_COMMON,
    (("unshare", "clone"), [_argument(0), _step(_HAS_BITS, _NEW_USER, 0, 1), *_REFUSED, *_ALLOWED]),
    (("socket",), [*_sockets()]),
)
NOTIFYING_JOB: Final[Filter] = (
    *JOB,
    (("connect", "sendmsg", "sendmmsg"), _NOTIFIED),
    (("sendto",), [*_with_address()]),
)
COMPUTING: Final[Filter] = (
    *_COMMON,
    (("unshare", "socket", "connect", *_BESIDE_COMPUTING), _REFUSED),
    (("clone",), [_argument(0), _step(_HAS_BITS, _THREAD, 1, 0), *_REFUSED, *_ALLOWED]),
    (_SCHEDULING, [_argument(0), *_if(0, _ALLOWED), *_REFUSED]),
    (
        ("fcntl",),
        [_argument(1), *(step for each in _SIGNAL_COMMANDS for step in _if(each, _REFUSED)), *_ALLOWED],
    ),
)


def install(rules: Filter) -> int:
    """Set a filter for this process. Returns the descriptor that receives the calls that the filter notifies of, or -1
    for a filter without such. Raises ``OSError``."""
    steps = b"".join(program_of(rules, MACHINE))
    held = ctypes.create_string_buffer(steps, len(steps))
    head = struct.pack("HxxxxxxP", len(steps) // 8, ctypes.addressof(held))
    notifies = rules is NOTIFYING_JOB
    flags = _FLAG_NEW_LISTENER if notifies else 0
    found = system_call(number_of("seccomp"), _SET_MODE_FILTER, flags, head)
    return found if notifies else -1


def program_of(rules: Filter, machine: str) -> Iterator[bytes]:
    """Yield the instructions of a filter; raises ``OSError`` for a machine without filters."""
    numbered = [(number_of(name, machine), steps) for names, steps in rules for name in names]
    yield _step(_LOAD, _ARCHITECTURE)
    yield _step(_EQUAL, _ARCHITECTURES[machine], 1, 0)
    yield from _UNKNOWN
    yield _step(_LOAD, _NUMBER)
    yield _step(_AT_LEAST, _FOREIGN, 0, 1)
    yield from _UNKNOWN
    for number, steps in numbered:
        if number >= 0:
            yield from _if(number, steps)
    yield from _ALLOWED
