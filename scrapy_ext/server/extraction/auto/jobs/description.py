"""Description and requirements of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.body import article_body, body_html
from scrapy_ext.server.extraction.auto.jobs.text_part import TextPart
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.clean_html import cleaned, html_of, stated_html
from scrapy_ext.server.extraction.auto.page.clean_html import text_of as clean_text
from scrapy_ext.server.extraction.auto.page.records import origin
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("jobs")
#: Headings of the requirements for candidates.
_REQUIREMENTS = _VOCABULARY.pattern("requirements", re.IGNORECASE)
#: Shortest description, in characters.
MIN_LENGTH: Final = 120
MAX_NODES: Final = 60
MAX_REQUIREMENTS: Final = 50
MAX_REQUIREMENT_LENGTH: Final = 1_000
MAX_HEADINGS: Final = 2_000
MAX_HEADING_LENGTH: Final = 60

#: Longer pages have the text that an article would have: the parts of so many elements are not weighed.
MAX_ELEMENTS: Final = 50_000
MAX_LINES: Final = 20_000
#: Parts with more elements are no description: cleaning them takes time by the square of their number.
MAX_CLEANED: Final = 4_000
LABEL, NAMED, BELOW, MOST_TEXT = "label", "named part", "part below a heading", "part with the most text"
#: The share of the greatest weight of the parts that one of each source has to have to be taken before the others.
_LEAST_SHARES: Final = {LABEL: 0.3, NAMED: 0.47, BELOW: 0.3, MOST_TEXT: 0.0}
#: The share of the weight of a named part that one inside of it has to be taken instead.
NEARLY_ALL: Final = 0.7
#: Steps up from a heading in which the text below it is searched, and the least weight of that text.
MAX_STEPS: Final = 6
LEAST_BELOW: Final = 300
_DESCRIPTION_HEADING: Final = _VOCABULARY.pattern("description_heading", re.IGNORECASE)
_DESCRIPTION_LABEL: Final = _VOCABULARY.pattern("description_label", re.IGNORECASE)
_DESCRIPTION_NAMES: Final = _VOCABULARY.words("description_names")
_NO_DESCRIPTION = _VOCABULARY.pattern("no_description")
_NO_TAGS: Final = frozenset({"meta", "a", "button", "form"})
_INLINE_TAGS: Final = frozenset({"p", "span", "strong", "b", "font", "a", "em", "i", "u"})
_HEADING_TAGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "strong", "b", "dt", "summary", "p")


class JobDescription(NamedTuple):
    """A description as text and as clean HTML, and its source."""

    text: str | None
    html: str | None
    source: str


def description_of(page: Page, job: Thing | None, focus: Focus, headline: str | None) -> JobDescription:
    """Return the description of structured data, else of the part named or labelled so, else the main text.

    A part that has little of the text of the page is named so for another reason, as an introduction is.
    """
    stated = job.text("description", "responsibilities") if job else None
    if job is not None and stated and len(stated) >= MIN_LENGTH:
        return JobDescription(stated, stated_html(job, stated, page.base_url), origin(job, "description"))
    texts = TextPart(page, focus)
    parts = [(source, node) for source, node in _parts(page, focus, texts) if node is not None]
    most = max((texts.weight(node) for _, node in parts), default=0.0)
    for source, node in sorted(parts, key=lambda part: texts.weight(part[1]) < _LEAST_SHARES[part[0]] * most):
        if next(islice(node.iter(), MAX_CLEANED, None), None) is not None:
            continue
        part = texts.pruned(node)
        if source == BELOW:
            _drop_heading(part)
        clean = cleaned(part, page.base_url)
        text = clean_text(clean) if clean is not None else ""
        if clean is not None and len(text) >= MIN_LENGTH:
            return JobDescription(text, html_of(clean), source)
    body = article_body(page, focus, headline)
    return JobDescription(body.text or stated or None, body_html(page, body), "main text")


def _parts(page: Page, focus: Focus, texts: TextPart) -> Iterator[tuple[str, HtmlElement | None]]:
    yield LABEL, _labelled(page)
    yield NAMED, _named(page, focus, texts)
    yield BELOW, _below_heading(page, focus, texts)
    if len(page.elements) <= MAX_ELEMENTS:
        yield MOST_TEXT, texts.find()


def _labelled(page: Page) -> HtmlElement | None:
    """Return the longest value of a label for the description, in a table or list."""
    found = [
        pair.node for pair in page.labelled.of(_DESCRIPTION_LABEL) if len(pair.value) >= MIN_LENGTH and pair.listed
    ]
    return max(found[:MAX_NODES], key=lambda node: len(node_text(node)), default=None)


def _below_heading(page: Page, focus: Focus, texts: TextPart) -> HtmlElement | None:
    """Return the smallest part with a line that announces the description, and with the text of one."""
    for node, text in page.lines[:MAX_LINES]:
        if len(text) > MAX_HEADING_LENGTH or not _DESCRIPTION_HEADING.fullmatch(text) or node.tag in _NO_TAGS:
            continue
        for part in islice(node.iterancestors(), MAX_STEPS):
            if (
                (part in focus.path and focus.distance(node) < 0)
                or part.tag in {"body", "html"}
                or texts.is_other(part)
            ):
                break
            if texts.weight(part) >= LEAST_BELOW and part.tag not in _INLINE_TAGS:
                return part
    return None


def _drop_heading(part: HtmlElement) -> None:
    for node in islice(part.iter("*"), 1, MAX_STEPS + 1):
        if _DESCRIPTION_HEADING.fullmatch(node_text(node, MAX_HEADING_LENGTH)):
            node.drop_tree()
            return


def _named(page: Page, focus: Focus, texts: TextPart) -> HtmlElement | None:
    """Return the named part with the most text that is not around the heading, or one inside with nearly all of it."""
    found: list[tuple[float, HtmlElement]] = []
    for node in page.named(*_DESCRIPTION_NAMES)[:MAX_NODES]:
        if node in focus.path or node.tag in _NO_TAGS or _NO_DESCRIPTION.search(page.names(node)):
            continue
        weight = texts.weight(node)
        if MIN_LENGTH <= weight < MAX_VALUE_LENGTH and not focus.elsewhere(node):
            found.append((weight * (4 if node.get("itemprop") == "description" else 1), node))
    most, best = max(found, key=lambda each: each[0], default=(0.0, None))
    # Later elements of the page that are inside of the best are inner ones.
    for weight, node in found:
        if weight >= NEARLY_ALL * most and best in node.iterancestors():
            best = node
    return best


def requirements_of(page: Page, job: Thing | None, focus: Focus) -> list[str] | None:
    """Return the requirements: of structured data, else the items of a list below a heading that announces them."""
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
        # Constants and lone numbers (months of experience) mean nothing to a reader.
        if len(point) > 3 and not point.isdigit():
            yield point[:MAX_REQUIREMENT_LENGTH]


def _headings(page: Page) -> Iterator[HtmlElement]:
    for node in islice(page.tree.iter(*_HEADING_TAGS), MAX_HEADINGS):
        text = node_text(node, MAX_HEADING_LENGTH + 1)
        if 3 < len(text) <= MAX_HEADING_LENGTH and _REQUIREMENTS.fullmatch(text):
            yield node


def _list_below(heading: HtmlElement) -> list[HtmlElement]:
    """Return the items of the list that follows a heading before any other text does."""
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
