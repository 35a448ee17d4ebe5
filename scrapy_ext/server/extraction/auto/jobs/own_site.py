"""Employer whose own site a page is of, by the names that the site has and by what its menu offers.

A site names itself the same way whether it is that of an employer or a job board. So its name is the employer where two
of its statements agree, and where the address or the menu says that the site is of one company: an address of careers,
a host of its own at a job board, or a job beside products, rooms or the menu of a restaurant. A menu for employers,
recruiters or candidates, or that of a newspaper, is one of a site for the jobs of others; so is the site of an agency,
which writes of its client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.jobs.names import NO_COMPANY, TitleParts, company_of_copyright
from scrapy_ext.server.extraction.auto.jobs.places import is_place_by_words
from scrapy_ext.server.extraction.auto.jobs.sites import (
    COMPANY_BOARDS,
    LEGAL_FORM,
    MAX_COMPANY_LENGTH,
    OTHER_BOARDS,
    SITE_AFFIX,
    entries_of_menus,
    is_board,
    is_for_client,
    is_own_site,
    may_be_of_others,
    names_of_start,
)
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.auto.page.urls import parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Images that may be the logo.
MAX_IMAGES: Final = 30
MAX_FIRST_IMAGES: Final = 3
MAX_ENTITIES: Final = 20
#: Mail addresses in the text of a job.
MAX_MAILS: Final = 20
_MAIL: Final = re.compile(r"[\w.+-]{1,60}@([a-z\d.-]{3,80}[a-z])", re.IGNORECASE)
_OF_US: Final = load_vocabulary("jobs").pattern("of_us")
_ONE_CLIENT: Final = load_vocabulary("jobs").pattern("one_client", re.IGNORECASE)
#: The number of parts of its site that the menu of a company has at least.
ENOUGH: Final = 2
#: Statements that agree about the name of a site.
AGREEING: Final = 2
#: Shortest name, in letters, and longest text with one, in characters.
SHORTEST: Final = 3
MAX_NAME: Final = 200

_VOCABULARY: Final = load_vocabulary("jobs")
_JOB_ADDRESS, _OWN_GOODS, _OWN_PARTS, _LOGO_WORD = _VOCABULARY.patterns(
    "job_address", "own_goods", "own_parts", "logo_word", flags=re.IGNORECASE
)
#: Types of businesses with guests or customers, which have no jobs of others.
_BUSINESSES: Final = (
    "Restaurant", "CafeOrCoffeeShop", "BarOrPub", "Bakery", "FoodEstablishment", "Hotel", "LodgingBusiness", "Store",
    "Hospital", "MedicalClinic", "MedicalBusiness", "Dentist", "Pharmacy", "AutoDealer", "AutoRepair", "School",
    "HomeAndConstructionBusiness", "HealthAndBeautyBusiness", "SportsActivityLocation",
)  # fmt: skip
_ORGANIZATIONS: Final = ("Organization", "Corporation", "LocalBusiness", "WebSite", *_BUSINESSES)
_OF_OTHERS: Final = ("EmploymentAgency", "NewsMediaOrganization")


class Stated(NamedTuple):
    """A name of a site, and where the page has it."""

    source: str
    name: str


def company_of_own_site(page: Page, titles: TitleParts, description: str) -> str | None:
    """Return the company whose own site has the page, as the site names itself."""
    if is_for_client(description):
        return None
    board = site_of(page.url).partition(".")[0]
    if board in COMPANY_BOARDS or board in OTHER_BOARDS:
        return _company_on_board(page, titles, board)
    is_own = is_own_site(page)
    if not (is_own or _JOB_ADDRESS.search(parts_of(page.url).path)) or page.markup.all(*_OF_OTHERS):
        return None
    if not is_own and may_be_of_others(page):
        return None
    stated = list(_stated(page, titles))
    if is_own:
        return _agreed(stated) or _of_markup(stated)
    # "Norwood Recruitment" and "Norwood Jobs" are agencies and boards.
    is_of_jobs = any(is_board(name) or SITE_AFFIX.search(name) for _, name in _raw_names(page, titles))
    is_own_job = _is_of_business(page) or _takes_applications(
        page, description, [name for _, name in _raw_names(page, titles)]
    )
    return _agreed(stated) if not is_of_jobs and is_own_job else None


def _company_on_board(page: Page, titles: TitleParts, board: str) -> str | None:
    """Return the company with pages of its own at a board: its host or the first step of the path has its name."""
    parts = parts_of(page.url)
    of_host = parts.netloc.removesuffix(site_of(page.url)).partition(".")[0]
    label = letters_of(of_host if board in COMPANY_BOARDS else parts.path.strip("/").partition("/")[0])
    stated = [each for each in _stated(page, titles) if letters_of(each.name) != board]
    keys = ((each.name, _key(each.name)) for each in stated)
    found = next((name for name, key in keys if len(label) > SHORTEST and label.startswith(key)), None)
    return found or (_agreed(stated) if board in COMPANY_BOARDS else None)


def _key(name: str) -> str:
    return letters_of(LEGAL_FORM.sub("", name))


def _raw_names(page: Page, titles: TitleParts) -> Iterator[Stated]:
    for name in (page.meta("og:site_name"), page.meta("application-name")):
        if name:
            yield Stated("meta", name)
    for thing in page.markup.things(*_ORGANIZATIONS)[:MAX_ENTITIES]:
        url = page.link(thing.text("url"))
        if url is None or site_of(url) == site_of(page.url):
            yield Stated("website" if "WebSite" in thing.types else "markup", thing.text("name") or "")
    yield from (Stated("title", text) for text in titles.beside_job())
    yield from (Stated("logo", name) for name in (*names_of_start(page), *_names_of_logos(page)))
    yield Stated("copyright", company_of_copyright(page) or "")


def _stated(page: Page, titles: TitleParts) -> Iterator[Stated]:
    """Yield the names of a site without the words around them, most of which are no company's elsewhere either."""
    for source, raw in _raw_names(page, titles):
        name = one_line(SITE_AFFIX.sub("", _LOGO_WORD.sub("", one_line(raw)[:MAX_NAME]))).strip(" |-–—·")
        fits = len(_key(name)) >= SHORTEST and len(name) <= MAX_COMPANY_LENGTH
        if fits and not (NO_COMPANY.fullmatch(name) or is_board(name) or is_place_by_words(name)):
            yield Stated(source, name)


def _names_of_logos(page: Page) -> Iterator[str]:
    """Yield the texts of the images that are named logos, and of the first ones."""
    for at, image in enumerate(islice(page.tree.iter("img"), MAX_IMAGES)):
        alternative = one_line(image.get("alt"))
        if at < MAX_FIRST_IMAGES or _LOGO_WORD.search(alternative):
            yield alternative


def _agreed(stated: list[Stated]) -> str | None:
    """Return the first name that statements of different kinds have, whatever its legal form."""
    sources: dict[str, set[str]] = {}
    for source, name in stated:
        sources.setdefault(_key(name), set()).add(source)
    return next((name for _, name in stated if len(sources[_key(name)]) >= AGREEING), None)


def _of_markup(stated: list[Stated]) -> str | None:
    """Return the name of the only organization that the structured data of the site has."""
    names = {_key(name): name for source, name in stated if source == "markup"}
    return next(iter(names.values())) if len(names) == 1 else None


def _takes_applications(page: Page, description: str, names: Sequence[str]) -> bool:
    """Return whether the text of a job has a mail address of the site, whose menu is that of a company.

    Boards leave the applications to the employer, and those that take them write of other companies and clients.
    """
    if not _OF_US.search(description) or _ONE_CLIENT.search(description):
        return False
    if any(not _is_own(names, description[: form.start()]) for form in LEGAL_FORM.finditer(description)):
        return False
    site = site_of(page.url)
    mails = (f"https://{match[1]}/" for match in islice(_MAIL.finditer(description), MAX_MAILS))
    is_company = len(set(filter(_OWN_PARTS.fullmatch, entries_of_menus(page)))) >= ENOUGH
    return is_company and any(site_of(mail) == site for mail in mails)


def _is_own(names: Sequence[str], before: str) -> bool:
    """Return whether the text before a legal form ends with a name of the site."""
    return any(letters_of(before).endswith(letters_of(name)) for name in names if letters_of(name))


def _is_of_business(page: Page) -> bool:
    if page.markup.things(*_BUSINESSES):
        return True
    entries = entries_of_menus(page)
    goods, parts = (set(filter(pattern.fullmatch, entries)) for pattern in (_OWN_GOODS, _OWN_PARTS))
    return bool(goods) and len(goods | parts) >= ENOUGH
