"""Spider arguments of a crawl, as of ``scrapy crawl -a`` or a script: a job that is resumed with others than before is
reported.

The row of a run in the job's metadata has a mark of each argument instead of its value, which may be a password. A mark
has 16 bits: enough to notice another value, and too few to find the value by trying words.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec
from scrapy.crawler import Crawler

from scrapy_ext.api.platform.jobs import GROUP_ARGUMENTS, JOB_VARIABLE, RUNS
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.compatibility.scrapy import arguments_of_crawl
from scrapy_ext.crawl.session.job import CrawlJob

logger = logging.getLogger(__name__)

#: Commands of Scrapy that run one spider in this process.
_COMMANDS: Final = ("crawl", "runspider")
#: Member of the row of a run.
ARGUMENTS: Final = "arguments"
_MARK_BYTES: Final = 2
#: Arguments with a mark, and those that the warning names.
_MOST: Final = 100
_NAMED: Final = 5


def command_words() -> list[str] | None:
    """Return the words after ``scrapy`` with which this process was started; None if that is not Scrapy's command."""
    scrapys = getattr(sys.modules.get("scrapy.cmdline"), "execute", None)
    if scrapys is None or getattr(sys.modules["__main__"], "execute", None) is not scrapys:
        return None
    # Scrapy has removed the name of the command from the other list.
    words = sys.orig_argv[-len(sys.argv) :]
    command = next((word for word in words if not word.startswith("-")), "")
    return words if command in _COMMANDS else None


def given_arguments(words: Sequence[str]) -> dict[str, str]:
    """Return the arguments (``-a name=value``) among the words of a command."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-a", action="append", default=[], dest=ARGUMENTS)
    pairs = (text.partition("=") for text in parser.parse_known_args(words)[0].arguments)
    return {name: value for name, _, value in pairs}


def marks_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return a mark of each argument by its name. A script may pass an object, which has none."""
    texts = ((name, _text_of(value)) for name, value in sorted(arguments.items())[:_MOST])
    return {
        name: blake2b(f"{name}={text}".encode("utf-8", "replace"), digest_size=_MARK_BYTES).hexdigest()
        for name, text in texts
        if text is not None
    }


def _text_of(value: object) -> str | None:
    """Return a value as ``-a`` has it, or else its JSON; None for one that may be written in another way each time."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, order="deterministic").decode()
    except (TypeError, ValueError, RecursionError):
        return None


def marks_of_crawl(crawler: Crawler) -> dict[str, str] | None:
    """Return the marks of the arguments of a crawl, while its components are created; None if they are not known, or
    kept by the platform that has started it."""
    words = command_words()
    if words is not None:
        return marks_of(given_arguments(words))
    given = None if os.environ.get(JOB_VARIABLE) else arguments_of_crawl(crawler)
    return None if given is None else marks_of(given)


async def note_arguments(client: PlatformClient, job: CrawlJob, own: Mapping[str, str] | None) -> None:
    """Report other arguments of a group of workers, whose rows the platform writes, and keep the marks of these beside
    the rows. Raises :class:`PlatformError`."""
    rows = job.former.get(RUNS)
    report_other_arguments(job, rows if isinstance(rows, list) else [], own)
    if own is not None:
        row = {"start_time": int(time.time() * 1000), ARGUMENTS: own}
        await client.jobs.update(job.key, {GROUP_ARGUMENTS: row})


def report_other_arguments(job: CrawlJob, rows: Sequence[object], own: Mapping[str, str] | None) -> None:
    """Log that a job is resumed with other arguments than its last run with marks. ``rows``: those of its runs."""
    known = _last_marks([*rows, job.former.get(GROUP_ARGUMENTS)])
    if known is None or own is None:
        return
    changed = list(_differences(known, own))
    if changed:
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        logger.warning(
            "Job %s is resumed with other spider arguments than its last run: %s%s. Requests made from these arguments "
            "are new to the job, so it downloads and stores their pages also if it has them under other URLs. To "
            "continue the crawl, repeat the arguments of that run (-a, or those of crawl() in a script); for a crawl "
            "with these, start a new job, without PLATFORM_JOB and with another JOBDIR",
            *(job.key, ", ".join(changed[:_NAMED]), more),
        )


def _last_marks(rows: Sequence[object]) -> Mapping[str, Any] | None:
    """Return the marks of the row that began last among those that have some."""
    marked = [row for row in rows if isinstance(row, dict) and isinstance(row.get(ARGUMENTS), dict)]
    # Of equal times, as of rows without one, the last counts.
    last = max(enumerate(marked), key=lambda each: (_began(each[1]), each[0]), default=None)
    return None if last is None else last[1][ARGUMENTS]


def _began(row: Mapping[str, Any]) -> int:
    began = row.get("start_time")
    return began if isinstance(began, int) else 0


def _differences(former: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(former.keys() | own.keys()):
        if name not in own:
            yield f"{name} is missing"
        elif name not in former:
            yield f"{name} is new"
        elif former[name] != own[name]:
            yield f"{name} has another value"
