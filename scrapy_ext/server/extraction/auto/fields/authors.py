"""Authors of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.bylines import (
    HAN_BYLINE,
    LEADING,
    LINE_LEADING,
    MAX_LINE_LENGTH,
    MAX_LINE_WORDS,
    MAX_NAME_LENGTH,
    MAX_TEXT_LENGTH,
    NAMED_LEADING,
    begins_name,
    behind_date,
    byline_in,
    is_of_event,
    is_whole_name,
    names_in,
    part_with,
    without_readings,
    words_of,
)
from scrapy_ext.server.extraction.auto.fields.datelines import AGENCY, is_place_and_date
from scrapy_ext.server.extraction.auto.items import Author
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import way_to
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.auto.page.sources import lowest, origin
from scrapy_ext.server.extraction.auto.page.text import is_wide, letters_of
from scrapy_ext.server.extraction.auto.page.urls import host_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_AUTHORS: Final = 20
MAX_NODES: Final = 40
#: How far from the heading, in elements, authors are shown at most; lines that nothing names, half as far.
NEAR: Final = 60
#: Lines that may name authors behind a day, on a page without a heading.
MAX_DATED_LINES: Final = 200
#: How many levels up parts of several authors have a box in common.
BOX_STEPS: Final = 4
#: Most parts of authors beside the nearest one.
MAX_BESIDE: Final = 5
#: The text of a page that may name a place, in characters.
MAX_WHOLE: Final = 20_000
#: Most words of a name that the text shows.
MAX_WORDS: Final = 6
#: By how many elements a link to the author is nearer than a box around it.
LINK_BONUS: Final = 20

_VOCABULARY: Final = load_vocabulary("authors")
_METAS, _NAMES = map(_VOCABULARY.words, ("metas", "names"))
_NAMED, _NOT_NAMED, _VAGUE = _VOCABULARY.patterns("named", "not_named", "vague_name")
_PROFILE, _SIGNATURE = _VOCABULARY.patterns("profile", "signature", flags=re.IGNORECASE)
#: Words that lead a line of authors in one language and are ordinary words in others.
_LEADING_BY_LANGUAGE: Final = {"ro": re.compile(r"De\s+"), "ca": re.compile(r"Per\s+")}
_VAGUE_LABEL, _PICTURE_CREDIT = _VOCABULARY.patterns("vague_label", "picture_credit", flags=re.IGNORECASE)
_AND = re.compile(r"\s*(?:and|und|et|y|e|en|og|och|&)\s+[^\W\d_]", re.IGNORECASE)
_BRACKETED = re.compile(r"[〔【［\[（(][^〕】］\]）)]{4,60}[〕】］\]）)]")


def authors_of(page: Page, article: Thing | None, focus: Focus) -> list[Author] | None:
    """Return the authors of a page: of its structured data, its metadata, or named as such by its heading."""
    found: dict[str, Author] = {}
    sites = _site_names(page, article)
    rules: tuple[tuple[str, Callable[[], list[Author]]], ...] = (
        (origin(article, "author", "creator"), lambda: authors_in(page, article)),
        ("meta", lambda: _of_metas(page)),
        ("part named as the author", lambda: _shown(page, focus)),
        ("line by the heading", lambda: _of_by_lines(page, focus)),
        ("signature", lambda: _of_signature(page, focus)),
    )
    # A site is the author of its pages only where they name nobody else.
    chosen: list[Author] = []
    for _, rule in rules:
        authors = rule()
        people = [author for author in authors if letters_of(author.name or "") not in sites]
        chosen = people or chosen or authors
        if people:
            break
    page.sources.chosen("authors", chosen, *rules, form=lambda authors: [{"name": author.name} for author in authors])
    for author in chosen:
        found.setdefault((author.name or "").casefold(), author)
    return list(found.values())[:MAX_AUTHORS] or None


def _site_names(page: Page, article: Thing | None) -> set[str]:
    names = [page.meta("og:site_name", "application-name"), host_of(page.url).removeprefix("www.").partition(".")[0]]
    publishers = article.texts("publisher") if article else []
    return {bare for name in (*names, *publishers) if (bare := letters_of(name or ""))}


def authors_in(page: Page, article: Thing | None) -> list[Author]:
    """Return the authors of an article in structured data."""
    found: list[Author] = []
    for value in article.values("author", "creator") if article else ():
        if not isinstance(value, Thing):
            raw = one_line(text_of(value))
            found += [Author(name=name, nameRaw=raw) for name in names_in(raw)]
            continue
        # A list of names is several people.
        several = value.values("name")
        raws = [one_line(text_of(each)) for each in (several if len(several) > 1 else [value])]
        named = [(name, raw) for raw in raws for name in names_in(raw)]
        url = page.link(value.text("url")) or page.link(value.id) if len(named) == 1 else None
        email = (value.text("email") or "").removeprefix("mailto:") or None
        found += [Author(name=name, nameRaw=raw, url=url, email=email) for name, raw in named]
    return found


def _of_metas(page: Page) -> list[Author]:
    for meta in _METAS:
        contents = page.metas.get(meta, [])[:MAX_AUTHORS]
        found = [Author(name=name, nameRaw=content) for content in contents for name in names_in(content)]
        if found:
            return found
    return []


def _shown(page: Page, focus: Focus) -> list[Author]:
    """Return the authors in the part named so that is nearest to the heading, and in the parts like it beside it."""
    scored = list(_scored_parts(page, focus))
    nearest = lowest(scored)
    if nearest is None:
        return []
    first, found = nearest
    if together := _with_next(page, first, found):
        return together
    beside = [part for _, part in scored if part[0] is not first and _are_alike(first, part[0])]
    if len(beside) > MAX_BESIDE:
        return []  # A list of things that have authors each.
    return [*found, *(author for _, authors in beside for author in authors)]


def _with_next(page: Page, link: HtmlElement, found: list[Author]) -> list[Author]:
    """Return the authors of a line in which one without a link follows the link of another: ``Jane Doe and Al Roe``."""
    parent = link.getparent()
    if link.tag != "a" or parent is None or not _AND.match(link.tail or ""):
        return []
    own = {author.name for author in found}
    several = _of_node(page, parent)
    names = [author.name or "" for author in several]
    are_whole = own.issubset(names) and all(is_whole_name(name) for name in names if name not in own)
    return several if are_whole and len(several) == len(own) + 1 else []


def _are_alike(first: HtmlElement, second: HtmlElement) -> bool:
    """Return whether two elements stand side by side in boxes of the same markup."""
    if way_to(first, BOX_STEPS) != way_to(second, BOX_STEPS):
        return False
    around = set(islice(first.iterancestors(), BOX_STEPS))
    return any(box in around for box in islice(second.iterancestors(), BOX_STEPS))


def _scored_parts(page: Page, focus: Focus) -> Iterator[tuple[float, tuple[HtmlElement, list[Author]]]]:
    for node in _nodes(page):
        distance = abs(focus.distance(node))
        if distance > NEAR or focus.elsewhere(node) or focus.in_card(node) or focus.in_list_aside(node):
            continue
        if focus.in_comments(node):
            continue
        found = _of_node(page, node)
        precise = node.tag == "a" or node.get("itemprop") in {"author", "name"}
        if found:
            yield distance - (LINK_BONUS if precise and not focus.in_aside(node) else 0), (node, found)


def _nodes(page: Page) -> list[HtmlElement]:
    links = [node for node in page.tree.iter("a") if leads_to_author(node)]
    named = [
        node
        for node in page.named(*_NAMES)
        if _NAMED.search(page.names(node)) and not _NOT_NAMED.search(page.names(node))
    ]
    return [*links[:MAX_NODES], *named[:MAX_NODES]]


def leads_to_author(node: HtmlElement) -> bool:
    """Return whether a link leads to the page of an author: marked so, or with an address and a text of one."""
    if "author" in (node.get("rel") or "").lower().split():
        return True
    if not _PROFILE.search(node.get("href") or ""):
        return False
    return all(2 <= len(name.split()) <= 4 for name in names_in(node_text(node, 60)) or [""])


def _of_node(page: Page, node: HtmlElement) -> list[Author]:
    raw = node_text(node, MAX_TEXT_LENGTH)
    if len(raw) >= MAX_TEXT_LENGTH:
        return []
    if is_of_event(raw) or is_place_and_date(raw, lambda: node_text(page.tree, MAX_WHOLE)):
        return []
    links = [node] if node.tag == "a" else list(node.iter("a"))[:MAX_AUTHORS]
    profiles = {node_text(link, MAX_NAME_LENGTH).casefold(): page.link(link.get("href")) for link in links}
    # What stands behind a dash is the medium.
    names = [
        name
        for name in names_in(raw.partition(" - ")[0], leading=NAMED_LEADING, shown=True)
        if words_of(name) <= MAX_WORDS
    ]
    if _VAGUE.search(page.names(node)):
        names = [name for name in names if words_of(name) > 1 or is_wide(name[0]) or AGENCY.fullmatch(name)]
    said = part_with(raw, names)
    return [Author(name=name, nameRaw=said, url=profiles.get(name.casefold())) for name in names]


def _of_by_lines(page: Page, focus: Focus) -> list[Author]:
    of_language = _LEADING_BY_LANGUAGE.get(page.language or "", LINE_LEADING)
    # In other languages, a text has an author: "Text: Ida Holm".
    vague = _VAGUE_LABEL if page.language in (None, "", "en") else None
    # Behind the text, such a line is one of a comment.
    begin = focus.text_begins(NEAR // 2)
    for place, (node, said) in enumerate(page.lines):
        line = without_readings(said)
        # In brackets, a byline begins the text: "〔記者王大文／台北報導〕".
        bracketed = _BRACKETED.match(line)
        text = bracketed.group() if bracketed else byline_in(line) or line
        if len(text) > MAX_LINE_LENGTH:
            continue
        in_han = not text.isascii() and HAN_BYLINE.search(text) is not None
        leading = next((each for each in (LINE_LEADING, of_language) if each.match(text)), None)
        is_near = -NEAR // 2 <= focus.distance(node) <= begin and (focus.heading is not None or place < MAX_DATED_LINES)
        if leading is None and is_near and behind_date(text):
            leading = LEADING
        if leading is not None and vague is not None and vague.match(text) and not _has_credit(page, place):
            continue
        if (in_han or leading is not None) and abs(focus.distance(node)) <= NEAR // 2:
            found = names_in(text, leading or LEADING, shown=True)
            names = [name for name in found if (in_han or begins_name(name, text)) and words_of(name) <= MAX_LINE_WORDS]
            if names and not (focus.elsewhere(node) or focus.in_card(node) or focus.in_comments(node)):
                return [Author(name=name, nameRaw=text) for name in names]
    return []


def _has_credit(page: Page, place: int) -> bool:
    """Return whether a line, or one beside it, credits the pictures of the page."""
    return any(_PICTURE_CREDIT.search(text[:MAX_LINE_LENGTH]) for _, text in page.lines[max(0, place - 1) : place + 2])


def _of_signature(page: Page, focus: Focus) -> list[Author]:
    """Return the authors of the only line that says so in plain words, wherever it stands: ``Written by Jane Doe``."""
    found: dict[str, list[str]] = {}
    for node, text in page.lines:
        match = _SIGNATURE.match(text) if len(text) <= MAX_LINE_LENGTH else None
        if match and not (focus.elsewhere(node) or focus.in_card(node) or focus.in_comments(node)):
            names = names_in(text[match.end() :], shown=True)
            if names and all(name[:1].isupper() and 2 <= words_of(name) <= 4 for name in names):
                found.setdefault(text, names)
    if len({tuple(names) for names in found.values()}) != 1:
        return []
    raw, names = next(iter(found.items()))
    return [Author(name=name, nameRaw=raw) for name in names]
