"""``python -m scrapy_ext.jobprocess.template``: the process from which the workers of a crawl on a machine are forked.

The first worker, which is the process of the command, starts it and writes two lines to its standard input: a
:class:`Prepare` at once, so that imports are done while the first worker opens the crawl, and a :class:`Fork` when the
job exists. A worker runs the same command of Scrapy, with a few settings more. Invariants:

- This process has one thread, no event loop and no reactor, since a fork copies nothing but the thread that calls it.
- What it has imported is frozen for the garbage collector, which would write to each object. So the workers share these
  pages.
- A worker that a signal has killed is replaced, :data:`REPLACEMENTS` times in an hour, while any other worker lives.
  One that ends by itself, or by a signal that asks for its end, is not.
- It ignores the interrupt of the terminal, which reaches each worker as well. It ends with the last worker that it has
  forked, and is not needed by any: when it is killed, they go on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scrapy_ext.jobprocess.messages import Fork, Prepare, TerminalLog, WorkerFormatter, show_number

if TYPE_CHECKING:
    from scrapy.settings import Settings

logger = logging.getLogger(__name__)

#: Workers that are forked in place of killed ones in an hour, in seconds.
REPLACEMENTS: Final = 5
_HOUR: Final = 3600.0
#: Signals that ask a process to end.
_ASKED: Final = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
#: Priority of settings above those of the command line.
_PRIORITY: Final = 50
_PIECE: Final = 64 * 1024
_REACTOR: Final = "twisted.internet.reactor"
#: Modules of this package and of its libraries that a crawl imports, beside the components that settings name.
_IMPORTED: Final = (
    *("scrapy.cmdline", "scrapy.crawler", "scrapy.squeues", "aiohttp", "scrapy_ext.addon", "scrapy_ext.pipelines"),
    *("scrapy_ext.scheduler", "scrapy_ext.downloadermiddlewares", "scrapy_ext.spidermiddlewares"),
    *("scrapy_ext.extensions", "scrapy_ext.pqueues", "scrapy_ext.crawl.session.embedded"),
)


def main() -> None:
    """Fork the workers that standard input names; returns in the template when they have ended, and in each worker when
    its command has."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    lines = _lines()
    if (line := next(lines, None)) is None:
        return
    prepared = msgspec.json.decode(line, type=Prepare)
    sys.path[:] = prepared.path
    settings = _prepared_settings()
    if (line := next(lines, None)) is None:
        return
    fork = msgspec.json.decode(line, type=Fork)
    place = Template(fork).run()
    if place is not None:
        _crawl(prepared.words, settings, fork.workers[place])


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input, without a read beyond each: its end is awaited elsewhere."""
    line = b""
    while piece := os.read(0, _PIECE):
        *complete, line = (line + piece).split(b"\n")
        yield from complete


def _prepared_settings() -> Settings:
    """Import what a crawl needs; returns the settings of the project. Ends this process if that installs a reactor."""
    from scrapy.settings import BaseSettings
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings

    settings = get_project_settings()
    values = (attribute.value for attribute in settings.attributes.values())
    named = [
        each for value in values for each in ((*value, *value.values()) if isinstance(value, BaseSettings) else [value])
    ]
    components = {each.rpartition(".")[0] for each in named if isinstance(each, str) and each.startswith("scrapy.")}
    for name in (*_IMPORTED, *components):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # An error of a module of spiders is reported by the command.
    with contextlib.suppress(Exception):
        get_spider_loader(settings)
    if _REACTOR in sys.modules:
        sys.exit(
            f"A module of the project imports {_REACTOR}, so no worker can be forked. Move that import into the "
            "function that needs it."
        )
    if others := threading.enumerate()[1:]:
        # Their modules may notice that they are in another process.
        names = ", ".join(sorted(thread.name for thread in others))
        logger.warning(
            "Threads that begin with an import are missing in forked workers: %s. Start them where they are used", names
        )
    gc.collect()
    gc.freeze()
    return settings


class Template:
    """The workers that were forked."""

    def __init__(self, fork: Fork) -> None:
        self._fork_line = fork
        #: Place of each worker in the line, by its process ID.
        self._running: dict[int, int] = {}
        #: Times of the last replacements, on the monotonic clock.
        self._replaced = deque[float](maxlen=REPLACEMENTS)

    def run(self) -> int | None:
        """Fork the workers, and wait until all have ended. Returns in each worker its place, None in this process."""
        _log_to(self._fork_line.log)
        for place in range(len(self._fork_line.workers)):
            if self._is_forked(place):
                return place
        while self._running:
            pid, status = os.waitpid(-1, 0)
            ended = self._running.pop(pid, None)
            if ended is not None and self._is_replaced(pid, status) and self._is_forked(ended):
                return ended
        return None

    def _is_forked(self, place: int) -> bool:
        """Fork a worker; returns true in the worker."""
        pid = os.fork()
        if pid == 0:
            _become_worker(place)
            return True
        self._running[pid] = place
        return False

    def _is_replaced(self, pid: int, status: int) -> bool:
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) in _ASKED or not (self._running or _input_is_open()):
            return False
        killed = f"The worker with process ID {pid} was killed ({signal.Signals(os.WTERMSIG(status)).name})"
        now = time.monotonic()
        if len(self._replaced) == REPLACEMENTS and now - self._replaced[0] < _HOUR:
            logger.error(
                "%s and is not replaced: %d others were within an hour. The crawl goes on with one worker less",
                *(killed, REPLACEMENTS),
            )
            return False
        self._replaced.append(now)
        logger.warning("%s and is replaced", killed)
        return True


def _input_is_open() -> bool:
    """Return true while the first worker lives. It writes nothing more, so that only an end can be read."""
    return not select.select([0], [], [], 0)[0]


def _become_worker(place: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    show_number(place + 1)  # until it has joined
    gc.enable()


def _log_to(log: TerminalLog | None) -> None:
    """Log warnings and errors to the terminal, or to its file."""
    if log is None:
        return
    handler = logging.StreamHandler() if log.file is None else logging.FileHandler(log.file, "a", log.encoding)
    handler.setLevel(max(log.level, logging.WARNING))
    handler.setFormatter(WorkerFormatter(log.format, log.date_format))
    logging.root.addHandler(handler)


def _crawl(words: Sequence[str], settings: Settings, given: dict[str, Any]) -> None:
    """Run the command of Scrapy."""
    from scrapy import cmdline

    own = {"LOG_FILE": None, "LOG_ENABLED": False}
    settings.setdict({**given, **own}, priority=_PRIORITY)
    sys.argv[:] = ["scrapy", *words]
    cmdline.execute(sys.argv, settings)


if __name__ == "__main__":
    main()
