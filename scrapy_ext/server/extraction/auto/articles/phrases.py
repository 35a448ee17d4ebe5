"""Lines that pages set into the text of articles and that are not of it, in the languages that most pages are in.

All are looked for in lower case, without the signs at their end.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longer lines are prose, whatever they begin with.
MAX_LENGTH: Final = 160
#: What lines end with that says nothing.
SIGNS: Final = " :.!…»›→?"


_VOCABULARY: Final = load_vocabulary("article_lines")
#: Lines that say nothing of the subject, wherever they stand.
NOTHING = _VOCABULARY.pattern("nothing")

#: Beginnings of short lines that ask for something, or say whose the pictures and the text are.
ASIDE = _VOCABULARY.pattern("aside")

#: Short lines with which a page turns to other things. What they head goes with them.
TURN = _VOCABULARY.pattern("turn")

#: Short lines after which readers talk.
TALK = _VOCABULARY.pattern("talk")
