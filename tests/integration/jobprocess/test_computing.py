"""A process that is confined to computing, on a system that has the defences."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.jobprocess.confinement.applying import FILTER, LANDLOCK

TRIES = """
import json, os, resource, socket, subprocess, sys, threading
from scrapy_ext.jobprocess.confinement.computing import compute_only

applied = compute_only()
folder = sys.argv[1]


def outcome(tried):
    try:
        tried()
    except OSError as error:
        return error.errno
    return "done"


def in_thread(tried):
    found = []
    thread = threading.Thread(target=lambda: found.append(outcome(tried)))
    thread.start()
    thread.join()
    return found[0]


print(json.dumps({
    "applied": applied,
    "files": {
        "read": outcome(lambda: open(folder + "/secret")),
        "list": outcome(lambda: os.listdir(folder)),
        "write": outcome(lambda: open(folder + "/made", "w")),
        "remove": outcome(lambda: os.remove(folder + "/secret")),
        "environment of the parent": outcome(lambda: open(f"/proc/{os.getppid()}/environ")),
    },
    "calls": {
        "socket": outcome(socket.socket),
        "socket in a thread": in_thread(socket.socket),
        "pair": outcome(socket.socketpair),
        "program": outcome(lambda: os.execv(sys.executable, [sys.executable, "-c", "0"])),
        "process": outcome(lambda: subprocess.run([sys.executable, "-c", "0"])),
        "fork": outcome(os.fork),
        "signal": outcome(lambda: os.kill(os.getppid(), 0)),
        "limits of the parent": outcome(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)),
    },
    "own": {
        "limit": outcome(lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))),
        "named": outcome(lambda: open("/proc/self/statm").read()),
        "library": outcome(lambda: __import__("this")),
        "package": outcome(lambda: __import__("scrapy_ext.api.platform.snapshots")),
    },
}))
"""


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "secret").write_text("key")
    command = [sys.executable, "-c", TRIES, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answer: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return answer


@pytest.fixture(scope="module")
def defences() -> list[str]:
    """The defences that work on this system, by the trial that jobs use."""
    program = "from scrapy_ext.jobprocess.confinement.probing import main; main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    works: list[str] = json.loads(ended.stdout)["defences"]
    return [name for name in (LANDLOCK, FILTER) if name in works]


def test_it_has_no_files_sockets_programs_or_processes(found: dict[str, Any], defences: list[str]) -> None:
    assert found["applied"] == defences
    if LANDLOCK in defences:
        assert set(found["files"].values()) == {13}
    if FILTER in defences:
        assert set(found["calls"].values()) == {1}


def test_it_has_its_own_limits_and_the_files_of_its_python(found: dict[str, Any]) -> None:
    assert set(found["own"].values()) == {"done"}
