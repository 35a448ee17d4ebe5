"""The filter of system calls of a confined process.

- Calls that reach into other processes or change the system are refused, and so are those of other architectures.
- Sockets are TCP, UDP, Unix, and netlink for the machine's own addresses.
- User namespaces are refused: inside its own one a process has rights that give access to more of the kernel.
- System V shared memory, semaphores and messages are refused: they outlive the process, and count for nobody.
- Calls with an address are passed to the supervisor (:mod:`connections`), on kernels that can.

``io_uring`` would make the same calls unseen; it is refused like an unknown call.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from scrapy_ext.jobprocess.confinement.system import MACHINE, system_call

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


class Calls(NamedTuple):
    """Numbers of system calls on one architecture."""

    architecture: int
    seccomp: int
    connect: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    socket: int
    #: Calls whose first argument names the namespaces to create.
    unshare: int
    clone: int
    #: System V shared memory, semaphores and messages.
    system_v: tuple[int, ...]
    #: Refused: calls that reach into other processes, open files past their folders, or change the system.
    refused: tuple[int, ...]
    #: Calls that a process needs not that only computes: sockets, programs, signals.
    beside_computing: tuple[int, ...]
    #: Limits of a process; 0 is the caller.
    prlimit: int


#: The newer calls for mounts (the last: open_tree_attr), and pidfd_getfd, with the same numbers on each architecture.
_ANYWHERE: Final = (428, 429, 430, 431, 432, 433, 438, 442, 467)
#: Refused like unknown calls: io_uring, and clone3, whose flags a filter cannot read; libraries then use clone.
_HIDDEN: Final = (425, 426, 427, 435)
_PIDFD_SEND_SIGNAL: Final = 424
_NEW_USER, _THREAD = 0x10000000, 0x00010000
_CALLS: Final = {
    # In this order: ptrace, process_vm_readv, process_vm_writev, kcmp, open_by_handle_at, mount, umount2, pivot_root,
    # setns, bpf, perf_event_open, userfaultfd, add_key, request_key, keyctl, init_module, finit_module, delete_module,
    # kexec_load, kexec_file_load. Beside computing: socket, socketpair, connect, bind, execve, execveat, fork and vfork
    # where there are such, kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo.
    "x86_64": Calls(
        0xC000003E,
        317,
        42,
        44,
        46,
        307,
        41,
        272,
        56,
        (29, 30, 31, *range(64, 72), 220),
        (101, 310, 311, 312, 304, 165, 166, 155, 308, 321, 298, 323, 248, 249, 250, 175, 313, 176, 246, 320),
        (41, 53, 42, 49, 59, 322, 57, 58, 62, 200, 234, 129, 297),
        302,
    ),
    "aarch64": Calls(
        0xC00000B7,
        277,
        203,
        206,
        211,
        269,
        198,
        97,
        220,
        tuple(range(186, 198)),
        (117, 270, 271, 272, 265, 40, 39, 41, 268, 280, 241, 282, 217, 218, 219, 105, 273, 106, 104, 294),
        (198, 199, 203, 200, 221, 281, 129, 130, 131, 138, 240),
        261,
    ),
}
CALLS: Final = _CALLS.get(MACHINE)
_SOCKETS: Final = (
    (socket.AF_INET, socket.SOCK_STREAM, (0, socket.IPPROTO_TCP)),
    (socket.AF_INET6, socket.SOCK_STREAM, (0, socket.IPPROTO_TCP)),
    (socket.AF_INET, socket.SOCK_DGRAM, (0, socket.IPPROTO_UDP)),
    (socket.AF_INET6, socket.SOCK_DGRAM, (0, socket.IPPROTO_UDP)),
)
_NETLINK: Final = 16


def install(*, notify: bool) -> int:
    """Set the filter for this process. Returns the descriptor that receives calls with addresses, or -1 without
    ``notify``. Raises ``OSError``."""
    calls = _calls()
    found = _set(calls, _program(calls, notify=notify), _FLAG_NEW_LISTENER if notify else 0)
    return found if notify else -1


def install_for_computing() -> None:
    """Set the filter of a process that only computes: no socket, program, process or signal. Raises ``OSError``."""
    calls = _calls()
    _set(calls, _computing(calls), 0)


def _calls() -> Calls:
    if CALLS is None:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {MACHINE}")
    return CALLS


def _set(calls: Calls, steps: Iterable[bytes], flags: int) -> int:
    program = b"".join(steps)
    held = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
    return system_call(calls.seccomp, _SET_MODE_FILTER, flags, head)


def _program(calls: Calls, *, notify: bool) -> Iterable[bytes]:
    yield from _always_refused(calls)
    for number in (calls.unshare, calls.clone):
        yield from _if(number, list(_without_new_user()))
    yield from _if(calls.socket, list(_sockets()))
    if notify:
        for number in (calls.connect, calls.sendmsg, calls.sendmmsg):
            yield from _if(number, [_step(_RETURN, _NOTIFY)])
        yield from _if(calls.sendto, list(_with_address()))
    yield _step(_RETURN, _ALLOW)


def _computing(calls: Calls) -> Iterable[bytes]:
    yield from _always_refused(calls)
    for number in (*calls.beside_computing, _PIDFD_SEND_SIGNAL, calls.unshare):
        yield from _if(number, [_refuse(errno.EPERM)])
    yield from _if(
        calls.clone,
        [_step(_LOAD, _ARGUMENTS), _step(_HAS_BITS, _THREAD, 1, 0), _refuse(errno.EPERM), _step(_RETURN, _ALLOW)],
    )
    yield from _if(
        calls.prlimit,
        [_step(_LOAD, _ARGUMENTS), _step(_EQUAL, 0, 1, 0), _refuse(errno.EPERM), _step(_RETURN, _ALLOW)],
    )
    yield _step(_RETURN, _ALLOW)


def _always_refused(calls: Calls) -> Iterable[bytes]:
    yield _step(_LOAD, _ARCHITECTURE)
    yield _step(_EQUAL, calls.architecture, 1, 0)
    yield _refuse(errno.ENOSYS)
    yield _step(_LOAD, _NUMBER)
    yield _step(_AT_LEAST, _FOREIGN, 0, 1)
    yield _refuse(errno.ENOSYS)
    for number in (*_HIDDEN, *calls.system_v):
        yield from _if(number, [_refuse(errno.ENOSYS)])
    for number in (*calls.refused, *_ANYWHERE):
        yield from _if(number, [_refuse(errno.EPERM)])


def _without_new_user() -> Iterable[bytes]:
    """Yield the end of the program for calls that create namespaces."""
    yield _step(_LOAD, _ARGUMENTS)
    yield _step(_HAS_BITS, _NEW_USER, 0, 1)
    yield _refuse(errno.EPERM)
    yield _step(_RETURN, _ALLOW)


def _sockets() -> Iterable[bytes]:
    """Yield the end of the program for ``socket``."""
    yield _step(_LOAD, _ARGUMENTS)
    yield from _if(socket.AF_UNIX, [_step(_RETURN, _ALLOW)])
    for family, kind, protocols in _SOCKETS:
        checks = [_step(_LOAD, _ARGUMENTS + 8), _step(_AND, _TYPE_MASK)]
        allowed = [_step(_LOAD, _ARGUMENTS + 16)]
        for protocol in protocols:
            allowed += _if(protocol, [_step(_RETURN, _ALLOW)])
        allowed.append(_refuse(errno.EPERM))
        checks += _if(kind, allowed)
        checks.append(_step(_LOAD, _ARGUMENTS))
        yield from _if(family, checks)
    yield from _if(_NETLINK, [_step(_LOAD, _ARGUMENTS + 16), *_if(0, [_step(_RETURN, _ALLOW)])])
    yield _refuse(errno.EPERM)


def _with_address() -> Iterable[bytes]:
    """Yield the end of the program for ``sendto``: notify if the address is not NULL."""
    for half in (0, 4):
        yield _step(_LOAD, _ARGUMENTS + 4 * 8 + half)
        yield _step(_EQUAL, 0, 1, 0)
        yield _step(_RETURN, _NOTIFY)
    yield _step(_RETURN, _ALLOW)


def _if(value: int, then: list[bytes]) -> list[bytes]:
    return [_step(_EQUAL, value, 0, len(then)), *then]


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
