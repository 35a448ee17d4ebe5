"""What is known to differ from plain Scrapy, and why: ``deviations.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Deviation:
    """One entry. ``spiders`` empty: any of them. ``fields`` are patterns of whole names of compared fields; ``docs`` is
    the page that tells it, and ``says`` the words there."""

    reason: str
    fields: tuple[str, ...]
    wirings: tuple[str, ...]
    docs: str
    says: str
    spiders: tuple[str, ...] = ()

    def explains(self, spider: str, wiring: str, field: str) -> bool:
        of_spider = not self.spiders or spider in self.spiders
        return of_spider and wiring in self.wirings and any(re.fullmatch(each, field) for each in self.fields)


@cache
def deviations() -> tuple[Deviation, ...]:
    entries = tomllib.loads(Path(__file__).with_name("deviations.toml").read_text("utf-8"))["deviation"]
    return tuple(
        Deviation(**{name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()})
        for entry in entries
    )


def unexplained(spider: str, wiring: str, fields: Iterable[str]) -> list[str]:
    """Fields that no entry explains."""
    return [field for field in fields if not any(entry.explains(spider, wiring, field) for entry in deviations())]


def out_of_date(spider: str, wiring: str, fields: Iterable[str]) -> list[str]:
    """Reasons of entries that name this spider and wiring, and no field of which differs."""
    found = list(fields)
    return [
        f"{entry.reason}: {pattern}"
        for entry in deviations()
        if spider in entry.spiders and wiring in entry.wirings
        for pattern in entry.fields
        if not any(re.fullmatch(pattern, field) for field in found)
    ]
