"""Employer of a job without structured data: labels, links, titles, the line below the heading, the site itself.

The name of a site is that of its employer on the pages for its own jobs alone: on a job board, the heading of each page
has the name of the board above it. So the name of the site counts where its address is one of careers, or where the
description is about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Final
from urllib.parse import unquote

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import JobPosting
from scrapy_ext.server.extraction.auto.jobs.facts import has_word, is_called_place, is_fact, is_of_another, may_be_place
from scrapy_ext.server.extraction.auto.jobs.names import (
    NO_COMPANY,
    TitleParts,
    company_of_copyright,
    company_of_host,
    company_of_site,
    is_department,
    without_additions,
)
from scrapy_ext.server.extraction.auto.jobs.own_site import company_of_own_site
from scrapy_ext.server.extraction.auto.jobs.places import (
    has_words,
    is_part_of_town,
    is_place_by_words,
    is_region,
    is_town,
    parts_of_line,
)
from scrapy_ext.server.extraction.auto.jobs.sites import (
    LEGAL_FORM,
    MAX_COMPANY_LENGTH,
    SITE_AFFIX,
    is_board,
    is_name_of_agency,
    is_of_agency,
    is_own_site,
    names_of_site,
)
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.labelled import LabelWords
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.auto.page.urls import parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NAME_LENGTH: Final = 120
MAX_NODES: Final = 30
MAX_LINKS: Final = 2_000
#: Lines in which the name of an employer is searched.
MAX_LINES: Final = 3_000
MAX_DESCRIPTION: Final = 20_000
#: Longest line of facts below a heading with the employer, and the times that a mere mention of a name counts from.
MAX_FACTS: Final = 120
OFTEN: Final = 2
#: Parts of the path of an address that may name a company.
MAX_STEPS: Final = 6
#: Greatest distance of a link to the company from the heading, in elements.
NEAR: Final = 120
#: Greatest distance of a link to the company that stands with the heading, before the text of the job.
BESIDE: Final = 8
#: Lines below the heading of which one names the employer.
MAX_BELOW: Final = 3
#: Elements of such a line whose names count.
MAX_INSIDE: Final = 5

_VOCABULARY: Final = load_vocabulary("jobs")
_ADDRESS = _VOCABULARY.caseless("company_address")
_NO_COMPANY_LINK, _NO_NAME = _VOCABULARY.patterns("no_company_link", "requirements", flags=re.IGNORECASE)
_ATTRIBUTES: Final = ("data-company-name", "data-employer-name", "data-organization-name")
_BEFORE: Final = _VOCABULARY.text("before_company")
_AT: Final = re.compile(_BEFORE, re.IGNORECASE)
_PLACE_AFTER: Final = _VOCABULARY.pattern("place_after", re.IGNORECASE)
#: A preposition that stands before places as well.
_IN: Final = re.compile(rf"(?:{_VOCABULARY.text('before_place')})\s+")
_DEPARTMENT_NAME: Final = _VOCABULARY.pattern("department_name")
_LISTS: Final = frozenset({"ul", "ol"})
_SUBTITLES: Final = frozenset({"h2", "h3", "h4", "h5"})
_CONTROLS: Final = frozenset({"option", "label", "button", "dt", "th", "a"})
_WORD: Final = re.compile(r"[^\W_]+")
_MAIL: Final = re.compile(r"[\w.+-]{1,60}@([a-z\d.-]{3,80}[a-z])", re.IGNORECASE)


def _ends_with_legal_form(text: str) -> bool:
    """Return whether a text is a name with its legal form, ``Acme Ltd.``, and no sentence with such a name."""
    return any(form.end() >= len(text) - 1 for form in LEGAL_FORM.finditer(text))


class Employer:
    """The places of a page that may name the employer of its job."""

    def __init__(self, page: Page, focus: Focus, labels: LabelWords, titles: TitleParts, description: str) -> None:
        self._page = page
        self._focus = focus
        self._labels = labels
        self._titles = titles
        self._description = description[:MAX_DESCRIPTION]
        #: Texts in which a preposition may stand before a place.
        self._texts = (page.title or "", self._description)

    def rules(self, item: JobPosting) -> list[tuple[str, Callable[[], str | None]]]:
        """Return the rules after those of labels and named parts, the most reliable first."""
        page = self._page
        named: list[tuple[str, Callable[[], str | None]]] = [
            ("link beside the heading", lambda: named_apart(self._linked(BESIDE, named=True), item)),
            ("title, line of the page", lambda: named_apart(self._of_title(), item)),
            ("line below the heading", lambda: named_apart(self.below[0], item) if self.below else None),
            ("link to a company", lambda: named_apart(self._linked(), item)),
            ("attribute data-company-name", self._attribute),
        ]
        if self._is_of_agency:
            # An agency need not write of its client.
            return named
        return [
            *named,
            ("title, description", lambda: self._mentioned(self._titles.likely_companies(), item)),
            ("name of the site", lambda: self._mentioned([company_of_site(page)], item)),
            ("name of the company's own site", lambda: named_apart(self._of_own_site(), item)),
            ("copyright", lambda: self._mentioned([company_of_copyright(page)], item)),
            ("host, description", lambda: named_apart(company_of_host(page, item.description, item.jobTitle), item)),
        ]

    @cached_property
    def _is_of_agency(self) -> bool:
        return is_of_agency(self._page, self._titles.title or "")

    def _of_title(self) -> str | None:
        name = self._titles.company(sure=False)
        return None if name and self._is_of_agency and is_name_of_agency(name) else name

    @cached_property
    def below(self) -> tuple[str, str | None] | None:
        """The employer that a line below the heading names, and the place of the same line."""
        if self._focus.heading is None or is_own_site(self._page):
            return None
        lines = [line for line in self._focus.lines(0, BESIDE) if self._focus.distance(line[0]) > 0]
        for at, (node, text) in enumerate(lines[:MAX_BELOW]):
            parts = parts_of_line(text)
            if len(text) > MAX_NAME_LENGTH or not parts or is_of_another(self._focus, node) or node.tag in _CONTROLS:
                return None
            if all(is_fact(part) or is_place_by_words(part) for part in parts) and not LEGAL_FORM.search(text):
                continue
            below = next((text for node, text in lines[at + 1 :] if node.tag not in _LISTS), "")
            return self._named_by(node, parts, below)
        return None

    def _named_by(self, node: HtmlElement, parts: list[str], below: str) -> tuple[str, str | None] | None:
        """Return the company and the place of a line, where its words or the page say that it is one."""
        before = _AT.match(parts[0])
        first = parts[0][before.end() :].strip() if before else parts[0]
        rest = parts[1:]
        if not before and (preposition := _IN.match(first)) and LEGAL_FORM.search(first):
            first = first[preposition.end() :]
        if before and (found := _PLACE_AFTER.search(first)):
            first, rest = first[: found.start()], [found.group(1), *rest]
        name, comma, place = first.partition(", ")
        if comma and not LEGAL_FORM.search(place) and (before or self._is_known(name)):
            first, rest = name, [place, *rest]
        if not self._may_be_name(first) or (is_part_of_town(first) and not LEGAL_FORM.search(first)):
            return None
        places = [part for part in rest if may_be_place(part)]
        is_of_facts = all(is_fact(part) or part in places for part in rest)
        is_subtitle = node.tag in _SUBTITLES and _is_of_facts(below) and any(map(may_be_place, parts_of_line(below)))
        # A city stands before its country as well.
        last = places[0].rpartition(", ")[2] if places else ""
        is_before_city = bool(places) and not is_place_by_words(last) and not is_region(last)
        is_on_board = is_of_facts and (is_before_city or is_subtitle) and self._is_on_board(node, first)
        if before or (self._is_known(first) and is_of_facts) or is_on_board:
            return first, next(iter(places), None)
        return None

    def of_heading(self, name: str | None) -> str | None:
        """Return the name behind "at" in a heading, where it is no place or way of work: ``Agent at Home``."""
        if not name or is_place_by_words(name):
            return None
        # "Bei" stands before places as well, but says nothing here.
        texts = (re.sub(rf"(?:{_BEFORE}){re.escape(name)}", " ", text) for text in self._texts)
        if is_called_place(name, *texts):
            return None
        if is_part_of_town(name) and not LEGAL_FORM.search(name):
            return None
        return name if len(_WORD.findall(name)) > 1 or self._is_known(name) else None

    def _may_be_name(self, text: str) -> bool:
        letters = letters_of(text)
        return (
            1 < len(text) <= MAX_COMPANY_LENGTH
            and bool(letters)
            and not text[:1].islower()
            and (not text.endswith((".", "!", "?", ":", "…")) or _ends_with_legal_form(text))
            and not is_fact(text)
            and not NO_COMPANY.fullmatch(text)
            and not _NO_NAME.fullmatch(text)
            and not self._labels.any.fullmatch(text.partition(":")[0])
            and letters not in names_of_site(self._page)
        )

    def _is_known(self, name: str) -> bool:
        """Return whether a name is that of a company: by its legal form, the title, or what the page says of it."""
        if LEGAL_FORM.search(name):
            return True
        if letters_of(name) in {letters_of(text) for text in self._titles.likely_companies()}:
            return True
        if self._times_subject(name) >= (1 if len(_WORD.findall(name)) > 1 else OFTEN):
            return True
        sites = self._sites_of_mails
        return letters_of(name) in (sites | self._sites_of_links if len(_WORD.findall(name)) > 1 else sites)

    @cached_property
    def _sites_of_mails(self) -> frozenset[str]:
        """The names of the sites of the mail addresses on the page, without its own."""
        hrefs = (link.get("href") or "" for link in islice(self._page.tree.iter("a"), MAX_LINKS))
        mails = (match[1] for match in _MAIL.finditer(self._description))
        of_mails = (match[1] for href in hrefs if (match := _MAIL.search(href)))
        return self._names_of_sites(f"https://{host}/" for host in (*mails, *of_mails))

    @cached_property
    def _sites_of_links(self) -> frozenset[str]:
        """The names of the sites of the links on the page, without its own; networks have one word."""
        links = (self._page.link(link.get("href")) for link in islice(self._page.tree.iter("a"), MAX_LINKS))
        return self._names_of_sites(filter(None, links))

    def _names_of_sites(self, urls: Iterable[str]) -> frozenset[str]:
        own = site_of(self._page.url)
        return frozenset(letters_of(site.partition(".")[0]) for site in map(site_of, urls) if site != own)

    def _times_subject(self, name: str) -> int:
        """Return how often a sentence is about a name, or a connecting word stands before it."""
        whole = rf"{re.escape(name)}(?!\w)"
        subject = re.compile(rf"(?m:^|[.!?:] +){whole}(?: +|['’])[^\W\d_]|(?<!\w)(?i:{_BEFORE}){whole}")
        about = re.compile(rf"\w+ {whole}")
        headings = (text for node, text in self._page.lines[:MAX_LINES] if node.tag in _SUBTITLES)
        return len(subject.findall(self._description)) + sum(map(bool, map(about.fullmatch, headings)))

    def _is_on_board(self, node: HtmlElement, name: str) -> bool:
        """Return whether a name of several words is one of a company because the site is a board with another name.

        Departments and towns stand in such lines, too.
        """
        is_name = len(_WORD.findall(name)) > 1 and not is_called_place(name, *self._texts)
        if not is_name or is_town(name) or is_part_of_town(name) or self._is_department(node, name):
            return False
        return any(map(is_board, names_of_site(self._page).values()))

    def _is_department(self, node: HtmlElement, name: str) -> bool:
        """Return whether a name is that of a department: by its words, its element, or in small letters in the text."""
        parts = islice(node.iter("*"), MAX_INSIDE)
        is_named = any(_DEPARTMENT_NAME.search(self._page.names(part)) for part in parts)
        return is_named or is_department(name) or has_word(self._description, name.lower())

    def _mentioned(self, names: Sequence[str | None], item: JobPosting) -> str | None:
        """Return the name that the description or the address has: a company writes of itself, a board of others."""
        description = (item.description or "").casefold()
        steps = [letters_of(step) for step in parts_of(self._page.url).path.split("/")[:MAX_STEPS]]
        for name in names:
            if not name or not named_apart(name, item) or (is_board(name) and not is_own_site(self._page)):
                continue
            if is_department(name) and not LEGAL_FORM.search(name) and not self._times_subject(name):
                continue
            bare = SITE_AFFIX.sub("", name)
            if bare != name and letters_of(bare) in steps:
                return bare
            named = any(len(step) > 3 and letters_of(name).startswith(step) for step in steps)
            if named or (name.casefold() in description and self._is_described(name)):
                return name
        return None

    def _is_described(self, name: str) -> bool:
        """Return whether a name is more than mentioned, where it is that of the site: boards end with one of theirs."""
        if letters_of(name) not in names_of_site(self._page) or is_own_site(self._page):
            return True
        return self._times_subject(name) > 0 or self._description.count(name) >= OFTEN

    def _of_own_site(self) -> str | None:
        return company_of_own_site(self._page, self._titles, self._description)

    def _attribute(self) -> str | None:
        if self._page.with_attribute.keys().isdisjoint(_ATTRIBUTES):
            return None
        values = self._page.tree.xpath(" | ".join(f"//@{name}" for name in _ATTRIBUTES))
        return next((text for value in values[:MAX_NODES] if 1 < len(text := one_line(value)) <= MAX_NAME_LENGTH), None)

    def _linked(self, near: int = NEAR, *, named: bool = False) -> str | None:
        """Return the text of the link to the page of a company that is nearest to the heading.

        Where it must be ``named``, its URL has the name as well, as links such as "12 open positions" have not.
        """
        return min(self._links(near, named=named), default=(0, None))[1]

    def _links(self, near: int, *, named: bool) -> Iterator[tuple[int, str]]:
        for link in islice(self._page.tree.iter("a"), MAX_LINKS):
            distance = abs(self._focus.distance(link))
            match = _ADDRESS.search((link.get("href") or "")[:300]) if distance <= near else None
            if match is not None:
                text = node_text(link, MAX_NAME_LENGTH + 1)
                is_name = 1 < len(text) <= MAX_NAME_LENGTH and not any(
                    no_name.fullmatch(text) for no_name in (NO_COMPANY, _NO_COMPANY_LINK)
                )
                if is_name and (not named or _is_in_address(text, match[0])) and not self._focus.elsewhere(link):
                    yield distance, text


def named_apart(name: str | None, item: JobPosting) -> str | None:
    """Return a name where it is not that of the place or of the job."""
    place = item.jobLocation.raw or "" if item.jobLocation else ""
    title = item.jobTitle or ""
    titles = {letters_of(title), letters_of(without_additions(title))} - {""}
    taken = name is None or has_words(place, name) or letters_of(without_additions(name)) in titles
    return None if taken else name


def _is_of_facts(text: str) -> bool:
    """Return whether a line has facts of a job, rather than the text of a section; that may be a list of duties."""
    parts = parts_of_line(text)
    is_sure = any(is_fact(part) or is_place_by_words(part) for part in parts)
    return is_sure and len(text) <= MAX_FACTS and all(is_fact(part) or may_be_place(part) for part in parts)


def _is_in_address(name: str, address: str) -> bool:
    """Return whether the last step of an address begins with a name, or is the beginning of it: ``/company/acme``."""
    step, letters = letters_of(unquote(address.rpartition("/")[2])), letters_of(name)
    return bool(step and letters) and (step.startswith(letters) or letters.startswith(step))
