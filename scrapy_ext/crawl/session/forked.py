"""Settings that a template gives to the workers that it forks (:mod:`scrapy_ext.crawl.session.workers`)."""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec
from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.session.embedded import ServerAddress
from scrapy_ext.crawl.session.group import RESUME, SETTING, group_of

#: The :class:`ServerAddress` of the embedded server that the first worker runs; empty: it runs none.
_SERVER: Final = "_SCRAPY_EXT_FORKED"


def settings_of(place: int, settings: BaseSettings, job: JobKey, server: ServerAddress | None) -> dict[str, Any]:
    """Return what a worker has other than the first one, whose settings and job these are. ``place``: from 1."""
    given = {
        _SERVER: msgspec.to_builtins(server) if server is not None else {},
        SETTING: (group_of(settings) or "").removeprefix(RESUME),
        "PLATFORM_JOB": str(job),
    }
    if directory := job_dir(settings):
        # Extensions of Scrapy and the ledger of answers have files there which one process writes.
        given["JOBDIR"] = os.path.join(directory, f"worker-{place}")
    return given


def is_forked(settings: BaseSettings) -> bool:
    """Return true in a worker that a template has forked."""
    return settings.get(_SERVER) is not None


def server_of(settings: BaseSettings) -> ServerAddress | None:
    """Return the address of the embedded server that a forked worker uses; None in any other process."""
    given = settings.getdict(_SERVER)
    return msgspec.convert(given, ServerAddress) if given else None
