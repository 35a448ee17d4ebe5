"""The jobs that a page offers."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.jobs.job_terms import is_of_jobs
from scrapy_ext.server.extraction.auto.lists.listing import Listed, Shape, listed, things_of
from scrapy_ext.server.extraction.auto.page.page import Page

TYPES: Final = ("JobPosting",)
#: A group of entries that scores less is no list of jobs.
ENOUGH: Final = 4.5

_ADDRESS = re.compile(
    r"/(?:[\w-]*[-_])?(?:jobs?|careers?|vacanc(?:y|ies)|positions?|openings?|stellen\w*|karriere|emplois?"
    r"|offres?|empleos?|ofertas?|vagas?"
    r"|lavoro|praca|vacatures?|ledige|rabota|vakans\w+|recruit\w*|postings?)(?:[-_/?.]|$)|greenhouse\.io"
    r"|lever\.co|workable\.com"
    r"|/(?:job|position|vacancy)[-_]?id|[?&](?:jk|job_?id|gh_jid)=|smartrecruiters|myworkdayjobs|ashbyhq",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"(?:^|[\s_-])(?:jobs?|vacanc(?:y|ies)|positions?|openings?|postings?|careers?|stellen\w*|emploi|vacature"
    r"|vaga)(?:$|[\s_-])|job(?:card|list|title|item|result)"
)
_WORDS = re.compile(
    r"\b(?:full[- ]?time|part[- ]?time|remote|hybrid|on-?site|contract(?:or)?|permanent|internship|salary"
    r"|hiring|per (?:hour|year|annum)"
    r"|vollzeit|teilzeit|homeoffice|unbefristet|\(?m/w/d\)?|cdi|cdd|stage|temps plein|télétravail|jornada"
    r"|tiempo completo|teletrabajo"
    r"|tempo (?:pieno|integral)|voltijd|deeltijd|uur per week|pełny etat|umowa|heltid|deltid|engineer"
    r"|developer|manager|assistant|nurse)\b"
    r"|正社員|契約社員|アルバイト|全职|兼职|정규직|вакансия|полная занятость",
    re.IGNORECASE,
)


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
