"""Workers of a crawl on one machine (``CRAWL_WORKERS``): their number, and the template that forks them.

The template (:mod:`scrapy_ext.jobprocess.template`) is begun by the add-on, as the embedded server is, and imports what
a crawl needs meanwhile. When the job exists, the session sends it the settings of the other workers. It is a process of
the same group, so that an interrupt of the terminal reaches all workers.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir

from scrapy_ext import settings as names
from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.worker_bounds import MOST_WORKERS
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import log_level
from scrapy_ext.crawl.session import forked, group
from scrapy_ext.crawl.session.arguments import command_words
from scrapy_ext.crawl.session.embedded import ServerAddress
from scrapy_ext.crawl.session.group_locks import GroupLocks
from scrapy_ext.crawl.session.job import JobFile
from scrapy_ext.crawl.session.project import data_directory
from scrapy_ext.jobprocess.messages import Fork, Prepare, TerminalLog
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

AUTO: Final = "auto"
_TEMPLATE: Final = "scrapy_ext.jobprocess.template"
#: Options of these commands that name a file of the first worker alone.
_OWN_FILES: Final = ("--pidfile", "--profile")
#: Attribute of a crawler that holds its template until the session takes it.
_ATTRIBUTE: Final = "_scrapy_ext_template"


def number_of_workers(settings: BaseSettings) -> int:
    """Return the number of workers of this machine; raises :class:`SettingError`."""
    text: str = names.CRAWL_WORKERS.read(settings).strip()
    slots: int = names.FRONTIER_SLOTS.read(settings)
    # A number that is not set follows from that of the workers.
    most = min(MOST_WORKERS, slots) if settings.getpriority("FRONTIER_SLOTS") else MOST_WORKERS
    number = min(_processors(), most) if text == AUTO else int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= number <= MOST_WORKERS:
        rule = f"must be a number of workers from 1 to {MOST_WORKERS}, or auto, got {text!r}"
        raise SettingError("CRAWL_WORKERS", rule, "Write 4 for four workers.")
    if number > most:
        rule = f"is {number}, but the frontier has {slots} slots, each of which is in one worker (FRONTIER_SLOTS)"
        raise SettingError(
            "CRAWL_WORKERS", rule, "Start fewer, or a new job with FRONTIER_SLOTS of four times as many."
        )
    if number > 1 and not hasattr(os, "fork"):
        rule = f"must be 1 on this system, which cannot fork a process, got {text!r}"
        raise SettingError("CRAWL_WORKERS", rule, "Remove it; on Windows, crawl in WSL or a container.")
    return number


def _processors() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


# ── the template ──


class Template:
    """The template of a crawl's workers. Without a call of :meth:`fork` it ends with this process."""

    def __init__(self, words: Sequence[str]) -> None:
        """Start it; raises ``OSError``."""
        self._process = subprocess.Popen([sys.executable, "-m", _TEMPLATE], stdin=subprocess.PIPE)  # noqa: S603  # our own interpreter and module
        self._send(Prepare(list(words), sys.path))

    def fork(self, workers: Sequence[Mapping[str, Any]], log: TerminalLog | None) -> None:
        """Fork workers with these settings; raises ``OSError`` if the template has ended."""
        self._send(Fork([dict(worker) for worker in workers], log))

    @property
    def has_ended(self) -> bool:
        """True once it has ended, as it does with the last worker that it has forked."""
        return self._process.poll() is not None

    def _send(self, message: msgspec.Struct) -> None:
        into = self._process.stdin
        if into is not None:
            into.write(msgspec.json.encode(message) + b"\n")
            into.flush()


def begin_workers(crawler: Crawler) -> None:
    """Begin a crawl with several workers, or that of a job which had several. The session reports wrong settings.

    Nothing is begun for a worker that a node or somebody else has started for a group.
    """
    settings = crawler.settings
    if group.group_of(settings) is not None:
        return
    try:
        number = number_of_workers(settings)
        if forked.is_forked(settings) or (number == 1 and not _had_several(settings)):
            return
    except SettingError:
        return
    if number == 1 or _begin_template(crawler):
        # No other worker lives, which a lock proves before this one joins.
        settings.set(group.SETTING, f"{group.RESUME}{number}", "cmdline")


def _had_several(settings: BaseSettings) -> bool:
    """Return true if several workers have begun the job that is resumed, on this machine."""
    given: str | None = names.PLATFORM_JOB.read(settings)
    directory = job_dir(settings)
    if given is None and directory:
        given = JobFile(directory).read()
    if given is None:
        return False
    try:
        return GroupLocks(data_directory(settings), JobKey.parse(given)).exist()
    except ContractError:
        return False


def _begin_template(crawler: Crawler) -> bool:
    """Begin the template, unless this process cannot have one."""
    words = _command_line()
    if words is None:
        logger.warning("CRAWL_WORKERS is ignored: it is for the commands scrapy crawl and scrapy runspider")
        return False
    try:
        template = Template(words)
    except OSError as error:
        logger.error(
            "The workers of CRAWL_WORKERS cannot be started: %s. One worker crawls: stop it, and correct that", error
        )
        return False
    setattr(crawler, _ATTRIBUTE, template)
    return True


def take_template(crawler: Crawler) -> Template | None:
    """Return the template that was begun for a crawler, once."""
    template: Template | None = vars(crawler).pop(_ATTRIBUTE, None)
    return template


def _command_line() -> list[str] | None:
    """Return the words after ``scrapy`` that workers repeat; None if this is not a process of Scrapy's command."""
    words = command_words()
    return None if words is None else _without_own_files(words)


def _without_own_files(words: Sequence[str]) -> list[str]:
    """Leave out options that name a file which each worker would overwrite."""
    kept: list[str] = []
    given = iter(words)
    for word in given:
        if word in _OWN_FILES:
            next(given, None)
        elif not word.startswith(tuple(f"{option}=" for option in _OWN_FILES)):
            kept.append(word)
    return kept


def settings_of(place: int, settings: BaseSettings, job: JobKey, server: ServerAddress | None) -> dict[str, Any]:
    """Return what a worker has other than the first one, whose settings and job these are. ``place``: from 1."""
    given = {
        forked.SETTING: msgspec.to_builtins(server) if server is not None else {},
        group.SETTING: (group.group_of(settings) or "").removeprefix(group.RESUME),
        "PLATFORM_JOB": str(job),
    }
    if directory := job_dir(settings):
        # Extensions of Scrapy and the ledger of answers have files there which one process writes.
        given["JOBDIR"] = os.path.join(directory, f"worker-{place}")
    return given


def terminal_log(settings: BaseSettings) -> TerminalLog | None:
    """Return the log of other workers, as this one has it; None: it has none."""
    file: str | None = settings.get("LOG_FILE")
    if not (file or settings.getbool("LOG_ENABLED")):
        return None
    level = settings.get("LOG_LEVEL")
    return TerminalLog(
        file=file,
        level=level if isinstance(level, int) else log_level(level),
        format=settings.get("LOG_FORMAT"),
        date_format=settings.get("LOG_DATEFORMAT"),
        encoding=settings.get("LOG_ENCODING"),
    )


def append_to_log_files() -> None:
    """Let each line go to the end of its file, where other workers write as well; without LOG_FILE_APPEND it would
    overwrite theirs."""
    import fcntl  # not on every platform

    for handler in logging.root.handlers:
        if isinstance(handler, logging.FileHandler) and handler.stream is not None:
            descriptor = handler.stream.fileno()
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
            fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
