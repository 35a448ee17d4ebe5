"""Messages between a node and the process of a job: the launch, and an exit status; and those of the first worker of a
crawl to the template of the others."""

from __future__ import annotations

import logging
from threading import Event
from typing import Any, Final

import msgspec

#: Exit status of a job whose spider is not in its project.
NO_SPIDER: Final = 65


#: Set once the log of this process is stored on the platform, and not written to standard error.
LOG_IS_STORED: Final = Event()


class Launch(msgspec.Struct, kw_only=True):
    """The work of a job: ``spider`` with ``arguments``, or the file ``script`` with ``words`` as its command line."""

    spider: str = ""
    arguments: dict[str, str] = {}
    #: Settings that override those of the project and the spider.
    settings: dict[str, Any] = {}
    script: str = ""
    words: list[str] = []
    #: Memory limit of the job in MiB; 0: none.
    memory: int = 0
    #: Increment of the niceness.
    nice: int = 0
    #: A file descriptor to close once the crawl is running.
    up: int = -1


class Prepare(msgspec.Struct, frozen=True):
    """First line to a template: ``words`` of Scrapy's command line, and the path of imports."""

    words: list[str]
    path: list[str]


class TerminalLog(msgspec.Struct, frozen=True):
    """Log of warnings and errors of workers other than the first one: to ``file``, or to standard error."""

    file: str | None
    level: int
    format: str
    date_format: str
    encoding: str


class Fork(msgspec.Struct, frozen=True):
    """Second line to a template: for each worker, the settings that override all others. ``log`` None: no log."""

    workers: list[dict[str, Any]]
    log: TerminalLog | None


class WorkerFormatter(logging.Formatter):
    """Formatter whose lines begin with the number of a worker, once it has one."""

    prefix = ""

    def format(self, record: logging.LogRecord) -> str:
        return self.prefix + super().format(record)


def show_number(worker: int) -> None:
    """Begin the lines of this process in the terminal with the number of the worker, if a template has forked it."""
    for handler in logging.root.handlers:
        if isinstance(handler.formatter, WorkerFormatter):
            handler.formatter.prefix = f"[{worker}] "
