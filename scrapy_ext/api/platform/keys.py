"""Identifiers: ``<project>/<spider>/<job>`` and ``<project>/<spider>/<job>/<entity>``."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from scrapy_ext.api.violations import refused

#: The largest number in a key: stores use signed 64-bit columns.
MAX_NUMBER: Final = 2**63 - 1
_DIGITS: Final = len(str(MAX_NUMBER))
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


#: Steps of a path. Clients remove them from addresses, so nothing can be named after them.
STEPS: Final = (".", "..")


def is_number(text: str) -> bool:
    """Return true for a possible number of a project, a spider, a job or a record."""
    if not (text.isascii() and text.isdigit()):
        return False
    return len(text) < _DIGITS or (len(text) == _DIGITS and int(text) <= MAX_NUMBER)


def number_of(text: str, field: str, remedy: str = "Correct the number.") -> int:
    """Read such a number; raises :class:`ContractError` naming ``field``."""
    if is_number(text):
        return int(text)
    raise refused(field, f"must be a whole number, {MAX_NUMBER} at most, got {text[:60]!r}", remedy)


class JobKey(NamedTuple):
    """A job ID; ``str()`` gives ``123/4/56``."""

    project: int
    spider: int
    job: int

    def __str__(self) -> str:
        return f"{self.project}/{self.spider}/{self.job}"

    @classmethod
    def parse(cls, text: str, field: str = "job") -> JobKey:
        """Read ``project/spider/job``; raises :class:`ContractError` naming ``field``."""
        return cls(*_numbers(text, field, ("project", "spider", "job")))

    def entity(self, number: int) -> EntityKey:
        """Return the key of the job's record with this index."""
        return EntityKey(*self, number)


class EntityKey(NamedTuple):
    """The key of an item, a request record or a log record: a job ID and an index in that job."""

    project: int
    spider: int
    job: int
    number: int

    def __str__(self) -> str:
        return f"{self.project}/{self.spider}/{self.job}/{self.number}"

    @classmethod
    def parse(cls, text: str, field: str = "key") -> EntityKey:
        """Read ``project/spider/job/number``; raises :class:`ContractError` naming ``field``."""
        return cls(*_numbers(text, field, ("project", "spider", "job", "number")))

    @property
    def job_key(self) -> JobKey:
        """The job that the record belongs to."""
        return JobKey(self.project, self.spider, self.job)


def _numbers(text: str, field: str, parts: tuple[str, ...]) -> list[int]:
    pieces = text.split("/")
    if len(pieces) != len(parts) or not all(_NUMBER.fullmatch(piece) for piece in pieces):
        raise refused(field, f"must be {'/'.join(f'<{p}>' for p in parts)}, got {text[:60]!r}", "Use whole numbers.")
    numbers = [int(piece) for piece in pieces]
    if max(numbers) > MAX_NUMBER:
        raise refused(field, f"has a number over {MAX_NUMBER}", f"Write a number of {MAX_NUMBER} at most.")
    return numbers


# ── the hosts of the platform, which a server of this package has as one (platform-api.md, Hos ──


class Host(str, Enum):
    APP = "app"
    STORAGE = "storage"
    JOBQ = "jobq"
