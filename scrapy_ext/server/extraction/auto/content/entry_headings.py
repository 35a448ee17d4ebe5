"""Headings of the entries of a list whose texts are content: posts of an archive, results of a search.

A model of blocks leaves them out on short pages, as it does the headings of what an article links to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scrapy_ext.server.extraction.auto.content.blocks import Box, TextBlock
from scrapy_ext.server.extraction.auto.page.text import HEADINGS

#: Fewest entries of a list, and the share of them with a text that is content and a heading that is none.
FEWEST: Final = 3
MOST: Final = 0.8
#: Words of a text that is more than a label, and of a heading.
LONG: Final = 8
MAX_WORDS: Final = 30
_ENTRIES: Final = frozenset({"article", "li", "div", "section"})
_HEADLINES: Final = frozenset({"h2", "h3"})


def entry_headings(blocks: Sequence[TextBlock], taken: Sequence[bool]) -> list[bool]:
    """Return for each block whether it is such a heading: the first of an entry none of whose headings is taken."""
    found = [False] * len(blocks)
    headings: dict[Box, int | None] = {}
    with_text: set[Box] = set()
    known: set[Box] = set()
    for at, block in enumerate(blocks):
        is_heading, is_text = block.box.tag in HEADINGS, taken[at] and block.words >= LONG
        for box in block.box.chain() if is_heading or is_text else ():
            if box.tag not in _ENTRIES:
                continue
            if is_heading:
                if headings.get(box) is None:
                    headings[box] = at if _is_headline(block) else None
                if taken[at]:
                    known.add(box)
            elif box in headings:
                with_text.add(box)
    entries: dict[tuple[Box | None, str], list[Box]] = {}
    for box in headings:
        entries.setdefault((box.parent, box.tag), []).append(box)
    for siblings in entries.values():
        places = [headings[box] for box in siblings if box in with_text and box not in known]
        left_out = [at for at in places if at is not None]
        if len(left_out) >= max(FEWEST, MOST * len(siblings)):
            for at in left_out:
                found[at] = True
    return found


def _is_headline(block: TextBlock) -> bool:
    """Return whether a heading is a link, as that of a post is; that of a section is none."""
    return block.box.tag in _HEADLINES and block.words <= MAX_WORDS and block.link_words == block.words
