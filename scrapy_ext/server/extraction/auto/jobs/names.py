"""Title and company of a job, as the heading of its page and the title of the document name them.

The title of the document has the name of the job, mostly that of the company, and often that of the board: ``Cook at
The Blue Door - Boats``. The heading is the line of the page that this title contains, headings before other lines. What
is left of the title without it is the company, where a connecting word says so or the page has it as a line of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.jobs.places import is_part_of_town, is_place_by_words, is_town
from scrapy_ext.server.extraction.auto.jobs.sites import (
    COMPANY_BOARDS,
    LEGAL_FORM,
    MAX_COMPANY_LENGTH,
    SITE_AFFIX,
    is_address_of_careers,
    is_own_site,
    names_of_site,
)
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.line_breaks import whole_lines
from scrapy_ext.server.extraction.auto.page.sources import highest
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, letters_of
from scrapy_ext.server.extraction.auto.page.urls import host_of, parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_TITLE_LENGTH: Final = 300
MAX_HEADING_LENGTH: Final = 200
#: Lines and headings that are compared with the title of the document.
MAX_LINES: Final = 3_000
#: Shortest heading, in letters, and the least share of the letters of the title that it has.
SHORTEST: Final = 3
LEAST: Final = 0.15
#: Elements whose lines between line breaks are read, and most elements in one.
_BROKEN: Final = frozenset({"dd", "div", "li", "p", "section", "span", "td"})
MAX_BROKEN: Final = 40
#: Elements inside of a paragraph that is a heading: icons.
MAX_INSIDE: Final = 8

_VOCABULARY: Final = load_vocabulary("jobs")
_TITLE_LABEL: Final = _VOCABULARY.pattern("title_label", re.IGNORECASE)
_TITLE_NAMES: Final = _VOCABULARY.words("title_names")
_TITLE_NAME, _NO_HEADING = _VOCABULARY.patterns("title_name", "no_heading")
_HIRING, _AT, _PLACE = _VOCABULARY.patterns("hiring_before", "company_after", "place_after", flags=re.IGNORECASE)
_DEPARTMENT: Final = re.compile(
    rf"(?:.*\W)?(?:{_VOCABULARY.text('department')})|(?:{_VOCABULARY.text('department_first')})(?:\W.*)?", re.IGNORECASE
)
#: Behind a sign, the name of a house: "Serveur | Chez Lucette".
_HOUSE: Final = re.compile(r"\s*[|–—•·-]\s+Chez\b")
NO_COMPANY: Final = _VOCABULARY.pattern("no_company", re.IGNORECASE)
#: Elements that look like headings, in pages without any: ``pc-h2``.
_LIKE_HEADING: Final = re.compile(r"(?:^|[\s_-])h[12](?:$|\s)")
_COPYRIGHT: Final = re.compile(r"©|\(c\)|\bcopyright\b", re.IGNORECASE)
_COPYRIGHT_WORDS: Final = _VOCABULARY.pattern("copyright_words", re.IGNORECASE)
#: The least number of times that a description has the name of the company of the host, and what is read of it.
OFTEN: Final = 2
MAX_DESCRIPTION: Final = 20_000
#: The copyright is searched in so many lines at the end of a page.
MAX_LAST_LINES: Final = 60
_SEPARATOR: Final = re.compile(r"\s+[|–—•·»/-]+\s+|\s*:\s+|\s+::\s+|\s*[|•»]\s*")
_WORD: Final = re.compile(r"[^\W_]+")
#: Texts in brackets, single letters with signs between them, and the share of full time.
_ADDITION: Final = re.compile(
    r"\([^()]*\)|\[[^\[\]]*\]|(?<![\w/])[^\W\d_](?:\s?[/|*]\s?[^\W\d_]){1,3}(?![\w/])|(?:\d{1,3}\s?[-–]\s?)?\d{1,3}\s?%"
)
_EDGE: Final = " \t|–—•·»:,-/"
_HEADINGS: Final = {"h1": 3.0, "h2": 2.0, "h3": 1.6}
_NAMED, _LINE = 1.6, 1.0
_NO_LINES: Final = frozenset({"a", "button", "option", "label", "input", "li"})


class JobFocus(Focus):
    """The heading of a job and the distance from it; ``stated`` is the title in structured data."""

    def __init__(self, page: Page, stated: str | None) -> None:
        self._titles = titles_of(page)
        super().__init__(page, stated, *self._titles)

    def lines(self, before: int, after: int) -> list[tuple[HtmlElement, str]]:
        """Return the lines around the heading, those between line breaks as well; without one, the first of the page.

        Boards write the facts of a job in one paragraph: ``Leeds<br>Full-time<br>Closes 3 May``.
        """
        found = super().lines(before, after)
        found = found if self.heading is not None else found[:MAX_LINES]
        at = self._page.order[self.heading] if self.heading is not None else 0
        nodes = self._page.elements[max(0, at - before) : at + after + 1]
        # Below the next heading are benefits, other jobs and addresses, and so are behind a label for all of the lines.
        end = next((n for n, node in enumerate(nodes) if node.tag in HEADINGS and self._page.order[node] > at), None)
        broken = {
            node: lines
            for node in nodes[:end]
            if node.tag in _BROKEN and (lines := whole_lines(node, MAX_BROKEN)) and not lines[0].endswith((":", "："))
        }
        if not broken:
            return found
        whole = {node: [text] for node, text in found} | broken
        return [
            (node, text)
            for node in sorted(whole, key=self._page.order.__getitem__)
            for text in whole[node]
            if len(text) <= MAX_HEADING_LENGTH
        ]

    def _find_heading(self) -> HtmlElement | None:
        heading = _heading_in(self._page, self._titles)
        heading = _labelled_title(self._page) if heading is None else heading
        return super()._find_heading() if heading is None else heading


def titles_of(page: Page) -> list[str]:
    """Return the titles of the document, that for other sites first."""
    given = (page.meta("og:title", "twitter:title"), page.title)
    return list(dict.fromkeys(one_line(title)[:MAX_TITLE_LENGTH] for title in given if title))


def _heading_in(page: Page, titles: list[str]) -> HtmlElement | None:
    """Return the heading or line that a title contains from one word to another: the most of it, by the best tag."""
    return highest(_scored_headings(page, titles)) if any(map(letters_of, titles)) else None


def _scored_headings(page: Page, titles: list[str]) -> Iterator[tuple[float, HtmlElement]]:
    wholes = [(letters_of(title), f" {' '.join(_words(title))} ") for title in titles]
    for node, weight, in_link in _candidates(page):
        text = node_text(node, MAX_HEADING_LENGTH + 1)
        lengths = _lengths_with(text, wholes)
        if not lengths and weight > _LINE:
            text = without_additions(text)
            lengths = _lengths_with(text, wholes) if text else []
        # Most lines are in no title.
        if not lengths or len(text) > MAX_HEADING_LENGTH or (not in_link and _is_in_link(node)):
            continue
        letters = letters_of(text)
        if len(letters) < SHORTEST or _is_site(page, letters) or NO_COMPANY.fullmatch(text):
            continue
        share = len(letters) / min(lengths)
        if share > (LEAST if weight <= _LINE else 0.0):
            yield weight + 2 * share, node


def _lengths_with(text: str, wholes: list[tuple[str, str]]) -> list[int]:
    """Return the lengths of the titles that contain the words of a text."""
    words = f" {' '.join(_words(text))} "
    return [len(whole) for whole, inside in wholes if whole and words in inside]


def _candidates(page: Page) -> Iterator[tuple[HtmlElement, float, bool]]:
    """Yield headings and lines with their weights, and whether they count in a link as well."""
    for node in islice(page.tree.iter(*_HEADINGS), MAX_LINES):
        yield node, _HEADINGS[node.tag] if not _NO_HEADING.search(page.names(node)) else _LINE, True
    for node in page.named(*_TITLE_NAMES)[:MAX_LINES]:
        if node.tag not in _HEADINGS and len(node) <= 2 and _TITLE_NAME.search(page.names(node)):
            yield node, _NAMED, True
    for node in islice(page.tree.iter("p"), MAX_LINES):
        if next(islice(node.iter("*"), MAX_INSIDE, None), None) is None:
            yield node, _LINE, False
    for node, _ in page.lines[:MAX_LINES]:
        if node.tag not in _NO_LINES and node.tag not in _HEADINGS and node.tag != "p":
            yield node, _LINE, False


def _is_in_link(node: HtmlElement) -> bool:
    return any(box.tag in {"a", "nav", "footer"} for box in islice(node.iterancestors(), 3))


def _labelled_title(page: Page) -> HtmlElement | None:
    """Return the value of a label for the title (``Job title``), else the first part named so."""
    for pair in page.labelled.of(_TITLE_LABEL):
        if pair.listed and 2 < len(pair.value) <= MAX_HEADING_LENGTH:
            return pair.node
    for names, name in ((_TITLE_NAMES, _TITLE_NAME), (("h1", "h2"), _LIKE_HEADING)):
        for node in page.named(*names)[:MAX_LINES]:
            text = node_text(node, MAX_HEADING_LENGTH + 1)
            if name.search(page.names(node)) and 2 < len(text) <= MAX_HEADING_LENGTH and not NO_COMPANY.fullmatch(text):
                return node
    return None


def without_additions(title: str) -> str:
    """Return the title of a job without texts in brackets and letters for people: ``Cook m/f/d (80%)``."""
    return one_line(_ADDITION.sub(" ", title))


def is_department(name: str) -> bool:
    """Return whether a name is that of a department by its words: ``Kitchen Operations``."""
    return _DEPARTMENT.fullmatch(name) is not None


def _may_be_other(name: str) -> bool:
    """Return whether a name may be that of a place or a department."""
    if LEGAL_FORM.search(name):
        return False
    return len(_WORD.findall(name)) == 1 or is_department(name) or is_town(name) or is_place_by_words(name)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _is_site(page: Page, letters: str) -> bool:
    """Return whether letters are the name of the site of a page."""
    site = site_of(page.url)
    names = (site.partition(".")[0], site, page.meta("og:site_name") or "")
    return bool(letters) and letters in map(letters_of, names)


class Remainder(NamedTuple):
    """A part of the title beside the name of the job; ``sure`` where a connecting word says that it is the company."""

    text: str
    sure: bool


class TitleParts:
    """The parts of the titles of a page beside the name of the job: the company, the place."""

    def __init__(self, page: Page, title: str | None) -> None:
        self._page = page
        self.title = title

    def company(self, *, sure: bool) -> str | None:
        """Return the company that a title names with a connecting word, or else that the page has as a line."""
        if sure:
            return next((rest.text for rest in self._rests if rest.sure), None)
        return next(
            (text for text in self._sifted(rest.text for rest in self._rests) if self._is_employer(letters_of(text))),
            None,
        )

    def _sifted(self, texts: Iterable[str]) -> list[str]:
        """Return parts of a title without the place and the department of the job, where it has the own site too."""
        return [text for text in texts if not self._names_own_site or not _may_be_other(text)]

    @cached_property
    def _names_own_site(self) -> bool:
        own = names_of_site(self._page) if is_own_site(self._page) else {}
        parts = {letters_of(part) for title in titles_of(self._page) for part in _parts(title)}
        return not parts.isdisjoint(own)

    def _is_employer(self, letters: str) -> bool:
        """Return whether the page has a name as a line; that of the site counts on the site's own page of careers."""
        return letters in self._lines and (letters not in names_of_site(self._page) or is_own_site(self._page))

    def likely_companies(self) -> list[str]:
        """Return the parts of a title beside the name of the job that are not that of the site."""
        texts = [rest.text for rest in self._rests]
        if not self._around:
            texts = [part for title in titles_of(self._page) for part in _parts(title) if self._is_company(part)]
            job = f" {' '.join(_words(self.title or ''))} "
            texts = [text for text in texts if f" {' '.join(_words(text))} " not in job]
        return [text for text in self._sifted(texts) if not _is_site(self._page, letters_of(text))]

    def beside_job(self) -> list[str]:
        """Return the parts of the titles beside the name of the job, that of the site among them."""
        return [part for texts in self._around for text in texts for part in _parts(text)]

    def place(self) -> str | None:
        """Return the place of work that a title has: ``hiring Cook in Leeds, UK``."""
        for _, after in self._around:
            match = _PLACE.match(after)
            if match:
                return _first_part(match.group(1)) or None
        return None

    @cached_property
    def _lines(self) -> frozenset[str]:
        return frozenset(
            letters_of(text) for _, text in self._page.lines[:MAX_LINES] if len(text) <= MAX_COMPANY_LENGTH
        )

    @cached_property
    def _around(self) -> list[tuple[str, str]]:
        """Texts before and after the name of the job in each title."""
        if not self.title:
            return []
        names = [
            re.compile(r"\W*".join(map(re.escape, words)), re.IGNORECASE)
            for name in dict.fromkeys((self.title, without_additions(self.title)))
            if (words := _WORD.findall(name)[:40])
        ]
        found = []
        for title in titles_of(self._page):
            match = next((match for name in names if (match := name.search(title))), None)
            if match:
                found.append((title[: match.start()], title[match.end() :].lstrip(")]*")))
        return found

    @cached_property
    def _rests(self) -> list[Remainder]:
        rests = []
        for before, after in self._around:
            if match := _HIRING.search(before):
                rests.append(Remainder(match.group(1).strip(_EDGE), sure=True))
            elif (match := _AT.match(after)) and not _HOUSE.match(after):
                rests.append(Remainder(self._without_site(match.group(1)), sure=True))
            else:
                parts = [*_parts(before), *self._without_place(after)]
                # The name of the board comes last.
                if len(parts) > 1 and (_is_site(self._page, letters_of(parts[-1])) or len(parts) == len(_parts(after))):
                    parts = [part for part in parts if not _is_site(self._page, letters_of(part))]
                rests += [Remainder(part, sure=False) for part in parts]
        return [rest for rest in rests if self._is_company(rest.text)]

    def _without_place(self, text: str) -> list[str]:
        """Return the parts of a title without a place; a name that is a line of the page may have such a word."""
        parts = _parts(text)
        if any(_PLACE.search(part) and letters_of(part) in self._lines for part in parts):
            return parts
        return _parts(_PLACE.sub("", text, count=1))

    def _without_site(self, text: str) -> str:
        """Return the name of a company without that of the board after it."""
        for match in _SEPARATOR.finditer(text) if letters_of(text) not in self._lines else ():
            before, after = letters_of(text[: match.start()]), letters_of(text[match.end() :])
            if after and (_is_site(self._page, after) or before in self._lines):
                return text[: match.start()].strip(_EDGE)
        return text.strip(_EDGE)

    def _is_company(self, text: str) -> bool:
        is_name = 1 < len(text) <= MAX_COMPANY_LENGTH and not NO_COMPANY.fullmatch(text)
        return is_name and (not is_part_of_town(text) or LEGAL_FORM.search(text) is not None)


def _parts(text: str) -> list[str]:
    return [part for each in _SEPARATOR.split(text) if (part := each.strip(_EDGE))]


def _first_part(text: str) -> str:
    return next(iter(re.split(r"\s+[|–—•·»-]\s+|\s*[|•»]\s*", text)), "").strip(_EDGE)


def company_of_site(page: Page) -> str | None:
    """Return the company whose own site a page is of: as the site names itself, and its host has it."""
    host = letters_of(host_of(page.url).removeprefix("www."))
    names = [
        page.meta("og:site_name", "application-name") or "",
        *(part for title in titles_of(page) for part in _parts(title)),
    ]
    for name in (SITE_AFFIX.sub("", name) for name in names):
        letters = letters_of(name)
        if (
            len(letters) >= SHORTEST
            and letters in host
            and len(name) <= MAX_COMPANY_LENGTH
            and not NO_COMPANY.fullmatch(name)
        ):
            return name
    return None


def company_of_host(page: Page, description: str | None, title: str | None) -> str | None:
    """Return the company of a site about work there, or of its own host at a board, as the description writes it.

    A job board does not write of itself again and again, so that the name counts from :data:`OFTEN` times. A word of
    the title of the job, or a country, is rather a subject of the host.
    """
    parts = parts_of(page.url)
    site = site_of(page.url)
    name_of_site = site.partition(".")[0]
    if name_of_site in COMPANY_BOARDS:
        label = parts.netloc.removesuffix(site).partition(".")[0]
    elif is_address_of_careers(page.url):
        label = name_of_site
    else:
        return None
    letters = letters_of(label)
    subjects = {*map(letters_of, _words(title or "")), letters_of(title or "")}
    own = {letters} - subjects if len(letters) > SHORTEST and not is_place_by_words(label.title()) else set()
    words = (match.group() for match in _WORD.finditer((description or "")[:MAX_DESCRIPTION])) if own else ()
    names = Counter(word for word in words if word[0].isupper() and letters_of(word) in own)
    name, times = names.most_common(1)[0] if names else ("", 0)
    return name if times >= OFTEN else None


def company_of_copyright(page: Page) -> str | None:
    """Return the name beside the sign of copyright at the end of a page."""
    for _, text in page.lines[-MAX_LAST_LINES:]:
        if _COPYRIGHT.search(text):
            name = _COPYRIGHT_WORDS.sub(" ", text).strip(f"{_EDGE}.®™")
            if 1 < len(name) <= MAX_COMPANY_LENGTH // 2 and not NO_COMPANY.fullmatch(name):
                return one_line(name)
    return None
