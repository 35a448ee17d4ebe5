"""Run a module of the package as on macOS: ``python -m tests.support.as_macos scrapy_ext.server …``.

The package sees a system that is not Linux: without ``/proc``, ``prctl``, memory files and other calls of Linux alone.
Supervisors and guards that it starts do, too. The standard library, whose modules decide by the platform, stays as it
is.
"""

from __future__ import annotations

import builtins
import ctypes
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = "scrapy_ext"
_ROOT = str(Path(__file__).resolve().parents[2])
#: Prefixes of names in ``os`` that Python has not on macOS.
_NO_OS = (
    *("EFD_", "GRND_", "MFD_", "O_DIRECT", "O_LARGEFILE", "O_NOATIME", "O_PATH", "O_RSYNC", "O_TMPFILE", "P_PIDFD"),
    *(
        "POSIX_FADV",
        "RWF_",
        "SCHED_BATCH",
        "SCHED_IDLE",
        "SPLICE_",
        "XATTR_",
        "copy_file_range",
        "eventfd",
        "fdatasync",
    ),
    *(
        "getrandom",
        "getresgid",
        "getresuid",
        "getxattr",
        "listxattr",
        "memfd_create",
        "pidfd_",
        "pipe2",
        "posix_fadvise",
    ),
    *("posix_fallocate", "removexattr", "sched_", "setns", "setresgid", "setresuid", "setxattr", "splice", "unshare"),
)


class _View(ModuleType):
    """A module without some of its names, and with others instead."""

    def __init__(self, real: ModuleType, without: tuple[str, ...] = (), **instead: Any) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _without=without, **instead)

    def __getattr__(self, name: str) -> Any:
        if self._without and name.startswith(self._without):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} (macOS)")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


class _Library(ctypes.CDLL):
    """The C library without the functions that Linux alone has."""

    def __getattr__(self, name: str) -> Any:
        if name in ("prctl", "syscall", "unshare", "setns"):
            raise AttributeError(name)
        return super().__getattr__(name)


def _execute(program: str, command: list[str], environment: dict[str, str]) -> None:
    os.execve(program, _same(command), environment)


def _same(command: Any) -> Any:
    """Return a command that runs a module of the package in the same way."""
    if not isinstance(command, list) or "-m" not in command:
        return command
    place = command.index("-m") + 1
    if not command[place].startswith(f"{_PACKAGE}.server"):  # the code of jobs is the same everywhere
        return command
    return [*(word for word in command[:place] if word != "-P"), "tests.support.as_macos", *command[place:]]


_VIEWS = {
    "os": _View(os, _NO_OS, execve=_execute),
    "sys": _View(sys, platform="darwin"),
    "signal": _View(signal, ("SIGRTM", "SIGPWR", "SIGSTKFLT", "sigtimedwait", "sigwaitinfo")),
    "time": _View(time, ("CLOCK_BOOTTIME", "CLOCK_TAI", "pthread_getcpuclockid")),
    "socket": _View(socket, ("AF_NETLINK", "AF_PACKET", "SO_PEERCRED", "SOCK_CLOEXEC", "SOCK_NONBLOCK")),
    "select": _View(select, ("epoll",)),
    "ctypes": _View(ctypes, CDLL=_Library),
}

_import = builtins.__import__


def _import_as_macos(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    ours = (globals or {}).get("__name__", "")
    if not level and (
        ours.startswith(_PACKAGE) or (ours == "__main__" and globals.get("__package__", "") in _packages)
    ):
        return _VIEWS.get(name) or _import(name, globals, locals, fromlist, level)
    return _import(name, globals, locals, fromlist, level)


#: Packages of the modules that run as programs.
_packages: set[str] = set()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Hide ``/proc``, ``/sys`` and ``/dev/shm`` from the package."""
    if event not in ("open", "os.listdir", "os.scandir"):
        return
    path = arguments[0]
    if not isinstance(path, str) or (not path.startswith(("/proc/", "/sys/", "/dev/shm")) and path != "/proc"):
        return
    frame = sys._getframe(1)
    if frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        raise FileNotFoundError(2, "No such file or directory", path)


_popen = subprocess.Popen.__init__


def _start(process: Any, command: Any, *arguments: Any, **options: Any) -> None:
    """Start modules of the package in the same way."""
    same = _same(command)
    if same is not command:
        command = same
        if options.get("env") is not None:
            found = options["env"].get("PYTHONPATH", "")
            options["env"] = {**options["env"], "PYTHONPATH": os.pathsep.join(filter(None, [_ROOT, found]))}
    _popen(process, command, *arguments, **options)


def install() -> None:
    assert not any(name.split(".")[0] == _PACKAGE for name in sys.modules)
    builtins.__import__ = _import_as_macos
    subprocess.Popen.__init__ = _start
    sys.addaudithook(_audit)


def patch_supervisor() -> None:
    """Have supervisors, which import no package but the standard library, run in the same way."""
    from scrapy_ext.jobprocess import supervisor

    _ps_of_this_system()

    def command(module: str = "supervisor") -> list[str]:
        code = (
            f"import sys; sys.path.append({_ROOT!r}); from tests.support import as_macos; as_macos.install(); "
            "as_macos._ps_of_this_system(); "
            f"from scrapy_ext.jobprocess.{module} import main; main()"
        )
        return [sys.executable, "-I", "-S", "-c", code]

    supervisor.command = command


def _ps_of_this_system() -> None:
    """``ps`` of Linux shows variables by another option than that of macOS."""
    from scrapy_ext.jobprocess import ps

    ps._WITH_VARIABLES = ("axeww",)


def main() -> None:
    install()
    patch_supervisor()
    module = "scrapy_ext.server"
    if sys.argv[1:] and sys.argv[1].startswith(_PACKAGE):
        module = sys.argv.pop(1)
    _packages.add(module.rpartition(".")[0] if "." in module else module)
    runpy.run_module(module if not _is_package(module) else f"{module}.__main__", run_name="__main__", alter_sys=True)


def _is_package(module: str) -> bool:
    return (Path(_ROOT, *module.split(".")) / "__main__.py").exists()


if __name__ == "__main__":
    main()
