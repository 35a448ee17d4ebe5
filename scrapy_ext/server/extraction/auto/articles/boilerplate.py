"""What on the page of an article is not its text, by the names and the words that pages use for it."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

# Names are those of ``class``, ``id`` and ``itemprop`` in lower case. Words that are part of many others count between
# borders only.

_VOCABULARY: Final = load_vocabulary("article_parts")
_START: Final = _VOCABULARY.text("start")
_END: Final = _VOCABULARY.text("end")

#: Parts where readers talk.
TALK = _VOCABULARY.pattern("talk")
#: Parts about other things: menus, suggestions, forms to subscribe, notices.
OTHER_THINGS = _VOCABULARY.pattern("other_things")
#: Parts that tell of the article, or of its pictures, and buttons.
ABOUT_IT = _VOCABULARY.pattern("about_it")
#: Names of the box around the text of an article.
TEXT_BOX = _VOCABULARY.pattern("text_box")


def is_other(names: str) -> bool:
    """Whether the names of an element are those of something else than text, by what it is about or what it is."""
    return bool(OTHER_THINGS.search(names) or ABOUT_IT.search(names))
