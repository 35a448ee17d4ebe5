"""Attempts of a confined process, which a test starts as ``python -m tests.support.confined CASE FOLDER``.

Each attempt runs in a process of its own, forked from one that is confined: the result is ``done``, or the name of its
error. The result of a case is written as JSON.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scrapy_ext.jobprocess.confinement import Confinement, applying, landlock, seccomp
from scrapy_ext.jobprocess.confinement.addresses import Rules
from scrapy_ext.jobprocess.confinement.applying import CONNECTIONS, FILTER, LANDLOCK
from scrapy_ext.jobprocess.confinement.connections import ConnectionBroker
from scrapy_ext.jobprocess.confinement.system import MACHINE, call, system_call

DONE = "done"
REPOSITORY = Path(__file__).parents[2]
Attempts = Mapping[str, Callable[[], object]]


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return DONE


def in_child(work: Callable[[], Any]) -> Any:
    """Return the JSON result of work in a forked process; the name of the signal that ended it without one."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = json.dumps(work())
            os.write(writer, found.encode())
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        text = file.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else signal.Signals(os.WTERMSIG(status)).name


def results(attempts: Attempts) -> dict[str, str]:
    return {name: outcome(attempt) for name, attempt in attempts.items()}


def system(folders: tuple[str, ...] = (), writable: tuple[str, ...] = (), *defences: str) -> Confinement:
    """A confinement to the files of this Python and folders."""
    paths = [*applying._SYSTEM, "/bin", "/usr/bin", "/proc", *applying.interpreter_paths(), *folders]
    return Confinement(read=paths, write=["/dev/null", *writable], defences=defences)


# ── calls ──


def calls(_: Path) -> Any:
    """Every call of the filters, by its number and with arguments that would do nothing."""
    forking = ("fork", "vfork", "clone")

    def tried() -> dict[str, str]:
        numbers = {name: seccomp.number_of(name) for name in seccomp._CALLS if name not in forking}
        known = {name: number for name, number in numbers.items() if number >= 0}
        return results({name: lambda number=number: system_call(number, *[0] * 6) for name, number in known.items()})

    def of(rules: seccomp.Filter) -> dict[str, str]:
        applying.give_up(None, None)
        seccomp.install(rules)
        found = tried() if rules is seccomp.COMPUTING else results(_harmless_of_jobs())
        thread = threading.Thread(target=lambda: found.update({"ptrace in a thread": outcome(_ptrace)}))
        thread.start()
        thread.join()
        return found

    return {"job": in_child(lambda: of(seccomp.JOB)), "computing": in_child(lambda: of(seccomp.COMPUTING))}


def _ptrace() -> None:
    system_call(seccomp.number_of("ptrace"), 0, 0, 0, 0)


def _harmless_of_jobs() -> Attempts:
    names = [*seccomp._REACHING, *seccomp._HIDDEN]
    refused = {name: seccomp.number_of(name) for name in names}
    sockets = {
        "socket tcp": (socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 0),
        "socket udp": (socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_UDP),
        "socket unix": (socket.AF_UNIX, socket.SOCK_STREAM, 0),
        "socket netlink route": (16, socket.SOCK_RAW, 0),
        "socket netlink audit": (16, socket.SOCK_RAW, 9),
        "socket raw": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP),
        "socket ping": (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
        "socket packet": (17, socket.SOCK_RAW, 0),
        "socket alg": (38, socket.SOCK_SEQPACKET, 0),
        "socket vsock": (40, socket.SOCK_STREAM, 0),
    }
    new_user, new_folders, new_processes, new_network = 0x10000000, 0x20000, 0x20000000, 0x40000000
    unshared = {"user": new_user, "folders": new_folders, "processes": new_processes, "network": new_network, "": 0}
    return {
        **{name: lambda number=number: system_call(number, *[0] * 6) for name, number in refused.items()},
        **{name: lambda given=given: _closed(system_call(seccomp.number_of("socket"), *given))
           for name, given in sockets.items()},
        **{f"unshare {name}": lambda flags=flags: system_call(seccomp.number_of("unshare"), flags)
           for name, flags in unshared.items()},
        **{f"clone {name}": lambda flags=flags: _clone(flags) for name, flags in unshared.items()},
        **_of_browsers(),
    }  # fmt: skip


def _closed(descriptor: int) -> None:
    os.close(descriptor)


def _clone(flags: int) -> None:
    child = system_call(seccomp.number_of("clone"), flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _of_browsers() -> Attempts:
    """Calls without which a browser does not start."""
    return {
        "browser memory": lambda: _closed(os.memfd_create("shared")),
        "browser sockets": socket.socketpair,
        "browser events": lambda: _closed(os.eventfd(0)) if hasattr(os, "eventfd") else None,
        "browser process": lambda: subprocess.run(["/bin/true"], check=True),
        "browser filter": lambda: seccomp.install(seccomp.JOB),  # Chromium sets one of its own
        "browser signal": lambda: os.kill(os.getpid(), 0),
        "browser priority": lambda: os.nice(1),
        "browser mode": lambda: os.fchmod(os.memfd_create("shared"), 0o600),
    }


def entries(_: Path) -> Any:
    """The entry of 32-bit programs, ``int 0x80``, and the numbers of x32, with the filter and without it."""
    if MACHINE != "x86_64":
        return {}

    def narrow() -> int:
        # mov eax, 20 (getpid); int 0x80; ret
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        return min(run(), 1)

    def filtered(rules: seccomp.Filter, work: Callable[[], Any]) -> Any:
        applying.give_up(None, None)
        seccomp.install(rules)
        return work()

    def wide() -> str:
        return outcome(lambda: system_call(0x40000000 | 39))

    found = {}
    for name, rules in (("job", seccomp.JOB), ("computing", seccomp.COMPUTING)):
        for entry, work in (("narrow", narrow), ("x32", wide)):
            found[f"{name} {entry}"] = in_child(lambda rules=rules, work=work: filtered(rules, work))
    return {**found, "free narrow": in_child(narrow)}


# ── files ──


def files(folder: Path) -> Any:
    """Files outside and inside; then the same from a program that the process executes."""
    own, secret = folder / "own", folder / "outside" / "secret"
    held = os.open(secret, os.O_RDONLY)
    above = os.open(folder / "outside", os.O_RDONLY | os.O_DIRECTORY)
    place = os.open(secret, os.O_PATH)
    applying.confine(system((str(REPOSITORY),), (str(own),), LANDLOCK, FILTER), -1)
    found = results(file_attempts(folder, held, above, place))
    command = [sys.executable, "-m", "tests.support.confined", "executed", str(folder), f"{held},{above},{place}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, pass_fds=(held, above, place))
    return {"process": found, "status": _status(), "program": json.loads(done.stdout or "{}"), "error": done.stderr}


def executed(folder: Path) -> Any:
    return {**results(file_attempts(folder, *map(int, sys.argv[3].split(",")))), "status": _status()}


def _status() -> dict[str, str]:
    wanted = ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")
    lines = (line.partition(":\t") for line in Path("/proc/self/status").read_text().splitlines())
    return {name: value for name, _, value in lines if name in wanted}


def file_attempts(folder: Path, held: int, above: int, place: int) -> Attempts:
    own, outside = folder / "own", folder / "outside"
    parent = os.getppid()
    return {
        "read": (outside / "secret").read_bytes,
        "list": lambda: os.listdir(outside),
        "list above": lambda: os.listdir(folder),
        "write": lambda: (outside / "secret").write_bytes(b"x"),
        "append": lambda: (outside / "secret").open("ab").close(),
        "make": (outside / "new").touch,
        "make a folder": (outside / "folder").mkdir,
        "make a link": lambda: (outside / "link").symlink_to("secret"),
        "make a pipe": lambda: os.mkfifo(outside / "pipe"),
        "truncate": lambda: os.truncate(outside / "secret", 0),
        "mode": lambda: (outside / "secret").chmod(0o644),
        "time": lambda: os.utime(outside / "secret"),
        "remove": (outside / "secret").unlink,
        "remove a folder": (outside / "empty").rmdir,
        "rename": lambda: (outside / "secret").rename(outside / "renamed"),
        "move in": lambda: (outside / "secret").rename(own / "moved"),
        "move out": lambda: (own / "file").rename(outside / "moved"),
        "link in": lambda: os.link(outside / "secret", own / "linked"),
        "through a link": (own / "to-secret").read_bytes,
        "by ..": (own / ".." / "outside" / "secret").read_bytes,
        "execute": lambda: os.execv(str(outside / "program"), ["program"]),
        "memory of another": lambda: open(f"/proc/{parent}/mem", "rb").close(),
        "environment of another": Path(f"/proc/{parent}/environ").read_bytes,
        "descriptors of another": lambda: os.listdir(f"/proc/{parent}/fd"),
        "descriptor of another": lambda: os.readlink(f"/proc/{parent}/fd/0"),
        "folder of another": lambda: os.readlink(f"/proc/{parent}/cwd"),
        "root of another": lambda: os.listdir(Path("/proc", str(parent), "root")),
        "setting of the kernel": lambda: open("/proc/sys/kernel/hostname", "w").close(),
        "another device": lambda: open("/dev/full", "rb").close(),
        "open file": lambda: os.pread(held, 1, 0),
        "open file again": lambda: open(f"/proc/self/fd/{held}", "rb").close(),
        "below an open folder": lambda: os.close(os.open("secret", os.O_RDONLY, dir_fd=above)),
        "place again": lambda: open(f"/proc/self/fd/{place}", "rb").close(),
        "names of an open folder": lambda: os.listdir(above),
        "own file": (own / "file").read_bytes,
        "own writing": lambda: (own / "made").write_bytes(b"x"),
        "own renaming": lambda: (own / "made").rename(own / "folder" / "made"),
        "own removal": (own / "folder" / "made").unlink,
        "own device": lambda: os.mknod(own / "device", 0o20600, os.makedev(1, 3)),
        "own disk": lambda: os.mknod(own / "device", 0o60600, os.makedev(7, 0)),
        "library": lambda: __import__("stringprep") and None,
        "null": lambda: open("/dev/null", "w").close(),
    }


def versions(folder: Path) -> Any:
    """Attempts under each version of Landlock, of which the kernel has the newest; None: without it."""
    newest = landlock.version()

    def of(version: int | None) -> Any:
        def answer() -> int:
            if version is None:
                raise OSError(errno.EOPNOTSUPP, "off")
            return version

        parent = os.getppid()
        vars(landlock)["version"] = answer
        if version is None:
            return {"confine": outcome(lambda: applying.confine(system((), (), LANDLOCK), -1)), **_computing(folder)}
        applying.confine(system(("/dev/zero",), (str(folder / "own"),), LANDLOCK), -1)
        device = os.open("/dev/zero", os.O_RDONLY)
        own = folder / "own"
        return results(
            {
                "read": (folder / "outside" / "secret").read_bytes,
                "truncate": lambda: os.truncate(folder / "outside" / "secret", 6),
                "move between folders": lambda: _moved(own / "file", own / "folder" / "file"),
                "device": lambda: fcntl.ioctl(device, 0x80045430, array.array("I", [0])),  # TIOCGPTN
                "signal": lambda: os.kill(parent, 0),
                "abstract socket": lambda: socket.socket(socket.AF_UNIX).connect("\0scrapy-ext-confined"),
            }
        )

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0scrapy-ext-confined")
        listener.listen()
        found = {str(version): in_child(lambda version=version: of(version)) for version in range(1, newest + 1)}
        return {**found, "none": in_child(lambda: of(None)), "newest": newest}


def _moved(before: Path, after: Path) -> None:
    before.rename(after)
    after.rename(before)


def _computing(folder: Path) -> dict[str, Any]:
    applied = applying.compute_only()
    return {"applied": applied, "read": outcome((folder / "outside" / "secret").read_bytes)}


def computing(folder: Path) -> Any:
    """A process that only computes, and tries to reach what else its user has."""
    parent, secret = os.getppid(), folder / "outside" / "secret"
    own = os.open(secret, os.O_RDWR)
    reader, _ = os.pipe()
    applied = applying.compute_only()
    affinity = os.sched_getaffinity(0)
    return {
        "applied": applied,
        **results(
            {
                "read": secret.read_bytes,
                "list": lambda: os.listdir(folder),
                "write": (folder / "own" / "made").touch,
                "remove": secret.unlink,
                "environment of another": Path(f"/proc/{parent}/environ").read_bytes,
                "socket": socket.socket,
                "socket in a thread": lambda: _in_thread(socket.socket),
                "pair": socket.socketpair,
                "program": lambda: os.execv(sys.executable, [sys.executable, "-c", "0"]),
                "process": lambda: subprocess.run([sys.executable, "-c", "0"], check=True),
                "fork": os.fork,
                "signal": lambda: os.kill(parent, 0),
                "mode": lambda: os.chmod(secret, 0o777),
                "mode of an open file": lambda: os.fchmod(own, 0o777),
                "owner": lambda: os.chown(secret, os.getuid(), os.getgid()),
                "owner of a link": lambda: os.lchown(secret, os.getuid(), os.getgid()),
                "time": lambda: os.utime(secret),
                "attribute": lambda: os.setxattr(secret, "user.x", b"x"),
                "attribute of an open file": lambda: os.setxattr(own, "user.x", b"x"),
                "priority of another": lambda: os.setpriority(os.PRIO_PROCESS, parent, 19),
                "processors of another": lambda: os.sched_setaffinity(parent, affinity),
                "scheduler of another": lambda: os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0)),
                "limit of another": lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE),
                "receiver of signals": lambda: fcntl.fcntl(reader, fcntl.F_SETOWN, parent),
                "kind of signal": lambda: fcntl.fcntl(reader, 10, signal.SIGKILL),
                "watch": lambda: system_call(seccomp.number_of("inotify_init1"), 0),
                "own processors": lambda: os.sched_setaffinity(0, affinity),
                "own limit": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
                "own descriptor": lambda: fcntl.fcntl(reader, fcntl.F_GETFL),
                "own size": Path("/proc/self/statm").read_bytes,
                "library": lambda: __import__("stringprep") and None,
                "package": lambda: __import__("scrapy_ext.api.platform.snapshots") and None,
                "own copy": lambda: os.close(os.dup(reader)),
                "open file": lambda: os.pwrite(own, b"secret", 0),
            }
        ),
    }


def _in_thread(attempt: Callable[[], object]) -> None:
    """Make an attempt in a thread, and raise its error."""
    raised: list[OSError] = []

    def work() -> None:
        try:
            attempt()
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for error in raised:
        raise error


# ── addresses ──


def addresses(folder: Path) -> Any:
    """Connections and datagrams, whose calls a broker in the parent makes or refuses."""
    with contextlib.ExitStack() as stack:
        listener, closed, datagrams = (
            stack.enter_context(socket.socket(type=kind))
            for kind in (socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM)
        )
        for each in (listener, closed, datagrams):
            each.bind(("127.0.0.1", 0))
        for each in (listener, closed):
            each.listen(64)
        for place in (folder / "own" / "socket", folder / "outside" / "socket"):
            each = stack.enter_context(socket.socket(socket.AF_UNIX))
            each.bind(str(place))
            each.listen(64)
        ports = {name: each.getsockname()[1]
                 for name, each in (("open", listener), ("closed", closed), ("udp", datagrams))}  # fmt: skip
        rules = Rules(["127.9.0.0/16", "10.0.0.0/8", "127.0.0.8 7"], [ports["closed"]])
        return _brokered(rules, [str(folder / "own")], address_attempts(folder, ports))


def _brokered(rules: Rules, folders: list[str], attempts: Attempts) -> Any:
    """Results of attempts in a child whose calls with addresses a broker in this process makes."""
    installed, begin, found = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            wanted = Confinement(defences=(CONNECTIONS,))
            os.write(installed[1], b"%d\n" % applying.confine(wanted, -1))
            os.read(begin[0], 1)
            os.write(found[1], json.dumps(results(attempts)).encode())
        finally:
            os._exit(0)
    for _, writer in (installed, found):
        os.close(writer)
    broker = ConnectionBroker.of(child, int(os.read(installed[0], 16)), rules, folders)
    os.write(begin[1], b"1")
    while broker.answer(wait=True):
        pass
    os.waitpid(child, 0)
    with open(found[0], "rb") as file:
        return json.loads(file.read())


def address_attempts(folder: Path, ports: Mapping[str, int]) -> Attempts:
    def connected(host: str, port: int, family: int = socket.AF_INET, *, blocking: bool = True) -> Callable[[], None]:
        def attempt() -> None:
            with socket.socket(family) as own:
                own.setblocking(blocking)
                own.connect((host, port))

        return attempt

    def sent(host: str, port: int, how: Callable[[socket.socket, tuple[str, int]], object]) -> Callable[[], None]:
        def attempt() -> None:
            with socket.socket(type=socket.SOCK_DGRAM) as own:
                how(own, (host, port))

        return attempt

    def to_unix(address: str) -> Callable[[], None]:
        def attempt() -> None:
            with socket.socket(socket.AF_UNIX) as own:
                own.connect(address)

        return attempt

    def by_sendto(own: socket.socket, address: tuple[str, int]) -> int:
        return own.sendto(b"x", address)

    def by_sendmsg(own: socket.socket, address: tuple[str, int]) -> int:
        return own.sendmsg([b"x", b"y"], [], 0, address)

    def stream() -> socket.socket:
        return socket.create_connection(("127.0.0.1", ports["open"]))

    return {
        "allowed": connected("127.0.0.1", ports["open"]),
        "allowed without waiting": connected("127.0.0.1", ports["open"], blocking=False),
        "nobody": connected("127.0.0.1", 1),
        "denied network": connected("127.9.1.1", ports["open"]),
        "denied network without waiting": connected("127.9.1.1", ports["open"], blocking=False),
        "denied in IPv6": connected("::ffff:127.9.1.1", ports["open"], socket.AF_INET6),
        "denied port of an address": connected("127.0.0.8", 7),
        "closed port": connected("127.0.0.1", ports["closed"]),
        "closed port of any address": connected("0.0.0.0", ports["closed"]),
        "closed port of another own address": connected("127.1.2.3", ports["closed"]),
        "closed port in IPv6": connected("::1", ports["closed"], socket.AF_INET6),
        "datagram": sent("127.0.0.1", ports["udp"], by_sendto),
        "datagram in parts": sent("127.0.0.1", ports["udp"], by_sendmsg),
        "connected datagram": sent("127.0.0.1", ports["udp"], lambda own, to: (own.connect(to), own.send(b"x"))),
        "denied datagram": sent("127.9.1.1", ports["udp"], by_sendto),
        "denied datagram in parts": sent("127.9.1.1", ports["udp"], by_sendmsg),
        "denied connected datagram": sent("127.9.1.1", ports["udp"], lambda own, to: own.connect(to)),
        "several datagrams": lambda: _several(("127.0.0.1", ports["udp"])),
        "fast open": lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", ports["open"])),
        "data of a stream": lambda: stream().sendall(b"x"),
        "data of a stream in parts": lambda: stream().sendmsg([b"x"]),
        "address of a stream": lambda: stream().sendto(b"x", ("127.9.1.1", 9)),
        "own socket": to_unix(str(folder / "own" / "socket")),
        "socket outside": to_unix(str(folder / "outside" / "socket")),
        "socket through a link": to_unix(str(folder / "own" / "to-socket")),
        "socket by ..": to_unix(str(folder / "own" / ".." / "outside" / "socket")),
        "abstract socket": to_unix("\0scrapy-ext-confined"),
        "pair": lambda: [each.sendall(b"x") for pair in [socket.socketpair()] for each in pair],
        "another family": lambda: call("connect", socket.socket().fileno(), struct.pack("H14x", 40), 16),
        "short address": lambda: call("connect", socket.socket().fileno(), b"\2", 1),
        "no address": lambda: call("connect", socket.socket().fileno(), None, 16),
        "no descriptor": lambda: call("connect", 999, struct.pack("=HH12x", 2, 0), 16),
        "a second listener": lambda: seccomp.install(seccomp.NOTIFYING_JOB),
        "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    }


def _several(address: tuple[str, int]) -> None:
    """Send a datagram to an address with ``sendmmsg``."""
    name = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", address[1], socket.inet_aton(address[0]))
    held, data = ctypes.create_string_buffer(name, len(name)), ctypes.create_string_buffer(b"x", 1)
    part = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(data), 1))
    head = struct.pack("PIxxxxPNPNixxxx", ctypes.addressof(held), len(name), ctypes.addressof(part), 1, 0, 0, 0)
    with socket.socket(type=socket.SOCK_DGRAM) as own:
        call("sendmmsg", own.fileno(), head + bytes(8), 1, 0)


CASES = {each.__name__: each for each in (calls, entries, files, executed, versions, computing, addresses)}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]](Path(sys.argv[2]))))
