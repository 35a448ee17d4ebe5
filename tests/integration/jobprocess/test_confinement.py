"""Attempts of confined processes, on the kernel of this machine (``tests/support/confined.py`` has the attempts).

One process makes all attempts of a case. The kernel must have Landlock and the notification of system calls.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.jobprocess.confinement import seccomp
from scrapy_ext.jobprocess.confinement.system import MACHINE

DONE, EPERM, EACCES, ENOSYS = "done", "EPERM", "EACCES", "ENOSYS"
NONE = "0" * 16


Found = Callable[[str], Any]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The results of a case, in a folder with ``own``, which is writable, and ``outside``, which is not allowed."""

    @cache
    def results(case: str) -> Any:
        folder = tmp_path_factory.mktemp("confined")
        own, outside = folder / "own", folder / "outside"
        for path in (own / "folder", outside / "empty"):
            path.mkdir(parents=True)
        secret = outside / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        shutil.copy("/bin/true", outside / "program")
        (own / "file").write_text("own")
        for name in ("secret", "socket"):
            (own / f"to-{name}").symlink_to(f"../outside/{name}")
        command = [sys.executable, "-m", "tests.support.confined", case, str(folder)]
        repository = Path(__file__).parents[3]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=120, cwd=repository)
        assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret", 0o644)
        return json.loads(ended.stdout)

    return results


# ── system calls ──

SOCKETS = {"tcp": DONE, "udp": DONE, "unix": DONE, "netlink route": DONE, "netlink audit": EPERM, "raw": EPERM,
           "ping": EPERM, "packet": EPERM, "alg": EPERM, "vsock": EPERM}  # fmt: skip
#: Without capabilities, the kernel itself refuses the other namespaces.
NAMESPACES = {"user": EPERM, "folders": EPERM, "processes": EPERM, "network": EPERM, "": DONE}
BROWSER = ("memory", "sockets", "events", "process", "filter", "signal", "priority", "mode")


def test_a_job_is_refused_every_call_that_reaches_past_it(found: Found) -> None:
    assert found("calls")["job"] == {
        **dict.fromkeys(seccomp._REACHING, EPERM),
        **dict.fromkeys(seccomp._HIDDEN, ENOSYS),
        **{f"socket {name}": result for name, result in SOCKETS.items()},
        **{f"{call} {name}": result for call in ("unshare", "clone") for name, result in NAMESPACES.items()},
        **{f"browser {name}": DONE for name in BROWSER},
        "ptrace in a thread": EPERM,
    }


def test_a_process_that_computes_is_refused_more(found: Found) -> None:
    known = {name for name in seccomp._CALLS if seccomp.number_of(name) >= 0} - {"fork", "vfork", "clone"}
    allowed = {"sendto": "ENOTSOCK", "sendmsg": "ENOTSOCK", "sendmmsg": "ENOTSOCK", "fcntl": DONE, "seccomp": "EINVAL"}
    own = {"prlimit64": DONE, **dict.fromkeys([*seccomp._SCHEDULING][1:], "EINVAL")}
    refused = {name: ENOSYS if name in seccomp._HIDDEN else EPERM for name in known}
    assert found("calls")["computing"] == {**refused, **allowed, **own, "ptrace in a thread": EPERM}


def test_the_entries_of_other_programs_are_closed(found: Found) -> None:
    """Other machines than x86_64 have no such entries: nothing is attempted there."""
    entries = found("entries")
    free = entries.pop("free narrow", None)
    # With the number of a process, the kernel has the entry; else none has.
    of_narrow = -38 if free == 1 else "SIGSEGV"
    assert free in ((1, "SIGSEGV") if MACHINE == "x86_64" else (None,))
    closed = {
        f"{name} {entry}": result
        for name in ("job", "computing")
        for entry, result in (("narrow", of_narrow), ("x32", ENOSYS))
    }
    assert entries == (closed if MACHINE == "x86_64" else {})


# ── files ──

FILES = {
    **dict.fromkeys(("read", "list", "list above", "write", "append"), EACCES),
    **dict.fromkeys(("make", "make a folder", "make a link", "make a pipe", "truncate"), EACCES),
    **dict.fromkeys(("remove", "remove a folder", "rename", "move in", "move out"), EACCES),
    "link in": "EXDEV",
    **dict.fromkeys(("through a link", "by ..", "execute"), EACCES),
    **dict.fromkeys(("memory of another", "environment of another", "root of another"), EACCES),
    **dict.fromkeys(("descriptor of another", "folder of another"), EACCES),
    # Of its own user, it sees the numbers of descriptors, and may change the mode and time of files: Landlock has no
    # rights for these.
    **dict.fromkeys(("descriptors of another", "mode", "time"), DONE),
    **dict.fromkeys(("setting of the kernel", "another device", "own device", "own disk"), EACCES),
    # What was open before stays open, and gives no more.
    **dict.fromkeys(("open file", "names of an open folder"), DONE),
    **dict.fromkeys(("open file again", "below an open folder", "place again"), EACCES),
    **dict.fromkeys(("own file", "own writing", "own renaming", "own removal", "library", "null"), DONE),
}
STATUS = {**dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), NONE), "NoNewPrivs": "1", "Seccomp": "2"}


def test_only_the_allowed_files_are_read_and_written(found: Found) -> None:
    assert found("files")["process"] == FILES
    assert found("files")["status"] == STATUS


def test_a_program_that_it_executes_has_the_same_confinement(found: Found) -> None:
    """Its parent is confined alike, and so is no stranger to it."""
    of_parent = {f"{name} of another" for name in ("memory", "environment", "descriptor", "folder", "descriptors")}
    program = dict(found("files")["program"])
    assert program.pop("status") == STATUS
    assert {name: result for name, result in program.items() if name not in of_parent} == {
        name: result for name, result in FILES.items() if name not in of_parent
    }


#: What a version of Landlock adds, the results before it, and since.
ADDED = [
    ("read", 1, EACCES, EACCES),
    ("move between folders", 2, "EXDEV", DONE),
    ("truncate", 3, DONE, EACCES),
    ("device", 5, "ENOTTY", EACCES),
    ("signal", 6, DONE, EPERM),
    ("abstract socket", 6, DONE, EPERM),
]


@pytest.mark.parametrize(("attempt", "since", "before", "after"), ADDED)
def test_an_older_kernel_holds_what_it_can(found: Found, attempt: str, since: int, before: str, after: str) -> None:
    versions = {int(name): results for name, results in found("versions").items() if name.isdigit()}
    assert [*versions] == list(range(1, found("versions")["newest"] + 1))
    assert {version: results[attempt] for version, results in versions.items()} == {
        version: after if version >= since else before for version in versions
    }


def test_a_defence_that_was_there_and_fails_ends_the_process_and_one_that_is_not_there_is_left_out(
    found: Found,
) -> None:
    without = found("versions")["none"]
    assert without.pop("confine") in ("EOPNOTSUPP", "ENOTSUP")
    assert without == {"applied": ["filter"], "read": DONE}


# ── computing ──

COMPUTING = {
    **dict.fromkeys(("read", "list", "write", "remove", "environment of another"), EACCES),
    **dict.fromkeys(("socket", "socket in a thread", "pair", "program", "process", "fork", "signal"), EPERM),
    **dict.fromkeys(("mode", "mode of an open file", "owner", "owner of a link", "time"), EPERM),
    **dict.fromkeys(("attribute", "attribute of an open file"), EPERM),
    **dict.fromkeys(("priority of another", "processors of another", "scheduler of another"), EPERM),
    **dict.fromkeys(("limit of another", "receiver of signals", "kind of signal", "watch"), EPERM),
    **dict.fromkeys(("own processors", "own limit", "own descriptor", "own copy", "own size", "open file"), DONE),
    **dict.fromkeys(("library", "package"), DONE),
}


def test_a_process_that_computes_changes_nothing_but_its_own_memory_and_open_files(found: Found) -> None:
    results = dict(found("computing"))
    assert results.pop("applied") == ["landlock", "filter"]
    assert results == COMPUTING


# ── addresses ──

ADDRESSES = {
    "allowed": DONE,
    "allowed without waiting": "EINPROGRESS",
    "nobody": "ECONNREFUSED",
    **dict.fromkeys(("denied network", "denied network without waiting", "denied in IPv6"), EACCES),
    "denied port of an address": EACCES,
    **dict.fromkeys(("closed port", "closed port of any address", "closed port of another own address"), EACCES),
    "closed port in IPv6": EACCES,
    **dict.fromkeys(("datagram", "datagram in parts", "connected datagram"), DONE),
    **dict.fromkeys(("denied datagram", "denied datagram in parts", "denied connected datagram"), EACCES),
    "several datagrams": ENOSYS,  # libraries then send them one by one
    "fast open": EPERM,
    **dict.fromkeys(("data of a stream", "data of a stream in parts", "own socket", "pair"), DONE),
    **dict.fromkeys(("address of a stream", "socket outside", "socket by ..", "abstract socket"), EACCES),
    "socket through a link": "ELOOP",
    "another family": "EAFNOSUPPORT",
    "short address": "EINVAL",
    "no address": "EFAULT",
    "no descriptor": "EBADF",
    "a second listener": "EBUSY",  # which could let calls pass that the first refuses
    "raw": EPERM,
}


def test_calls_with_addresses_are_made_or_refused_by_the_broker(found: Found) -> None:
    assert found("addresses") == ADDRESSES
