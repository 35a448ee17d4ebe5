"""Spider arguments of ``scrapy crawl`` and ``runspider``: a job that is resumed with others than before is reported.

The row of a run in the job's metadata has a mark of each argument instead of its value, which may be a password. A mark
has 16 bits: enough to notice another value, and too few to find the value by trying words.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

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


def marks_of(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return a mark of each argument by its name."""
    return {
        name: blake2b(f"{name}={value}".encode("utf-8", "replace"), digest_size=_MARK_BYTES).hexdigest()
        for name, value in sorted(arguments.items())[:_MOST]
    }


def marks_of_command() -> dict[str, str] | None:
    """Return the marks of this process's arguments; None if it was not started by Scrapy's command."""
    words = command_words()
    return None if words is None else marks_of(given_arguments(words))


def report_other_arguments(job: CrawlJob, rows: Sequence[Mapping[str, Any]], own: Mapping[str, str] | None) -> None:
    """Log that a job is resumed with other arguments than its last run with marks. ``rows``: those of its runs."""
    known = next((row[ARGUMENTS] for row in reversed(rows) if isinstance(row.get(ARGUMENTS), dict)), None)
    if known is None or own is None:
        return
    changed = list(_differences(known, own))
    if changed:
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        logger.warning(
            "Job %s is resumed with other spider arguments than its last run: %s%s. Requests made from these arguments "
            "are new to the job, so it downloads and stores their pages also if it has them under other URLs. To "
            "continue the crawl, repeat the arguments of that run (-a); for a crawl with these, start a new job, "
            "without PLATFORM_JOB and with another JOBDIR",
            *(job.key, ", ".join(changed[:_NAMED]), more),
        )


def _differences(former: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(former.keys() | own.keys()):
        if name not in own:
            yield f"{name} is missing"
        elif name not in former:
            yield f"{name} is new"
        elif former[name] != own[name]:
            yield f"{name} has another value"
