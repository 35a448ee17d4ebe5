"""The words that tell what a part of a page is for: in its names, in the heading over it, in the page's address."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("page_parts")
# What authors call the parts of their pages, in groups. A part is known by the beginning of a word in a class or id.
NAME_GROUPS: Final = _VOCABULARY.table("name_groups")
# What headings say over what is rarely or only sometimes content.
HEADING_GROUPS: Final = _VOCABULARY.table("heading_groups")
URL_GROUPS: Final = _VOCABULARY.table("url_groups")
URL_SAYS: Final = {name: re.compile(words) for name, words in URL_GROUPS.items()}
NAME_BITS: Final = {name: 1 << place for place, name in enumerate(NAME_GROUPS)}
HEADING_BITS: Final = {name: 1 << place for place, name in enumerate(HEADING_GROUPS)}
#: What is read of names and of headings, in characters.
MAX_LENGTH: Final = 300


def _grouped(groups: dict[str, str], before: str, after: str) -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(f'(?P<{name}>{words})' for name, words in groups.items())}){after}")


_NAMED: Final = _grouped(NAME_GROUPS, r"(?<![a-z])", "")
_SAYS: Final = _grouped(HEADING_GROUPS, r"(?<!\w)", r"(?!\w)")


def name_bits(names: str) -> int:
    """The groups that these names (in lower case) belong to, a bit each."""
    return _bits(_NAMED, NAME_BITS, names)


def heading_bits(text: str) -> int:
    """The groups that the words of a heading belong to, a bit each."""
    return _bits(_SAYS, HEADING_BITS, text.casefold())


def _bits(pattern: re.Pattern[str], bits: dict[str, int], text: str) -> int:
    found = 0
    for match in pattern.finditer(text[:MAX_LENGTH]):
        found |= bits[match.lastgroup or ""]
    return found
