"""Messages between a node and the process of a job: the launch, and an exit status."""

from __future__ import annotations

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
