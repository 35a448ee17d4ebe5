"""``python -m scrapy_ext.jobprocess.launch``: the process of one job, as a node starts it.

Standard input is a :class:`Launch` as JSON. The ``supervisor`` has started this process, and confined it if the job is
of a deployed version; so nothing here has to be trusted.

The output of the spider goes to its log, and so to the platform. The real standard output and error are for the time
before and after the log, and for scripts.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import os
import runpy
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from scrapy_ext.compatibility.required import OldScrapyError, require_scrapy
from scrapy_ext.jobprocess.messages import LOG_IS_STORED, NO_SPIDER, Launch
from scrapy_ext.jobprocess.spider_modules import unreadable_modules

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings, Settings

#: Log records that are kept before the log is sent to the platform.
_EARLY: Final = 1000
_ADDON: Final = "scrapy_ext.Addon"
#: Part of the job's memory limit at which the crawl ends by itself.
_OWN_LIMIT: Final = 0.9
#: Limits of the output of a spider: characters of a line, and of all lines at once and per second. A record has more
#: characters than its line.
_LONGEST_LINE: Final = 64 * 1024
#: Characters of a longer line, so that there is room for the number of the others.
_KEPT_OF_LINE: Final = _LONGEST_LINE - 60
_CHARACTERS_AT_ONCE: Final = 8 * 1024 * 1024
_CHARACTERS_A_SECOND: Final = 512 * 1024
_OF_A_RECORD: Final = 200
#: Seconds between two checks of the memory of a crawl.
_MEMORY_CHECK: Final = 5


def main() -> None:
    """Run the job that standard input names; ends this process."""
    launch = msgspec.json.decode(sys.stdin.buffer.read(), type=Launch)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    with contextlib.suppress(OSError):
        os.nice(launch.nice)
    if launch.script:
        _is_up(launch)
        _run(launch)
    else:
        _crawl(launch)


def _is_up(launch: Launch) -> None:
    """Report that the job is running, so that the node starts the next one: a start takes the processor."""
    if launch.up >= 0:
        with contextlib.suppress(OSError):
            os.close(launch.up)


def _run(launch: Launch) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # its output is read while it runs
    sys.argv = [launch.script, *launch.words]
    sys.path[0] = os.path.dirname(launch.script)
    if os.getcwd() not in sys.path:
        sys.path.insert(1, os.getcwd())
    runpy.run_path(launch.script, run_name="__main__")


def _crawl(launch: Launch) -> None:
    if launch.up >= 0:
        os.set_inheritable(launch.up, False)
    try:
        require_scrapy()
    except OldScrapyError as error:
        print(f"{error}.", file=sys.__stderr__)
        sys.exit(1)
    from scrapy.utils.project import get_project_settings

    early = _Early()
    logging.getLogger().addHandler(early)
    atexit.register(early.write_out)
    settings = get_project_settings()
    _add_storage(settings, launch.settings)
    if launch.memory:
        settings.set("MEMUSAGE_LIMIT_MB", int(launch.memory * _OWN_LIMIT), "command")
        settings.set("MEMUSAGE_CHECK_INTERVAL_SECONDS", _MEMORY_CHECK, "command")
    settings.setdict({"LOG_ENABLED": False, **launch.settings}, priority="cmdline")
    if not sys.warnoptions:
        # Before Scrapy does it, whose loader of spiders warns earlier: as output, each line would be an error.
        logging.captureWarnings(True)
    streams = [_Lines("stdout", logging.INFO), _Lines("stderr", logging.ERROR)]
    sys.stdout, sys.stderr = streams
    try:
        status = _crawled(settings, launch, streams)
    except Exception:
        # As a log record, each line of the traceback would have a time and a level before it, and be an error itself.
        early.write_out()
        sys.stderr = sys.__stderr__
        raise
    sys.exit(status)


def _crawled(settings: Settings, launch: Launch, streams: Sequence[_Lines]) -> int:
    """Crawl like ``scrapy crawl``, without its discovery of commands; returns the exit status."""
    from scrapy import crawler, signals

    own_loop = settings["TWISTED_REACTOR"] == "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
    process: crawler.AsyncCrawlerProcess | crawler.CrawlerProcess
    if (own_loop and not settings.getbool("FORCE_CRAWLER_PROCESS")) or not settings.getbool("TWISTED_REACTOR_ENABLED"):
        process = crawler.AsyncCrawlerProcess(settings)
    else:
        process = crawler.CrawlerProcess(settings)
    if launch.memory:
        # It logs each check at level INFO: 17,000 lines a day. The samples of the job have its memory. Only now, for
        # the process resets the levels of Scrapy's loggers when it configures the log.
        logging.getLogger("scrapy.extensions.memusage").setLevel(logging.WARNING)
    try:
        made = process.create_crawler(launch.spider)
    except KeyError as error:
        if "Spider not found" not in str(error):
            raise
        print(_no_spider(launch.spider, list(unreadable_modules(settings))), file=sys.__stderr__)
        return NO_SPIDER

    def is_up() -> None:
        _is_up(launch)

    def finish() -> None:
        for stream in streams:
            stream.finish()

    made.signals.connect(is_up, signal=signals.engine_started)
    made.signals.connect(finish, signal=signals.spider_closed)
    process.crawl(made, **launch.arguments)
    process.start()
    return 1 if process.bootstrap_failed else 0


def _no_spider(name: str, unreadable: Sequence[str]) -> str:
    """Return the line about a spider that is not found, which may be in a module that cannot be imported."""
    found = f"There is no spider {name!r} in this project."
    if not unreadable:
        return found
    return f"{found} Modules that cannot be imported, whose spiders are left out: {'; '.join(unreadable)}."


def _add_storage(settings: BaseSettings, given: Mapping[str, Any]) -> None:
    """Enable the add-on, which stores the job, in a project without it; its requests are not routed to the service."""
    addons = {**settings.getdict("ADDONS"), **(given.get("ADDONS") or {})}
    names = {each if isinstance(each, str) else f"{each.__module__}.{each.__qualname__}" for each in addons}
    if not names & {_ADDON, "scrapy_ext.addon.Addon"}:
        settings.set("ADDONS", {**addons, _ADDON: 500}, "project")
        if settings.get("EXTRACT_API_ENABLED") is None:
            settings.set("EXTRACT_API_ENABLED", False, "project")


class _Lines(io.TextIOBase):
    """A stream whose lines are log records."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, level: int) -> None:
        self._logger = logging.getLogger(name)
        self._level = level
        self._rest = ""
        self._lock = threading.Lock()
        self._room: float = _CHARACTERS_AT_ONCE
        self._since = time.monotonic()
        self._left_out = 0
        self._busy = threading.local()

    def write(self, text: str) -> int:
        if getattr(self._busy, "on", False):  # logging writes its own failures here
            return _raw(text)
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            while len(self._rest) > _LONGEST_LINE:
                lines.append(self._rest[:_LONGEST_LINE])
                self._rest = self._rest[_LONGEST_LINE:]
        self._busy.on = True
        try:
            for line in lines:
                if line.strip():
                    self._take(line.rstrip("\r"))
        finally:
            self._busy.on = False
        return len(text)

    def _take(self, line: str) -> None:
        """Log a line, unless there are more than can be sent to the platform: they would fill the memory."""
        now = time.monotonic()
        self._room = min(self._room + (now - self._since) * _CHARACTERS_A_SECOND, _CHARACTERS_AT_ONCE)
        self._since = now
        if self._room < 0:
            self._left_out += 1
            return
        self._room -= len(line) + _OF_A_RECORD
        if self._left_out:
            count, self._left_out = self._left_out, 0
            self._logger.warning(
                "%d lines of this stream were left out: there were too many at once. Write fewer lines, or write "
                "them into a file",
                count,
            )
        self._logger.log(self._level, "%s", line)

    def finish(self) -> None:
        """Log the last line, which has no end of line."""
        if self._rest:
            self.write("\n")

    def fileno(self) -> int:
        return 1 if self._level == logging.INFO else 2

    @property
    def buffer(self) -> Any:
        stream: Any = sys.__stdout__ if self._level == logging.INFO else sys.__stderr__
        return stream.buffer


def _raw(text: str) -> int:
    stream: TextIO | None = sys.__stderr__
    return stream.write(text) if stream is not None else 0


class _Early(logging.Handler):
    """Keeps records that are logged before the log is sent to the platform. If it never is, because the crawl ends
    before, they are written to standard error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._lines: deque[str] = deque(maxlen=_EARLY)

    def emit(self, record: logging.LogRecord) -> None:
        if LOG_IS_STORED.is_set():  # not removed: logging would then skip the next handler for this record
            self._lines.clear()
            return
        try:
            text = self.format(record)
            if len(text) > _LONGEST_LINE:
                left_out = len(text) - _KEPT_OF_LINE
                text = f"{text[:_KEPT_OF_LINE]}… ({left_out} more characters of this line are left out)"
            self._lines.append(text)
        except Exception:
            self.handleError(record)

    def write_out(self) -> None:
        while self._lines and not LOG_IS_STORED.is_set():
            _raw(f"{self._lines.popleft()}\n")


if __name__ == "__main__":
    main()
