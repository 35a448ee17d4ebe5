"""Names that the documentation describes, compared with those of a crawl's log."""

from __future__ import annotations

import functools
import re

from tests.support.docs_tables import DOCS

#: Prefixes of the package's own names in the log of a crawl: a line of the dumped stats, and the close reason.
_STAT = re.compile(r"^[ {]'((?:extract_api|platform|frontier|dupefilter/collection)/[^']+)': ", re.MULTILINE)
_REASON = re.compile(r"Spider closed \(((?:extract_api|platform|frontier|embedded_server|bad_setting)\w*)\)")
#: The page that describes the names of a kind, and the title of the section, if it is one of several.
_PLACES = {
    "setting": ("reference/settings.rst", ""),
    "stat": ("reference/stats.rst", ""),
    "reqmeta": ("reference/meta.rst", "Meta keys"),
    "reason": ("reference/errors.rst", "Close reasons"),
}
_NEXT_SECTION = re.compile(r"^.+\n=+$", re.MULTILINE)
_NAME = re.compile(r"^``([^`]+)``\n   \S", re.MULTILINE)


@functools.cache
def described(kind: str) -> frozenset[str]:
    """Return the names of a kind that the documentation describes: the terms of its definition lists."""
    page, title = _PLACES[kind]
    text = (DOCS / page).read_text("utf-8")
    if title:
        text = _NEXT_SECTION.split(text.split(f"\n{title}\n{'=' * len(title)}\n", 1)[1], maxsplit=1)[0]
    return frozenset(_NAME.findall(text))


def undocumented(log: str) -> list[str]:
    """Return the package's stats and close reasons in the log of a crawl that no page describes."""
    stats = [name for name in _STAT.findall(log) if not re.fullmatch(_documented_stats(), name)]
    return [*stats, *(reason for reason in _REASON.findall(log) if reason not in described("reason"))]


@functools.cache
def _documented_stats() -> str:
    """Return a regular expression for all documented stats; ``<type>`` in a name stands for any text."""
    return "|".join(re.sub(r"<\w+>", ".+", re.escape(name)) for name in described("stat"))
