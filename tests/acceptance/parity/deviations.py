"""Known differences from plain Scrapy with their reasons: ``deviations.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scrapy_ext.compatibility.toml import tomllib


@dataclass(frozen=True)
class Deviation:
    """One entry. ``fields`` are patterns of whole names of compared fields; ``docs`` is its page, and ``says``
    are words there. With ``sometimes`` it need not show."""

    reason: str
    spiders: tuple[str, ...]
    wirings: tuple[str, ...]
    fields: tuple[str, ...]
    docs: str
    says: str
    sometimes: bool = False

    def concerns(self, spider: str, wiring: str) -> bool:
        return spider in self.spiders and wiring in self.wirings

    def explains(self, field: str) -> bool:
        return any(re.fullmatch(each, field) for each in self.fields)


@cache
def deviations() -> tuple[Deviation, ...]:
    entries = tomllib.loads(Path(__file__).with_name("deviations.toml").read_text("utf-8"))["deviation"]
    return tuple(
        Deviation(**{name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()})
        for entry in entries
    )


def unexplained(spider: str, wiring: str, fields: Iterable[str]) -> list[str]:
    """Fields that no entry explains."""
    entries = [entry for entry in deviations() if entry.concerns(spider, wiring)]
    return [field for field in fields if not any(entry.explains(field) for entry in entries)]


def out_of_date(spider: str, wiring: str, fields: Iterable[str]) -> list[str]:
    """Patterns of entries for this spider and wiring that no field matches which differs, with the reason."""
    found = list(fields)
    return [
        f"{entry.reason}: {pattern}"
        for entry in deviations()
        if entry.concerns(spider, wiring) and not entry.sometimes
        for pattern in entry.fields
        if not any(re.fullmatch(pattern, field) for field in found)
    ]
