"""Run ``scrapy`` with a package that sees Windows: ``python as_windows.py crawl books -a x=1``.

The standard library and other packages remain those of this system, which could not work otherwise. The modules of the
package get views of the standard library without all that Windows lacks, and what they do to files and event loops
fails as it does there. ``python as_windows.py --server …`` runs the server instead.
"""

from __future__ import annotations

import asyncio.unix_events
import builtins
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

_PACKAGE = "scrapy_ext"
#: Modules that Python has not on Windows.
_NO_MODULES = {
    *("crypt", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline", "resource", "spwd", "syslog", "termios"),
    *("tty", "uvloop", "_posixsubprocess"),
}
#: Prefixes and names in ``os`` that are not "Availability: Windows" in the documentation of Python 3.11.
_NO_OS = (
    *("CLD_", "EFD_", "EX_", "F_", "GRND_", "MFD_", "NGROUPS_MAX", "POSIX_", "PRIO_", "RTLD_", "RWF_", "SCHED_", "SF_"),
    *("SPLICE_", "ST_", "TMP_MAX", "WCONTINUED", "WCOREDUMP", "WEXIT", "WIF", "WNO", "WSTOP", "WTERM", "WUNTRACED"),
    *("XATTR_", "P_ALL", "P_PGID", "P_PID", "O_ACCMODE", "O_ASYNC", "O_CLOEXEC", "O_DIRECT", "O_DSYNC", "O_LARGEFILE"),
    *("O_NDELAY", "O_NOATIME", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_RSYNC", "O_SYNC", "O_TMPFILE"),
    *("chflags", "chown", "chroot", "confstr", "copy_file_range", "ctermid", "device", "eventfd", "fchdir", "fchmod"),
    *("fchown", "fdatasync", "fork", "fpathconf", "fstatvfs", "getegid", "geteuid", "getgid", "getgroup", "getloadavg"),
    *("getpgid", "getpgrp", "getpriority", "getrandom", "getresgid", "getresuid", "getsid", "getuid", "getxattr"),
    *("get_blocking", "initgroups", "killpg", "lchown", "listxattr", "lockf", "login_tty", "major", "makedev", "memfd"),
    *("minor", "mkfifo", "mknod", "nice", "openpty", "pathconf", "pidfd", "pipe2", "posix_", "pread", "pwrite"),
    *("readv", "register_at_fork", "removexattr", "sched_", "sendfile", "setegid", "seteuid", "setgid", "setgroups"),
    *("setpgid", "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setsid", "setuid", "setxattr"),
    *("set_blocking", "splice", "statvfs", "sync", "sysconf", "tcgetpgrp", "tcsetpgrp", "ttyname", "uname", "wait3"),
    *("wait4", "waitid", "writev"),
)
_SIGNALS = {"SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIG_DFL", "SIG_IGN"}
_NO_SIGNAL_CALLS = (
    *("alarm", "getitimer", "pause", "pthread_", "setitimer", "siginterrupt", "sigpending", "sigtimedwait", "sigwait"),
    *("SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "ITIMER_"),
)
_RESERVED = set('<>:"|?*')
_BINARY = 0x8000


class _View(ModuleType):
    """A module without some of its names, and with others instead."""

    def __init__(self, real: ModuleType, without: Collection[str], instead: Mapping[str, Any]) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _without=frozenset(without), **instead)

    def __getattr__(self, name: str) -> Any:
        if name in self._without:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} (Windows)")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


def _starting(module: ModuleType, prefixes: tuple[str, ...]) -> set[str]:
    return {name for name in dir(module) if name.startswith(prefixes)}


#: Descriptors that were opened without ``O_BINARY``.
_text: set[int] = set()


def _open(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
    if options:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    descriptor = os.open(path, flags & ~_BINARY, mode)
    (_text.discard if flags & _BINARY else _text.add)(descriptor)
    return descriptor


def _write(descriptor: int, data: Any) -> int:
    if descriptor not in _text:
        return os.write(descriptor, data)
    os.write(descriptor, bytes(data).replace(b"\n", b"\r\n"))
    return len(data)


def _fsync(descriptor: int) -> None:
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    os.fsync(descriptor)


def _kill(pid: int, number: int) -> None:
    raise AssertionError(f"os.kill({pid}, {number}) ends any process on Windows")


def _locking(descriptor: int, mode: int, number: int) -> None:
    assert number == 1
    try:
        fcntl.lockf(descriptor, {0: fcntl.LOCK_UN, 2: fcntl.LOCK_EX | fcntl.LOCK_NB}[mode], number)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _cdll(name: str | None, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("argument of type 'NoneType' is not iterable" if name is None else f"no {name} (Windows)")


_VIEWS = {
    "os": _View(
        os,
        _starting(os, _NO_OS),
        {
            "name": "nt", "open": _open, "write": _write, "fsync": _fsync, "kill": _kill,
            "O_BINARY": _BINARY, "supports_dir_fd": set(),
        },
    ),
    "sys": _View(sys, {"getdlopenflags", "setdlopenflags", "abiflags"}, {"platform": "win32"}),
    "signal": _View(
        signal, {name for name in dir(signal) if name.startswith("SIG") and name not in _SIGNALS}
        | _starting(signal, _NO_SIGNAL_CALLS), {},
    ),
    "time": _View(time, _starting(time, ("CLOCK_", "clock_", "pthread_", "tzset")), {}),
    "socket": _View(socket, {"AF_UNIX", "AF_NETLINK", "socketpair", "send_fds", "recv_fds", "SO_REUSEPORT"}, {}),
    "select": _View(select, {"poll", "epoll", "kqueue"}, {}),
    "ctypes": _View(ctypes, set(), {"CDLL": _cdll}),
    "msvcrt": _View(ModuleType("msvcrt"), set(), {"locking": _locking, "LK_UNLCK": 0, "LK_NBLCK": 2}),
}  # fmt: skip

_import = builtins.__import__


def _import_as_windows(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    if level or not (globals or {}).get("__name__", "").startswith(_PACKAGE):
        return _import(name, globals, locals, fromlist, level)
    if name in _NO_MODULES:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _VIEWS.get(name) or _import(name, globals, locals, fromlist, level)


def _opened_files() -> set[tuple[int, int]]:
    """The regular files that this process has open."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            file = os.fstat(int(name))
        except OSError:
            continue
        if stat.S_ISREG(file.st_mode):
            found.add((file.st_dev, file.st_ino))
    return found


def _refuse_open(*paths: Any) -> None:
    """Windows neither moves nor removes a file that is open, unless all of its openers allow it."""
    for path in paths:
        try:
            file = os.stat(path)
        except OSError:
            continue
        if (file.st_dev, file.st_ino) in _opened_files():
            raise PermissionError(errno.EACCES, "The process cannot access the file (it is open)", str(path))


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | os.PathLike):
        name = Path(arguments[0]).name
        if arguments[2] & (os.O_WRONLY | os.O_RDWR) and _RESERVED & set(name):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(arguments[0]))
    elif event in ("os.remove", "os.rename"):
        _refuse_open(*arguments[: 2 if event == "os.rename" else 1])


def _unsupported(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError


def _add_reader(loop: Any, file: Any, callback: Any, *arguments: Any) -> Any:
    descriptor = file if isinstance(file, int) else file.fileno()
    ours = sys._getframe(1).f_globals["__name__"].startswith(_PACKAGE)  # Twisted uses pipes here, and sockets there
    if ours and not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise OSError(10038, "An operation was attempted on something that is not a socket")
    return _readers(loop, file, callback, *arguments)


_readers = asyncio.selector_events.BaseSelectorEventLoop.add_reader
_popen = subprocess.Popen.__init__


def _start(process: Any, *arguments: Any, **options: Any) -> None:
    if options.get("preexec_fn") is not None or options.get("pass_fds"):
        raise ValueError("preexec_fn and pass_fds are not supported on Windows platforms")
    _popen(process, *arguments, **options)


def install() -> None:
    assert not any(name.split(".")[0] == _PACKAGE for name in sys.modules)
    builtins.__import__ = _import_as_windows
    loop = asyncio.unix_events._UnixSelectorEventLoop
    for name in ("add_signal_handler", "remove_signal_handler", "connect_read_pipe", "connect_write_pipe"):
        setattr(loop, name, _unsupported)
    loop.add_reader = _add_reader
    loop._make_subprocess_transport = _unsupported
    subprocess.Popen.__init__ = _start
    sys.addaudithook(_audit)


def main() -> None:
    install()
    if sys.argv[1] == "--server":
        del sys.argv[1]
        from scrapy_ext.server.__main__ import main as run

        builtins.exit(run())
    from scrapy.cmdline import execute

    execute(["scrapy", *sys.argv[1:]])


if __name__ == "__main__":
    main()
