"""Application of a :class:`Confinement` to this process, which is about to execute a program."""

from __future__ import annotations

from scrapy_ext.jobprocess.confinement import Confinement, landlock, seccomp, view
from scrapy_ext.jobprocess.confinement.privileges import give_up

LANDLOCK = "landlock"
#: Applied by the supervisor to itself: what it sends signals to is below it.
SIGNALS = "signals"
VIEW = "view"
FILTER = "filter"
CONNECTIONS = "connections"


def view_of(wanted: Confinement) -> int:
    """The descriptor of the view that a process is to have, or -1. Raises ``OSError``."""
    if VIEW not in wanted.defences or wanted.user is None or wanted.group is None:
        return -1
    return view.make([*wanted.read, *wanted.write], wanted.user, wanted.group, wanted.shared_memory)


def confine(wanted: Confinement, its_view: int) -> int:
    """Confine this process; returns the descriptor where its calls with addresses come (:mod:`connections`), or -1.
    Raises ``OSError``: then the process must not go on."""
    if its_view >= 0:
        view.enter(its_view)
    files = _files(wanted) if LANDLOCK in wanted.defences else None
    give_up(wanted.user, wanted.group)
    if files is not None:
        files.restrict()
    if FILTER not in wanted.defences and CONNECTIONS not in wanted.defences:
        return -1
    return seccomp.install(notify=CONNECTIONS in wanted.defences)


def _files(wanted: Confinement) -> landlock.Ruleset:
    rules = landlock.Ruleset()
    for paths, rights in (
        (wanted.read, landlock.READ),
        (wanted.write, landlock.WRITE),
    ):
        for path in paths:
            rules.allow(path, rights)
    return rules
