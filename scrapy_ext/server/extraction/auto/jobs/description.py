"""What a job is: its description as text and as HTML, and what is asked of candidates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.body import article_body
from scrapy_ext.server.extraction.auto.articles.libraries import body_html
from scrapy_ext.server.extraction.auto.jobs import job_terms as job_words
from scrapy_ext.server.extraction.auto.page.clean_html import cleaned, html_of, stated_html, text_of
from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.sources import origin
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, node_text, one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: A text that is shorter, in characters, describes no job.
MIN_LENGTH: Final = 120
MAX_NODES: Final = 60
MAX_REQUIREMENTS: Final = 50
MAX_REQUIREMENT_LENGTH: Final = 1_000
MAX_HEADINGS: Final = 2_000
MAX_HEADING_LENGTH: Final = 60

_VOCABULARY: Final = load_vocabulary("jobs")
_NAMES: Final = _VOCABULARY.words("description_names")
_NO_DESCRIPTION = _VOCABULARY.pattern("no_description")
_NO_TAGS: Final = frozenset({"meta", "a", "button", "form"})
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "strong", "b", "dt", "summary", "p")


class JobDescription(NamedTuple):
    """A description as text and as clean HTML, and what it is from."""

    text: str | None
    html: str | None
    source: str


def description_of(page: Page, job: Thing | None, focus: Focus, headline: str | None) -> JobDescription:
    """The description of the markup, else of the part of the page that is named so, else the page's main text."""
    stated = job.text("description", "responsibilities") if job else None
    if job is not None and stated and len(stated) >= MIN_LENGTH:
        return JobDescription(stated, stated_html(job, stated, page.base_url), origin(job, "description"))
    node = _node(page, focus)
    if node is not None:
        clean = cleaned(node, page.base_url)
        text = text_of(clean) if clean is not None else ""
        if clean is not None and len(text) >= MIN_LENGTH:
            return JobDescription(text, html_of(clean), "named part")
    body = article_body(page, focus, headline)
    return JobDescription(body.text or stated or None, body_html(page, body), "main text")


def _node(page: Page, focus: Focus) -> HtmlElement | None:
    """The named part with the most text that is not around the heading, too."""
    best: tuple[int, HtmlElement] | None = None
    for node in page.named(*_NAMES)[:MAX_NODES]:
        if node in focus.path or node.tag in _NO_TAGS or _NO_DESCRIPTION.search(page.names(node)):
            continue
        length = len(node_text(node))
        if MIN_LENGTH <= length < MAX_VALUE_LENGTH and not focus.elsewhere(node):
            score = length * (4 if node.get("itemprop") == "description" else 1)
            if best is None or score > best[0]:
                best = (score, node)
    return best[1] if best else None


def requirements_of(page: Page, job: Thing | None, focus: Focus) -> list[str] | None:
    """What is asked of candidates: of the markup, else the points below a heading that announces them."""
    names = ("qualifications", "skills", "experienceRequirements", "educationRequirements")
    stated = [line for text in (job.texts(*names) if job else ()) for line in _points(text)]
    if stated:
        page.sources.note("requirements", origin(job, *names))
        return list(dict.fromkeys(stated))[:MAX_REQUIREMENTS]
    for heading in _headings(page):
        if focus.elsewhere(heading):
            continue
        points = [text for item in _list_below(heading) if (text := node_text(item, MAX_REQUIREMENT_LENGTH))]
        if points:
            page.sources.note("requirements", f"list below {node_text(heading, MAX_HEADING_LENGTH)!r}")
            return points[:MAX_REQUIREMENTS]
    return None


def _points(text: str) -> Iterator[str]:
    for line in text.splitlines():
        point = one_line(line).lstrip("-•*· ")
        # Constants and lone numbers (months of experience) say nothing to a reader.
        if len(point) > 3 and not point.isdigit():
            yield point[:MAX_REQUIREMENT_LENGTH]


def _headings(page: Page) -> Iterator[HtmlElement]:
    for node in islice(page.tree.iter(*_HEADINGS), MAX_HEADINGS):
        text = node_text(node, MAX_HEADING_LENGTH + 1)
        if 3 < len(text) <= MAX_HEADING_LENGTH and job_words.REQUIREMENTS.fullmatch(text):
            yield node


def _list_below(heading: HtmlElement) -> list[HtmlElement]:
    """The items of the list that follows a heading before any other text does."""
    node: HtmlElement | None = heading
    for _ in range(3):
        if node is None:
            return []
        following = node.getnext()
        if following is not None:
            found = following if following.tag in {"ul", "ol"} else next(following.iter("ul", "ol"), None)
            return [item for item in found if item.tag == "li"] if found is not None else []
        node = node.getparent()
    return []
