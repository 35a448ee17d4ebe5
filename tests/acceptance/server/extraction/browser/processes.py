"""The processes of Chromium that a test run started, orphans too."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_groups: set[int] = set()


def children(pid: int) -> list[int]:
    """The processes below one, nearest first."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    below = [tuple(map(int, line.split())) for line in found.splitlines()]
    result = [pid]
    for parent in result:
        result.extend(child for child, of in below if of == parent)
    return result[1:]


def of_this_run() -> dict[int, list[bytes]]:
    """Those that live, with their command lines: below this one, or in the group of one that was so at some time."""
    below = set(children(os.getpid()))
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout
    found = {}
    for pid, group, state in (line.split() for line in listed.splitlines()):
        if int(pid) not in below and int(group) not in _groups:
            continue
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # It ended in the meantime.
        # Debian starts it from a shell that stays.
        if "chrom" in os.fsdecode(command[0]) and "Z" not in state:
            found[int(pid)] = command
            _groups.add(int(group))
    return found


def browsers() -> list[int]:
    """The main ones."""
    return [
        pid
        for pid, command in of_this_run().items()
        if b"--remote-debugging-pipe" in command and not any(b"--type=" in part for part in command)
    ]


def renderers() -> set[int]:
    """Those that have pages in them."""
    # Forked ones have all that was said to them in one piece.
    return {pid for pid, command in of_this_run().items() if any(b"--type=renderer" in part for part in command)}


def painters() -> set[int]:
    """Those that draw frames."""
    return {pid for pid, command in of_this_run().items() if any(b"--type=gpu-process" in part for part in command)}
