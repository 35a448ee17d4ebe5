"""The processes of this machine in ``/proc`` of Linux: their parents, groups and memory.

On other systems the program ``ps`` lists them (:mod:`ps`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from scrapy_ext.jobprocess import ps

#: Whether the system has ``/proc``.
HAS_PROC: Final = sys.platform == "linux"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
#: Indexes of fields in /proc/PID/stat after the name of the program.
_STATE, _PARENT, _GROUP, _STARTED, _RESIDENT = 0, 1, 2, 19, 21
#: Lines of /proc/PID/status: memory that is not part of a file.
_OWN_MEMORY: Final = (b"RssAnon", b"RssShmem")
#: The folder of shared memory.
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the system's own
#: Prefixes of the names of files in memory.
_IN_MEMORY: Final = ("/memfd:", f"{SHARED_MEMORY}/")
_BLOCK: Final = 512
#: Descriptors that are read, of all processes and at least of each one: each takes 6 µs.
_MOST_DESCRIPTORS: Final = 20_000
_LEAST_DESCRIPTORS: Final = 16
#: Assumed memory of a machine that does not report it.
_UNKNOWN_MEMORY: Final = 4 * 2**30
#: Reads of a tree of processes, for those that it starts meanwhile.
_READS: Final = 20


class Process(NamedTuple):
    """A process and its parent, by their IDs. ``started``: time that distinguishes processes with the same ID.
    ``memory``: resident bytes. ``group``: the ID of its process group."""

    pid: int
    parent: int
    started: int
    memory: int
    group: int


def table() -> dict[int, Process]:
    """Return all processes that have not ended, by their IDs."""
    if not HAS_PROC:
        return {row.pid: _of_row(row) for row in ps.rows()}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    return {pid: process for pid in pids if (process := of_pid(pid)) is not None}


def of_pid(pid: int) -> Process | None:
    """Return the process with an ID; None when it has ended."""
    if not HAS_PROC:
        return next(map(_of_row, ps.rows(pid)), None)
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        fields = os.read(file, 4096).rpartition(b")")[2].split()
    except OSError:
        return None
    finally:
        os.close(file)
    if len(fields) <= _RESIDENT or fields[_STATE] in (b"Z", b"X"):
        return None
    numbers = [int(fields[place]) for place in (_PARENT, _STARTED, _RESIDENT, _GROUP)]
    return Process(pid, numbers[0], numbers[1], numbers[2] * _PAGE, numbers[3])


def _of_row(row: ps.Row) -> Process:
    return Process(row.pid, row.parent, row.started, row.memory, row.group)


def command_line(pid: int) -> bytes:
    """Return the arguments of a process, separated by zero bytes or blanks; empty when it has ended."""
    return _read(pid, "cmdline") if HAS_PROC else ps.command_line(pid)


def own_memory(pid: int) -> int:
    """Return the bytes of a process's own memory, without the pages of its program, which processes share.

    Readable for sandboxed processes too, unlike ``smaps_rollup`` (PSS). Without ``/proc``, shared pages count too."""
    if not HAS_PROC:
        process = of_pid(pid)
        return 0 if process is None else process.memory
    return sum(1024 * int(value.split()[0]) for name, value in _status(pid) if name in _OWN_MEMORY)


def process_of(thread: int) -> int:
    """Return the ID of the process of a thread; raises ``ProcessLookupError``."""
    for name, value in _status(thread):
        if name == b"Tgid":
            return int(value)
    raise ProcessLookupError(f"there is no thread {thread}")


def _status(pid: int) -> Iterator[tuple[bytes, bytes]]:
    for line in _read(pid, "status").splitlines():
        name, _, value = line.partition(b":")
        yield name, value


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def below(roots: Collection[int], processes: Mapping[int, Process]) -> dict[int, list[Process]]:
    """Return each of these processes with all of its descendants, by its ID."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    trees = {}
    for root in roots:
        tree = [processes[root]] if root in processes else []
        for process in tree:  # which grows
            tree += children.get(process.pid, ())
        trees[root] = tree
    return trees


def children() -> list[int]:
    """Return the IDs of the children of this process from the kernel's list, in microseconds where :func:`table` takes
    milliseconds. Empty on a system without the list."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def send(pids: Iterable[int], number: int) -> None:
    """Send a signal to those of these processes that exist and that this process may signal."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def signal_below(root: int, number: int) -> None:
    """Send a signal to all descendants of a process, and not to itself; also to those that are started meanwhile."""
    signalled: set[tuple[int, int]] = set()
    for _ in range(_READS):
        tree = below([root], table())[root][1:]
        new = [process for process in tree if (process.pid, process.started) not in signalled]
        if not new:
            return
        signalled |= {(process.pid, process.started) for process in new}
        send([process.pid for process in new], number)


def kill_same(processes: Collection[Process]) -> None:
    """Kill those of these processes that have not ended."""
    for process in processes:
        same = of_pid(process.pid)
        if same is not None and same.started == process.started:
            send([process.pid], signal.SIGKILL)


def shared_memory(pids: Collection[int]) -> int:
    """Return the bytes of these processes' files in memory, mapped or not: each ``memfd`` and file in ``/dev/shm`` that
    they have open counts once, and a ``/dev/shm`` that is not that of this process as a whole."""
    own = _device(SHARED_MEMORY)
    folders: dict[int, int] = {}
    files: dict[tuple[int, int], int] = {}
    most = max(_MOST_DESCRIPTORS // max(len(pids), 1), _LEAST_DESCRIPTORS)
    for pid in pids:
        folder = f"/proc/{pid}/root{SHARED_MEMORY}"
        device = _device(folder)
        if device is not None and device != own and device not in folders:
            with contextlib.suppress(OSError):
                whole = os.statvfs(folder)
                folders[device] = (whole.f_blocks - whole.f_bfree) * whole.f_frsize
        for file in _files_in_memory(pid, most):
            files[file.st_dev, file.st_ino] = file.st_blocks * _BLOCK
    return sum(folders.values()) + sum(size for (device, _), size in files.items() if device not in folders)


def _device(folder: str) -> int | None:
    try:
        return os.stat(folder).st_dev
    except OSError:
        return None


def _files_in_memory(pid: int, most: int) -> Iterator[os.stat_result]:
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError), os.scandir(folder) as descriptors:
        for descriptor in itertools.islice(descriptors, most):
            with contextlib.suppress(OSError):  # it was closed
                if os.readlink(descriptor.path).startswith(_IN_MEMORY):
                    yield os.stat(descriptor.path)


def open_descriptors() -> int | None:
    """Return the number of open files and sockets of this process; None on a system that does not list them."""
    try:
        return len(os.listdir("/proc/self/fd" if HAS_PROC else "/dev/fd"))
    except OSError:
        return None


def machine_memory() -> int:
    """Return the bytes of memory of this machine or of the container of this process, the lower of both."""
    pages = os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}) else 0
    return min([limit for limit in (pages * _PAGE, *cgroup_limits()) if limit], default=_UNKNOWN_MEMORY)


def cgroup_limits(root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> list[int]:
    """Return the memory limits of this process's control groups, of version 1 and 2, and of their parents."""
    limits = []
    try:
        with open(membership, encoding="utf-8") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    for group in groups:
        if len(group) != 3:
            continue
        _, controllers, path = group
        if not controllers:
            folder, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = os.path.join(root, "memory"), "memory.limit_in_bytes"
        else:
            continue
        # In a container the path is often that on the host: then the group is at the root.
        parts = [part for part in path.split("/") if part and part != ".."]
        limits += [_number(os.path.join(folder, *parts[:depth], name)) for depth in range(len(parts) + 1)]
    return [limit for limit in limits if limit]


def _number(path: str) -> int:
    """Return the number in a file; 0 without one."""
    try:
        with open(path, encoding="utf-8") as file:
            return int(file.read())
    except (OSError, ValueError):  # "max" is no limit
        return 0


def kernel_kills() -> int | None:
    """Return the number of processes that the kernel has killed for lack of memory; None when it reports none."""
    try:
        with open("/proc/vmstat", "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError):
        return None
    return None
