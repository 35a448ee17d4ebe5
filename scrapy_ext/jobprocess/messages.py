"""What a node tells the process of a job, and what that can tell it by its exit status."""

from __future__ import annotations

from threading import Event
from typing import Any, Final

import msgspec

#: Exit status of a job whose spider is not in its project.
NO_SPIDER: Final = 65


#: Set once the log of this process is stored on the platform, so that standard error does not need it.
LOG_IS_STORED: Final = Event()


class Launch(msgspec.Struct, kw_only=True):
    """What a job runs: ``spider`` with ``arguments``, or the file ``script`` with ``words`` as its command line.

    ``settings`` go over those of the project and the spider. ``memory`` is what the job may have, in MiB; ``nice`` how
    much it stands back for others; ``up`` a file descriptor to close once the crawl is under way.
    """

    spider: str = ""
    arguments: dict[str, str] = {}
    settings: dict[str, Any] = {}
    script: str = ""
    words: list[str] = []
    memory: int = 0
    nice: int = 0
    up: int = -1
