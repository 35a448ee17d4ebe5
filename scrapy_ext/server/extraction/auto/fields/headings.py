"""The headline of a page, without the name of the site that titles carry, and its breadcrumbs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.breadcrumb_trail import trail_of
from scrapy_ext.server.extraction.auto.items import Breadcrumb
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.auto.page.urls import site_of, slug_of

MAX_HEADLINE_LENGTH: Final = 500
MAX_HEADINGS: Final = 200
_WORD = re.compile(r"\w{2,}")
#: A title and its last part, which is often the name of the site.
_PARTS = re.compile(r"^(.+)\s+[|»·•–—-]\s+([^|»·•]{2,100})$")
_SITE_PART = re.compile(r"^(.{15,}?)\s+[|»·•–—-]\s+([^|»·•–—]{2,60})$")


def headline_of(page: Page, thing: Thing | None, focus: Focus) -> str | None:
    """Return the headline: the visible heading, else that of structured data, else the title."""
    heading = _heading_of_content(page, focus)
    if heading and _is_of_page(page, heading):
        return _without_known_site(page, heading)
    stated = thing.text("headline") if thing else None
    title = stated or page.meta("og:title", "twitter:title") or page.title
    return without_site(page, one_line(title)[:MAX_HEADLINE_LENGTH]) or None


def _heading_of_content(page: Page, focus: Focus) -> str | None:
    """Return the heading; where that is the end of the title, as the name of a book or site is, the one below it that
    the title begins with.
    """
    heading, parts = focus.heading_text, _PARTS.match(page.title or "")
    if not heading or not parts or letters_of(heading) != letters_of(parts.group(2)):
        return heading
    begin = letters_of(parts.group(1))
    below = (node for node in page.tree.iter("h1", "h2", "h3") if focus.distance(node) > 0)
    texts = (node_text(node, MAX_HEADLINE_LENGTH) for node in islice(below, MAX_HEADINGS))
    return next((text for text in texts if letters_of(text) == begin), heading)


def _is_of_page(page: Page, heading: str) -> bool:
    """Return whether a heading shares a word with the titles of its page or its URL, apart from the site's name."""
    words = set(_WORD.findall(heading.casefold()))
    site = set(_WORD.findall((page.meta("og:site_name") or "").casefold()))
    words = words - site or words
    titles = [title for title in (page.title, page.meta("og:title", "twitter:title"), slug_of(page.url)) if title]
    return not titles or any(not words.isdisjoint(_WORD.findall(title.casefold())) for title in titles)


def _without_known_site(page: Page, heading: str) -> str:
    """Return a heading without the name of its site at the end, where the page or its URL gives that name."""
    parts = _PARTS.match(heading)
    names = (page.meta("og:site_name", "application-name") or "", site_of(page.url).partition(".")[0])
    return parts.group(1) if parts and letters_of(parts.group(2)) in map(letters_of, names) else heading


def without_site(page: Page, title: str) -> str:
    """Return a title without the name of its site at the end."""
    site = one_line(page.meta("og:site_name", "application-name")).casefold()
    match = _SITE_PART.match(title)
    if match and (not site or match.group(2).casefold() in site or site in match.group(2).casefold()):
        return match.group(1)
    return title


MAX_BREADCRUMBS: Final = 20
#: Longer texts are not names of sections.
MAX_NAME_LENGTH: Final = 200
_TRAIL_NAMES: Final = ("breadcrumb", "bread-crumb", "crumbs")
MAX_NODES: Final = 20
#: A part with more links is a menu.
MAX_LINKS: Final = 60


def breadcrumbs_of(page: Page) -> list[Breadcrumb] | None:
    """Return the longest breadcrumb trail of the structured data, else of the part named so."""
    trails = [_of_thing(page, thing) for thing in page.markup.all("BreadcrumbList")]
    if not any(trails):
        trails = [_of_node(page, node) for node in _nodes(page)]
    return max(trails, key=len, default=[]) or None


def _of_thing(page: Page, thing: Thing) -> list[Breadcrumb]:
    entries = [(_position(entry, index), entry) for index, entry in enumerate(thing.things("itemListElement"))]
    trail = []
    for _, entry in sorted(entries, key=lambda pair: pair[0]):
        name, url = _name_and_url(page, entry)
        if name or url:
            trail.append(Breadcrumb(name=name, url=url))
    return trail[:MAX_BREADCRUMBS]


def _position(entry: Thing, index: int) -> float:
    try:
        return float(entry.text("position") or index)
    except ValueError:
        return index


def _name_and_url(page: Page, entry: Thing) -> tuple[str | None, str | None]:
    name, reference = entry.text("name"), None
    for item in entry.values("item"):
        if isinstance(item, Thing):
            name = name or item.text("name", "title")
            reference = item.id or item.text("url", "@id")
        else:
            # For an item that is no entity of its own, microdata has its text, JSON-LD its address.
            reference = text_of(item)
    reference = reference or entry.text("url") or entry.id
    return one_line(name)[:MAX_NAME_LENGTH] or None, page.link(reference)


def _nodes(page: Page) -> Iterator[HtmlElement]:
    named = page.named(*_TRAIL_NAMES)[:MAX_NODES]
    labelled = [
        node for node in page.tree.iter("nav", "ol", "ul") if "breadcrumb" in (node.get("aria-label") or "").lower()
    ]
    for node in [*named, *labelled[:MAX_NODES]]:
        if node.tag not in {"body", "html", "main", "header"}:
            yield node


def _of_node(page: Page, node: HtmlElement) -> list[Breadcrumb]:
    if len(list(islice(node.iter("a"), MAX_LINKS + 1))) > MAX_LINKS:
        return []
    trail = [
        Breadcrumb(name=one_line(crumb.name) or None, url=page.link(crumb.url))
        for crumb in trail_of(node, page.base_url)
        if crumb.name and len(crumb.name) <= MAX_NAME_LENGTH
    ]
    # One link is no trail, and more are a menu.
    return trail if 2 <= len(trail) <= MAX_BREADCRUMBS else []
