"""Connections of a confined process, made by its supervisor: the kernel passes on each call with an address.

The address is copied once, checked, and used: the supervisor makes the call itself, on its own descriptor of the same
socket, with the checked bytes. So nothing is gained by changing the memory or the descriptor meanwhile. Only calls of
``sendmsg`` without an address continue in the process. Another thread could insert an address at that moment, which a
TCP socket ignores: one UDP datagram could pass.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from scrapy_ext.jobprocess import proc
from scrapy_ext.jobprocess.confinement import seccomp
from scrapy_ext.jobprocess.confinement.addresses import Rules
from scrapy_ext.jobprocess.confinement.system import call, system_call

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTICE: Final = struct.Struct("QIIiIQ6Q")
_CONTINUE: Final = 1
_PIDFD_OPEN, _PIDFD_GETFD, _OPENAT2 = 434, 438, 437
#: No links in the path, and nothing outside of the folder.
_RESOLVE: Final = 0x02 | 0x04 | 0x08
_FAST_OPEN: Final = 0x20000000
_MAX_ADDRESS: Final = 128
_MAX_DATAGRAM: Final = 65536
_MAX_PARTS: Final = 64
_MAX_CONTROL: Final = 1024
#: Blocking connections that threads wait for; further ones fail.
_MAX_WAITING: Final = 256
#: Seconds after which a call on a socket that should not block is interrupted.
_LONG: Final = 0.05
_MESSAGE: Final = struct.Struct("PIxxxxPNPNixxxx")


class ConnectionBroker:
    """Makes the calls of processes with the filter, which ``descriptor`` receives. ``folders``: those whose Unix
    sockets may be used."""

    def __init__(self, descriptor: int, rules: Rules, folders: Sequence[str]) -> None:
        self.descriptor = descriptor
        self._rules = rules
        self._folders = folders
        self._waiting = threading.BoundedSemaphore(_MAX_WAITING)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        signal.signal(signal.SIGALRM, lambda *_: None)
        self._handlers: dict[int, Callable[[_Call], int | None]] = {
            seccomp.number_of("connect"): self._connect,
            seccomp.number_of("sendto"): self._sendto,
            seccomp.number_of("sendmsg"): self._sendmsg,
            seccomp.number_of("sendmmsg"): self._sendmmsg,
        }

    @classmethod
    def of(cls, process: int, descriptor: int, rules: Rules, folders: Sequence[str]) -> ConnectionBroker:
        """Return the broker of a process with the filter and ``descriptor``; raises ``OSError``."""
        handle = os.pidfd_open(process)
        try:
            return cls(system_call(_PIDFD_GETFD, handle, descriptor, 0), rules, folders)
        finally:
            os.close(handle)

    def answer(self, *, wait: bool = False) -> bool:
        """Answer one call, if there is one; returns whether more may come."""
        state = self._poll.poll(None if wait else 0)
        if not state or not state[0][1] & select.POLLIN:
            return not state or not state[0][1] & select.POLLHUP
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, notice, True)
        except OSError:  # the caller has ended
            return True
        made = _Call.of(self.descriptor, notice)
        try:
            result = self._handlers[made.number](made)
            if result is not None:
                made.reply(result)
        except OSError as error:
            made.reply(-(error.errno or errno.EPERM))
        except Exception:  # the arguments come from untrusted code
            made.reply(-errno.EPERM)
        return True

    def _connect(self, made: _Call) -> int | None:
        """Connect the socket. None: a thread replies."""
        descriptor, address, size = made.arguments[:3]
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(self._checked(made, made.read(address, min(size, _MAX_ADDRESS))))
            own = stack.enter_context(made.descriptor(descriptor))
            if own.type == socket.SOCK_DGRAM or fcntl.fcntl(own.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK:
                with _never_long():
                    return call("connect", own.fileno(), place.bytes, len(place.bytes))
            if not self._waiting.acquire(blocking=False):
                return -errno.EAGAIN
            held = stack.pop_all()
        threading.Thread(target=self._wait, args=(made, own, place, held), daemon=True).start()
        return None

    def _wait(self, made: _Call, own: socket.socket, place: _Place, held: contextlib.ExitStack) -> None:
        with held:
            try:
                result = call("connect", own.fileno(), place.bytes, len(place.bytes))
            except OSError as error:
                result = -(error.errno or errno.EPERM)
        self._waiting.release()
        made.reply(result)

    def _sendto(self, made: _Call) -> int | None:
        descriptor, data, length, flags, address, size = made.arguments
        if flags & _FAST_OPEN:
            return -errno.EPERM
        with (
            self._checked(made, made.read(address, min(size, _MAX_ADDRESS))) as place,
            made.descriptor(descriptor) as own,
        ):
            if own.type == socket.SOCK_STREAM:
                return -errno.EISCONN
            return _send(own, place, made.read(data, _bounded(length)), b"", flags)

    def _sendmsg(self, made: _Call) -> int | None:
        descriptor, message, flags = made.arguments[:3]
        if flags & _FAST_OPEN:
            return -errno.EPERM
        name, size, parts, count, control, control_size, _ = _MESSAGE.unpack(made.read(message, _MESSAGE.size))
        if not name:
            made.go_on()
            return None
        if count > _MAX_PARTS or control_size > _MAX_CONTROL:
            return -errno.EMSGSIZE
        with (
            self._checked(made, made.read(name, min(size, _MAX_ADDRESS))) as place,
            made.descriptor(descriptor) as own,
        ):
            if own.type == socket.SOCK_STREAM:
                return -errno.EISCONN
            pieces = list(struct.iter_unpack("PN", made.read(parts, 16 * count)))
            _bounded(sum(length for _, length in pieces))
            data = b"".join(made.read(start, length) for start, length in pieces)
            return _send(own, place, data, made.read(control, control_size), flags)

    def _sendmmsg(self, made: _Call) -> int | None:
        _, messages, count, flags = made.arguments[:4]
        if flags & _FAST_OPEN:
            return -errno.EPERM
        if count > _MAX_PARTS:
            return -errno.EMSGSIZE
        every = made.read(messages, (_MESSAGE.size + 8) * count)
        if any(_MESSAGE.unpack_from(every, (_MESSAGE.size + 8) * number)[0] for number in range(count)):
            return -errno.ENOSYS  # libraries then send to addresses one by one
        made.go_on()
        return None

    def _checked(self, made: _Call, address: bytes) -> _Place:
        """Return the address to use for that of a call; raises ``PermissionError``."""
        if len(address) < 2:
            raise OSError(errno.EINVAL, "too short")
        (family,) = struct.unpack_from("H", address)
        if family == socket.AF_UNIX:
            return self._unix(made, address[2:])
        if family in (socket.AF_INET, socket.AF_UNSPEC) and len(address) >= 8:  # equal for UDP
            host = socket.inet_ntop(socket.AF_INET, address[4:8])
        elif family == socket.AF_INET6 and len(address) >= 24:
            host = socket.inet_ntop(socket.AF_INET6, address[8:24])
        elif family in (socket.AF_UNSPEC, socket.AF_NETLINK):
            return _Place(address)
        else:
            raise OSError(errno.EAFNOSUPPORT, "another family")
        if not self._rules.allow(host, int.from_bytes(address[2:4], "big")):
            raise PermissionError(errno.EACCES, "a denied address")
        return _Place(address)

    def _unix(self, made: _Call, name: bytes) -> _Place:
        """Return a socket in one of the folders by its descriptor, so that it cannot be replaced by another."""
        path = name.partition(b"\0")[0].decode(errors="surrogateescape")
        if not path:  # no folder shows its owner
            raise PermissionError(errno.EACCES, "an abstract socket")
        whole = os.path.normpath(os.path.join(os.readlink(f"/proc/{made.process}/cwd"), path))
        for folder in self._folders:
            if whole.startswith(folder + "/"):
                start = os.open(folder, os.O_PATH | os.O_CLOEXEC)
                try:
                    how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE)
                    inside = os.fsencode(os.path.relpath(whole, folder))
                    found = system_call(_OPENAT2, start, inside, how, len(how))
                finally:
                    os.close(start)
                way = struct.pack("H", socket.AF_UNIX) + f"/proc/self/fd/{found}".encode() + b"\0"
                return _Place(way, found)
        raise PermissionError(errno.EACCES, "a socket of others")


class _Place:
    """An address in the form of the kernel, and its descriptor, if it has one; closed at the end of ``with``."""

    def __init__(self, address: bytes, descriptor: int = -1) -> None:
        self.bytes = address
        self._descriptor = descriptor

    def __enter__(self) -> _Place:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


class _Call(NamedTuple):
    """A call that waits for its result; ``process``: the thread that made it."""

    listener: int
    id: int
    process: int
    number: int
    arguments: tuple[int, ...]

    @classmethod
    def of(cls, listener: int, notice: bytearray) -> _Call:
        id_, process, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        return cls(listener, id_, process, number, tuple(arguments))

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the caller's memory."""
        if not size:
            return b""
        buffer = ctypes.create_string_buffer(size)
        own = struct.pack("PN", ctypes.addressof(buffer), size)
        there = struct.pack("PN", address, size)
        read = call("process_vm_readv", self.process, own, 1, there, 1, 0)
        fcntl.ioctl(self.listener, _IS_VALID, struct.pack("Q", self.id))  # else another process has this ID now
        if read < size:
            raise OSError(errno.EFAULT, "not all of it is there")
        return buffer.raw

    def descriptor(self, number: int) -> socket.socket:
        """Return the caller's socket as one of this process."""
        try:
            process = system_call(_PIDFD_OPEN, self.process, os.O_EXCL)  # of a thread: Linux 6.9 and later
        except OSError:
            process = system_call(_PIDFD_OPEN, proc.process_of(self.process), 0)
        try:
            fcntl.ioctl(self.listener, _IS_VALID, struct.pack("Q", self.id))
            found = system_call(_PIDFD_GETFD, process, number, 0)
        finally:
            os.close(process)
        try:
            return socket.socket(fileno=found)
        except OSError:
            os.close(found)
            raise

    def reply(self, result: int) -> None:
        """End the call with a result, or with an error, which is negative; ignored for an interrupted call."""
        answer = struct.pack("QqiI", self.id, max(result, 0), min(result, 0), 0)
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.listener, _SEND, answer)

    def go_on(self) -> None:
        """Let the kernel make the call unchanged."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.listener, _SEND, struct.pack("QqiI", self.id, 0, 0, _CONTINUE))


@contextlib.contextmanager
def _never_long() -> Iterator[None]:
    """Interrupt a connection that takes long although its socket does not block, which the caller may change at any
    moment. The kernel continues it."""
    signal.setitimer(signal.ITIMER_REAL, _LONG, _LONG)
    try:
        yield
    except InterruptedError:
        raise BlockingIOError(errno.EINPROGRESS, "under way") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _send(own: socket.socket, place: _Place, data: bytes, control: bytes, flags: int) -> int:
    held = ctypes.create_string_buffer(data, len(data))
    part = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(held), len(data)))
    name = ctypes.create_string_buffer(place.bytes, len(place.bytes))
    extra = ctypes.create_string_buffer(control, max(len(control), 1))
    message = _MESSAGE.pack(
        ctypes.addressof(name),
        len(place.bytes),
        ctypes.addressof(part),
        1,
        ctypes.addressof(extra) if control else 0,
        len(control),
        0,
    )
    return call("sendmsg", own.fileno(), message, flags | socket.MSG_DONTWAIT)


def _bounded(length: int) -> int:
    if length > _MAX_DATAGRAM:
        raise OSError(errno.EMSGSIZE, "longer than a datagram")
    return length
