"""The jobs that a page offers."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.jobs.job_terms import is_of_jobs
from scrapy_ext.server.extraction.auto.lists.listing import Listed, Shape, listed, things_of
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

TYPES: Final = ("JobPosting",)
#: A group of entries that scores less is no list of jobs.
ENOUGH: Final = 4.5

_VOCABULARY: Final = load_vocabulary("jobs")
_ADDRESS = _VOCABULARY.pattern("list_address", re.IGNORECASE)
_NAMES = _VOCABULARY.pattern("list_names")
_WORDS = _VOCABULARY.pattern("list_words", re.IGNORECASE)


def jobs_on(page: Page) -> Listed:
    """The list of jobs of a page; empty when it has none."""
    of_page = is_of_jobs(page)

    def score(shape: Shape) -> float:
        leads, named, worded = (
            shape.leads_to(_ADDRESS),
            shape.matches(_NAMES),
            shape.part(lambda card: _WORDS.search(card.block.text)),
        )
        signs = sum(part >= 0.5 for part in (leads, named, worded, float(of_page)))
        if shape.marked < 0.5 and signs < 2:
            return 0.0
        return 2.0 * leads + 1.5 * named + 2.0 * worded + 1.0 * of_page + 3.0 * shape.marked + shape.size

    return listed(page, score, things_of(page, *TYPES), ENOUGH)
