"""Stats, close reasons and meta keys that the documentation describes, compared with those of a crawl's log."""

from __future__ import annotations

import functools
import re

from tests.support.docs_tables import DOCS

#: Prefixes of the package's own names in the log of a crawl: a line of the dumped stats, and the close reason.
_STAT = re.compile(r"^[ {]'((?:extract_api|platform|frontier|dupefilter/collection)/[^']+)': ", re.MULTILINE)
_REASON = re.compile(r"Spider closed \(((?:extract_api|platform|frontier|embedded_server|bad_setting)\w*)\)")


@functools.cache
def described(kind: str) -> frozenset[str]:
    """Return the names that the pages describe with a directive: ``stat``, ``reason`` or ``reqmeta``."""
    pages = (path.read_text("utf-8") for path in DOCS.rglob("*.rst"))
    return frozenset(name for page in pages for name in re.findall(rf"^\.\. {kind}:: (.+)$", page, re.MULTILINE))


def undocumented(log: str) -> list[str]:
    """Return the package's stats and close reasons in the log of a crawl that no page describes."""
    stats = [name for name in _STAT.findall(log) if not re.fullmatch(_documented_stats(), name)]
    return [*stats, *(reason for reason in _REASON.findall(log) if reason not in described("reason"))]


@functools.cache
def _documented_stats() -> str:
    """Return a regular expression for all documented stats; ``<type>`` in a name stands for any text."""
    return "|".join(re.sub(r"<\w+>", ".+", re.escape(name)) for name in described("stat"))
