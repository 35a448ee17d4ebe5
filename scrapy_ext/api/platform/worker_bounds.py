"""Bounds of the number of workers that run one job, as the field ``job_workers`` has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from scrapy_ext.api.violations import ContractError, Violation

#: Member of a job's metadata, and field of ``run.json``, with the number of its workers.
JOB_WORKERS: Final = "job_workers"
#: Setting by which whoever starts the workers of a job makes each of them join: bounds of their number. Not for users.
GROUP_SETTING: Final = "CRAWL_GROUP"
#: Workers of a job, at most.
MOST_WORKERS: Final = 256
BOUNDS_RULE: Final = (
    f"must be a number of workers from 1 to {MOST_WORKERS}, or two with .. between them, the lower one first"
)
BOUNDS_REMEDY: Final = 'Write "4" or "4..32".'
#: Meaning of the field, for people.
BOUNDS_HELP: Final = "number of workers that run the job together, or its bounds as 4..32"
#: Text of a number, or of its lower and upper bound; what is below the most is checked by :func:`bounds_of`.
BOUNDS_PATTERN: Final = r"^[1-9][0-9]{0,2}(\.\.[1-9][0-9]{0,2})?$"
_BOUNDS: Final = re.compile(r"([1-9][0-9]{0,2})(?:\.\.([1-9][0-9]{0,2}))?", re.ASCII)


class Bounds(msgspec.Struct, frozen=True):
    """The lowest and the highest number of workers of a job."""

    least: int
    most: int

    def clamped(self, number: int) -> int:
        """Return the number within the bounds that is next to a number."""
        return min(max(number, self.least), self.most)

    @property
    def text(self) -> str:
        """The bounds as :func:`bounds_of` reads them."""
        return str(self.least) if self.least == self.most else f"{self.least}..{self.most}"


def bounds_of(text: str, field: str = "workers") -> Bounds:
    """Return the bounds of ``4`` or ``4..32``; raises :class:`ContractError`."""
    found = _BOUNDS.fullmatch(text)
    least = int(found[1]) if found else 0
    most = int(found[2] or least) if found else 0
    if not 1 <= least <= most <= MOST_WORKERS:
        raise ContractError([Violation(field, BOUNDS_RULE, BOUNDS_REMEDY)])
    return Bounds(least, most)


def bounds_faults(field: str, text: object) -> Iterator[Violation]:
    """Yield the violation of a value that has no bounds."""
    try:
        bounds_of(text if isinstance(text, str) else "", field)
    except ContractError as error:
        yield from error.violations
