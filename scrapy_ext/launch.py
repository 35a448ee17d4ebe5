"""``python -m scrapy_ext.launch``: the process of one job, as a node starts it.

On standard input comes one line, a :class:`Launch` as JSON; then the input stays open for as long as the node lives.
When it ends, the process group is killed: nothing of a job outlives its node, whose jobs others go on with.

What the spider prints goes to its log, and so to the platform. The real standard output and error are for what happens
before there is a log, and after it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import runpy
import signal
import sys
import threading
from collections.abc import Mapping
from logging.handlers import MemoryHandler
from typing import Any, Final, TextIO

import msgspec

from scrapy_ext.api.launch import NO_SPIDER, Launch

#: Log records kept for the time before the log is sent to the platform.
_EARLY: Final = 1000
_PR_SET_PDEATHSIG: Final = 1
_ADDON: Final = "scrapy_ext.Addon"


def main() -> None:
    """Run what standard input names; ends the process."""
    source = os.dup(0)
    os.set_inheritable(source, False)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)  # what the job starts must not hold the node's end of the pipe
    line = _line(source)
    launch = msgspec.json.decode(line, type=Launch)
    _end_with(launch.parent, source)
    if launch.script:
        sys.argv = [launch.script, *launch.words]
        runpy.run_path(launch.script, run_name="__main__")
    else:
        _crawl(launch)


def _line(source: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(source, 65536)
        if not piece:
            sys.exit("The node ended before it said what to run.")
        line += piece
    return line


def _end_with(parent: int, source: int) -> None:
    """Die with the node, at once: its jobs are given to others, who must not meet this one."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(source, 4096):
                pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="node", daemon=True).start()


def _crawl(launch: Launch) -> None:
    from scrapy.cmdline import execute
    from scrapy.utils.project import get_project_settings

    _keep_early_records()
    settings = get_project_settings()
    _add_storage(settings, launch.settings)
    settings.setdict({"LOG_ENABLED": False, **launch.settings}, priority="cmdline")
    words = [word for name, value in launch.arguments.items() for word in ("-a", f"{name}={value}")]
    sys.stdout, sys.stderr = _Lines("stdout", logging.INFO), _Lines("stderr", logging.ERROR)
    try:
        execute(["scrapy", "crawl", launch.spider, *words], settings=settings)
    except KeyError as error:
        if "Spider not found" not in str(error):
            raise
        print(f"There is no spider {launch.spider!r} in this project.", file=sys.__stderr__)
        os._exit(NO_SPIDER)


def _add_storage(settings: Any, given: Mapping[str, Any]) -> None:
    """What stores the job, for a project that does not have the add-on: its pages still come the way they did."""
    addons = {**settings.getdict("ADDONS"), **(given.get("ADDONS") or {})}
    names = {each if isinstance(each, str) else f"{each.__module__}.{each.__qualname__}" for each in addons}
    if not names & {_ADDON, "scrapy_ext.addon.Addon"}:
        settings.set("ADDONS", {**addons, _ADDON: 500}, "project")
        if settings.get("EXTRACT_API_ENABLED") is None:
            settings.set("EXTRACT_API_ENABLED", False, "project")


class _Lines:
    """A stream whose lines are records of the log."""

    def __init__(self, name: str, level: int) -> None:
        self._logger = logging.getLogger(name)
        self._level = level
        self._rest = ""
        self._busy = threading.local()
        self.encoding = "utf-8"
        self.errors = "replace"

    def write(self, text: str) -> int:
        if getattr(self._busy, "on", False):  # the log itself writes here when it fails
            return _raw(text)
        *lines, self._rest = (self._rest + text).split("\n")
        self._busy.on = True
        try:
            for line in lines:
                if line.strip():
                    self._logger.log(self._level, "%s", line.rstrip("\r"))
        finally:
            self._busy.on = False
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        return

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 1 if self._level == logging.INFO else 2

    @property
    def buffer(self) -> Any:
        stream: Any = sys.__stdout__ if self._level == logging.INFO else sys.__stderr__
        return stream.buffer


def _raw(text: str) -> int:
    stream: TextIO | None = sys.__stderr__
    return stream.write(text) if stream is not None else 0


def _keep_early_records() -> None:
    """If the log never gets to the platform, because the crawl ends before it begins, it goes to standard error."""
    from scrapy_ext.extensions import LogUploader

    stream = logging.StreamHandler(sys.__stderr__)
    stream.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    early = MemoryHandler(_EARLY, flushLevel=logging.CRITICAL + 1, target=stream, flushOnClose=False)
    early.setLevel(logging.INFO)
    logging.getLogger().addHandler(early)

    def tell() -> None:
        if LogUploader.is_open:
            early.buffer.clear()
        early.flush()

    atexit.register(tell)


if __name__ == "__main__":
    main()
