"""Share of cases that were not right at their first try.

``python -m tests.outside.rates --write`` writes the tables of docs/architecture/outside.rst; without it, prints them.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from tests.outside.cases import Case, First, Form, cases_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture" / "outside.rst"
#: Line of the page below which the tables stand.
MARK = ".. The tables below are written by ``python -m tests.outside.rates --write``.\n"
RESULTS: tuple[First, ...] = get_args(First)
_TITLES = {
    "tuned": "Collected first, with the repairs made for them",
    "fresh": "Collected after the repairs, and tried once before anything was changed for them",
}
_FORMS: dict[Form, str] = {
    "pages": "pages",
    "crawls": "spiders and settings",
    "calls": "calls of clients",
    "operation": "steps of operation",
}


def tables() -> str:
    """Both sets as tables of the documentation."""
    return "\n".join(_table(title, which) for which, title in _TITLES.items())


def _table(title: str, which: str) -> str:
    rows = [["form and kind", "cases", *RESULTS]]
    everything: Counter[str] = Counter()
    for form, name in _FORMS.items():
        cases = [case for case in cases_of(form) if case.set == which]
        total = Counter(case.first for case in cases)
        everything.update(total)
        rows.append([f"**{name}**", *_counts(total)])
        rows += ([kind, *_counts(counts)] for kind, counts in _by_kind(cases))
    rows.append(["**all**", *_counts(everything)])
    return "\n".join([f".. table:: {title}", "", *_lines(rows), ""])


def _by_kind(cases: Iterable[Case]) -> list[tuple[str, Counter[str]]]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        counts[case.kind][case.first] += 1
    return sorted(counts.items(), key=lambda row: (-sum(row[1].values()), row[0]))


def _counts(counts: Counter[str]) -> list[str]:
    return [str(sum(counts.values())), *(str(counts[result]) for result in RESULTS)]


def _lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return the lines of a table; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "   " + "  ".join("=" * width for width in widths)
    lines = ["   " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    yield from (rule, lines[0], rule, *lines[1:], rule)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        above = PAGE.read_text("utf-8").partition(MARK)[0]
        PAGE.write_text(f"{above}{MARK}\n{tables()}", "utf-8")
    else:
        print(tables())
