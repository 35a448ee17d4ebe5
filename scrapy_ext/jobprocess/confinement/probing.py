"""The defences of this system, found by a trial of each in a child process: a system may have a call and refuse it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from scrapy_ext.jobprocess.confinement import landlock, seccomp, system, view
from scrapy_ext.jobprocess.confinement.addresses import Rules
from scrapy_ext.jobprocess.confinement.applying import CONNECTIONS, FILTER, LANDLOCK, SIGNALS, VIEW, give_up
from scrapy_ext.jobprocess.confinement.connections import ConnectionBroker

#: The right to run as any user.
USER: Final = "user"
_UNUSED_USER: Final = 1_900_000_000


class ProbeResult(NamedTuple):
    """The working defences, and the version of Landlock (0: none)."""

    defences: list[str]
    landlock: int = 0


def main() -> None:
    """Write the result to standard output, as JSON."""
    json.dump(probe()._asdict(), sys.stdout)


def probe() -> ProbeResult:
    """Try all defences; for a process without threads."""
    if not system.IS_LINUX:
        return ProbeResult([])
    trials: dict[str, Callable[[], None]] = {LANDLOCK: _landlock, USER: _user, VIEW: _view, FILTER: _filter}
    works = [name for name, trial in trials.items() if _in_child(trial)]
    if _in_child(lambda: _signals(VIEW in works)):
        works.append(SIGNALS)
    if FILTER in works and _connections():
        works.append(CONNECTIONS)
    return ProbeResult(works, landlock.version() if LANDLOCK in works else 0)


def _landlock() -> None:
    rules = landlock.Ruleset()
    rules.allow("/", landlock.READ)
    give_up(None, None)
    rules.restrict()


def _user() -> None:
    give_up(_UNUSED_USER, _UNUSED_USER)


def _view() -> None:
    view.enter(view.make([], _UNUSED_USER, _UNUSED_USER, 2**20))


def _signals(with_view: bool) -> None:
    """Try to restrict signals, together with the view: the restriction is useless if the view fails after it."""
    made = view.make([], _UNUSED_USER, _UNUSED_USER, 2**20) if with_view else -1
    landlock.enclose_signals()
    with contextlib.suppress(PermissionError):
        os.kill(os.getppid(), 0)
        raise OSError("a signal was sent out")
    if made >= 0:
        view.enter(made)
    _landlock()


def _filter() -> None:
    give_up(None, None)
    seccomp.install(seccomp.JOB)
    os.getpid()


def _in_child(trial: Callable[[], None]) -> bool:
    parent, child = os.getpid(), os.fork()
    if child == 0:
        status = 1
        try:
            _end_with(parent)
            trial()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _end_with(parent: int) -> None:
    """End this process when its parent ends; call it again after a change of user."""
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _connections() -> bool:
    """Try to have a call to this machine refused."""
    descriptors, replies = os.pipe(), os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        status = 1
        try:
            give_up(None, None)
            _end_with(parent)
            os.write(descriptors[1], b"%d\n" % seccomp.install(seccomp.NOTIFYING_JOB))
            os.read(replies[0], 1)
            with socket.socket() as trial:
                status = 0 if trial.connect_ex(("127.0.0.1", 9)) == errno.EACCES else 1
        finally:
            os._exit(status)
    os.close(descriptors[1])
    try:
        broker = ConnectionBroker.of(child, int(os.read(descriptors[0], 16)), Rules(["127.0.0.0/8"], []), [])
        os.write(replies[1], b"1")
        while broker.answer(wait=True):
            pass
    except (OSError, ValueError):
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0
