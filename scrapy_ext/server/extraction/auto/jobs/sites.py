"""Site of a job: its names, and whether it is that of the employer or a board for the jobs of others."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.auto.page.layout import leads_to_start
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.auto.page.urls import parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_COMPANY_LENGTH: Final = 80
#: Links that may lead to the start page.
MAX_SITE_LINKS: Final = 200
#: Links of a page, and those of menus among them: the first and the last ones.
MAX_LINKS: Final = 2_000
MAX_FIRST: Final = 100
MAX_LAST: Final = 60
#: Longest text of an entry of a menu.
MAX_ENTRY: Final = 40
#: Shortest name of a site beside a word for jobs, in letters.
SHORTEST: Final = 3

_VOCABULARY: Final = load_vocabulary("jobs")
LEGAL_FORM: Final = _VOCABULARY.pattern("legal_form")
COMPANY_BOARDS, OTHER_BOARDS = map(frozenset, map(_VOCABULARY.words, ("company_boards", "other_boards")))
_JOBS: Final = _VOCABULARY.pattern("page", re.IGNORECASE)
SITE_AFFIX, _OWN_SITE = _VOCABULARY.patterns("site_affix", "own_site", flags=re.IGNORECASE)
_AGENCY_NAME, _AGENCY_JOB = _VOCABULARY.patterns("agency_name", "agency_job", flags=re.IGNORECASE)
_FOR_CLIENT: Final = _VOCABULARY.caseless("for_client")
_BOARD_MENU, _EMPLOYERS_MENU, _SEEKERS_MENU, _OTHER_MENU = _VOCABULARY.patterns(
    "board_menu", "employers_menu", "seekers_menu", "other_menu", flags=re.IGNORECASE
)


def names_of_site(page: Page) -> dict[str, str]:
    """Return the names of a site by their letters: those of its links to its start page, and what it calls itself."""
    names = (*names_of_start(page), page.meta("og:site_name") or "")
    return {letters: name for name in names if (letters := letters_of(name))}


def names_of_start(page: Page) -> list[str]:
    """Return the texts and images of links to the start page of a site."""
    links = [link for link in islice(page.tree.iter("a"), MAX_SITE_LINKS) if leads_to_start(page, link)]
    alternatives = [image.get("alt") or "" for link in links for image in link.iter("img")]
    return [*(node_text(link, MAX_COMPANY_LENGTH) for link in links), *alternatives]


def is_own_site(page: Page) -> bool:
    """Return whether a page is one of the jobs of its own site: by its address, ``/careers/``, and its menu."""
    return is_address_of_careers(page.url) and not offers_jobs_of_others(page)


def is_for_client(description: str) -> bool:
    """Return whether a description is that of an agency, whose client has the job: ``Our client is looking for``."""
    return _FOR_CLIENT.search(description) is not None


def is_name_of_agency(name: str) -> bool:
    """Return whether a name is that of an agency by its words: ``Norwood Recruitment``."""
    return _AGENCY_NAME.search(name.strip()) is not None


def is_of_agency(page: Page, title: str) -> bool:
    """Return whether the names of a site are those of an agency, and the job is none with the agency itself."""
    names = (*names_of_site(page).values(), *(page.title or "").split(" | "), *(page.title or "").split(" - "))
    return not _AGENCY_JOB.search(title) and any(map(is_name_of_agency, names))


def is_address_of_careers(url: str) -> bool:
    """Return whether an address is that of the jobs of its own site, and not of a known board."""
    parts = parts_of(url)
    is_own = _OWN_SITE.search(parts.netloc) or _OWN_SITE.search(parts.path)
    return is_own is not None and site_of(url).partition(".")[0] not in COMPANY_BOARDS | OTHER_BOARDS


def offers_jobs_of_others(page: Page) -> bool:
    """Return whether the menu of a site is that of a board: ``For employers``, or ``Employers`` beside ``Find a job``.

    Insurers and banks have a menu for employers as well.
    """
    return _has(page, _BOARD_MENU) or (_has(page, _EMPLOYERS_MENU) and _has(page, _SEEKERS_MENU))


def may_be_of_others(page: Page) -> bool:
    """Return whether the menu of a site may be that of a board, an agency, an association or a newspaper."""
    return any(_has(page, menu) for menu in (_BOARD_MENU, _EMPLOYERS_MENU, _OTHER_MENU))


def _has(page: Page, menu: re.Pattern[str]) -> bool:
    return any(map(menu.fullmatch, entries_of_menus(page)))


def entries_of_menus(page: Page) -> set[str]:
    """Return the short texts of the first and the last links of a page."""
    links = list(islice(page.tree.iter("a"), MAX_LINKS))
    texts = (node_text(link, MAX_ENTRY + 1) for link in (*links[:MAX_FIRST], *links[-MAX_LAST:]))
    return {text for text in texts if 1 < len(text) <= MAX_ENTRY}


def is_board(name: str) -> bool:
    """Return whether the name of a site is that of a job board: a word for jobs at its beginning or end.

    Where the word stands apart, as in "Acme Careers", it may be the site of an employer.
    """
    name = name.strip()[:MAX_COMPANY_LENGTH]
    if SITE_AFFIX.search(name):
        return False
    ends = (part for at in range(1, len(name)) for part in (name[:at].strip(), name[at:].strip()))
    return any(len(part) > SHORTEST - 1 and _JOBS.fullmatch(part) for part in ends)
