"""Article of a page: news, posts, guides and other prose.

The right article of the structured data is found; then its text, with the element around it, and its HTML.

The box with most of the prose of the page is read line by line. Where it has hardly any of the text that a coarse
library finds, and the page does not name it its article, a careful library is used. Where the structured data has the
whole text, and the page less than half of it, as before a script writes it, that of the structured data is used.

trafilatura is the careful library: the most precise on prose, and it misses pages of an unusual structure. resiliparse
is fast and returns too much rather than too little.
"""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Final

from lxml import etree
from lxml.html import HtmlElement
from resiliparse.extract.html2text import extract_plain_text
from trafilatura import bare_extraction

from scrapy_ext.server.extraction.auto import probability
from scrapy_ext.server.extraction.auto.articles.body_lines import TextRun, runs_of, text_of
from scrapy_ext.server.extraction.auto.articles.chosen_lines import text_runs
from scrapy_ext.server.extraction.auto.articles.prose import OTHER_THINGS, TEASER, ArticleBox, text_length
from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.authors import authors_of
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.headline import headline_of
from scrapy_ext.server.extraction.auto.fields.languages import settled_language
from scrapy_ext.server.extraction.auto.fields.page_dates import Dates
from scrapy_ext.server.extraction.auto.items import Article, Audio, DetailsMetadata, Image, Video
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, now, one_line
from scrapy_ext.server.extraction.auto.page.clean_html import LIBRARY_FAULTS, cleaned, html_of, paragraphs
from scrapy_ext.server.extraction.auto.page.clean_nodes import Node, copy_of, remove
from scrapy_ext.server.extraction.auto.page.layout import class_and_id
from scrapy_ext.server.extraction.auto.page.parsing import flattened
from scrapy_ext.server.extraction.auto.page.text import first, lines, plain
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

ARTICLE_TYPES: Final = (
    "Article", "NewsArticle", "BlogPosting", "TechArticle", "ScholarlyArticle", "Report", "ReportageNewsArticle",
    "OpinionNewsArticle", "AnalysisNewsArticle", "BackgroundNewsArticle", "ReviewNewsArticle",
    "AdvertiserContentArticle", "SatiricalArticle", "MedicalScholarlyArticle", "LiveBlogPosting",
    "SocialMediaPosting", "APIReference", "Recipe", "HowTo",
)  # fmt: skip
#: Types of the first post of a thread, where that names its author.
THREAD_TYPES: Final = ("DiscussionForumPosting", "Question")
#: Types of the page itself, which are used when there is no article.
PAGE_TYPES: Final = ("WebPage", "ItemPage", "AboutPage", "MedicalWebPage")
MAX_MEDIA: Final = 50
#: Shortest text of an article that nothing marks as one, in characters, of which those of dense scripts count more: a
#: notice on cookies or a teaser is shorter. Some news briefs are as well.
SHORT: Final = 400
#: The probability of an article with a shorter text: none of 43 labelled pages was one, and none of them was marked.
SURE_OF_SHORT: Final = 0.05
_VIDEO_PLAYER = re.compile(r"youtube(?:-nocookie)?\.com/embed|player\.vimeo\.com|dailymotion\.com/embed|/video/|wistia")


def extract(page: Page) -> Article:
    """Return the article of a page. Only ``url`` and ``metadata`` are always present."""
    focus = Focus(page, page.meta("og:title", "twitter:title"), page.title)
    thing = main_article(page, focus)
    headline = headline_of(page, thing, focus, of_article=True)
    authors = authors_of(page, thing, focus)
    dates = Dates(page, thing, focus)
    published, modified = dates.published, dates.modified
    known = [author.name or "" for author in authors or ()] + [date.raw for date in (published, modified) if date]
    body = article_body(page, focus, headline, known, thing)
    page.sources.note("articleBody", "main text", body.node)
    page.sources.note("articleBodyHtml", "main text", body.node)
    described = page.meta("og:description", "description", "twitter:description", "dc.description")
    pictures = _images_of(page, thing, body)
    videos = [Video(url=url) for url in _media_of(page, thing, body, "video", "VideoObject")]
    audios = [Audio(url=url) for url in _media_of(page, thing, body, "audio", "AudioObject")]
    item = Article(
        url=page.url,
        canonicalUrl=page.canonical_url,
        headline=headline,
        datePublished=published.iso if published else None,
        datePublishedRaw=published.raw if published else None,
        dateModified=modified.iso if modified else None,
        dateModifiedRaw=modified.raw if modified else None,
        authors=authors,
        breadcrumbs=breadcrumbs_of(page),
        inLanguage=settled_language(page.language_of(thing), body.text),
        mainImage=pictures[0] if pictures else None,
        images=pictures,
        description=first((plain(described), thing.text("description") if thing else None)),
        articleBody=body.text or None,
        articleBodyHtml=body_html(page, body),
        videos=videos,
        audios=audios,
    )
    item.metadata = DetailsMetadata(dateDownloaded=now(), probability=_probability(page, item, thing))
    return item


def _images_of(page: Page, thing: Thing | None, body: ArticleBody) -> list[Image]:
    main = images.of_metas(page)[:1] or images.of_thing(page, thing)[:1]
    shown = images.of_nodes(page, (node for node in body.media if node.tag == "img"))
    return images.merged(main, images.of_thing(page, thing), shown)


def _media_of(page: Page, thing: Thing | None, body: ArticleBody, tag: str, type_name: str) -> list[str]:
    found: list[str] = []
    players: list[str] = []
    for media in thing.things(tag, "associatedMedia") if thing else ():
        if type_name in media.types:
            found += media.texts("contentUrl", "embedUrl")[:1]
    for node in body.media:
        if node.tag == tag:
            found += [source for each in (node, *node.iter("source")) if (source := each.get("src"))][:1]
        elif node.tag == "iframe" and tag == "video":
            players.append(node.get("src") or node.get("data-src") or "")
    found += filter(_VIDEO_PLAYER.search, players)
    urls = dict.fromkeys(url for reference in found if (url := page.link(reference)))
    return list(urls)[:MAX_MEDIA]


def _probability(page: Page, item: Article, thing: Thing | None) -> float:
    if not item.articleBody:
        return probability.LEAST
    marked = thing is not None and not thing.types.isdisjoint(ARTICLE_TYPES)
    length = sum(map(text_length, item.articleBody.splitlines()))
    if length < (THIN if marked else SHORT):
        return SURE_OF_SHORT
    signs = {
        "marked": marked,
        "dated": not marked and item.datePublished is not None,
        "authors": bool(item.authors),
        "image": item.mainImage is not None,
    }
    return probability.of("article", page, signs)


# ── the article in structured data ──


def main_article(page: Page, focus: Focus) -> Thing | None:
    """Return the article that the page is about, where there are several; else the entity of the page itself."""
    things = page.markup.things(*ARTICLE_TYPES)
    if len(things) > 1:
        own = [thing for thing in things if _is_main(page, thing, focus)]
        # Many articles without one of this page are a list.
        things = own or (things if len(things) <= 2 else [])
    return _first_thing(things) or _opening(page, focus) or _first_thing(page.markup.things(*PAGE_TYPES))


def _opening(page: Page, focus: Focus) -> Thing | None:
    """Return the first post of the thread that the page is about; none of a list of threads."""
    posts = [thing for thing in page.markup.things(*THREAD_TYPES) if thing.values("author")]
    # A lone one may be of the questions that a page answers besides.
    return next((thing for thing in posts if _is_main(page, thing, focus)), None)


def _first_thing(things: list[Thing]) -> Thing | None:
    return max(things[:3], key=lambda thing: len(thing.properties), default=None)


def _is_main(page: Page, thing: Thing, focus: Focus) -> bool:
    references = chain(
        thing.texts("url"),
        thing.texts("mainEntityOfPage"),
        (value.id or "" for value in thing.things("mainEntityOfPage")),
    )
    if any(page.is_at(page.link(reference)) for reference in references):
        return True
    headline = one_line(thing.text("headline", "name")).casefold()
    titles = (focus.heading_text, page.title, page.meta("og:title"))
    known = [title.casefold() for title in titles if title]
    if len(headline) <= 10:
        return headline in known
    return any(headline in title or title in headline for title in known)


# ── its text ──

logger = logging.getLogger(__name__)

#: Careful extraction and cleaning of HTML take time by the square of the elements of some pages. Pages with more
#: elements (none of several hundred real pages) get the coarse extraction and plain paragraphs.
MAX_ELEMENTS: Final = 20_000
#: Elements above which trafilatura does not compare its text with that of justext, whose time grows by the square of
#: paragraphs that are short: 6 s for 8,000.
MAX_COMPARED: Final = 4000

_BREAKS: Final = frozenset({"p", "head", "item", "list", "quote", "code", "row", "table", "lb", "fw", "div"})


@dataclass(frozen=True, slots=True)
class ArticleBody:
    """The main text of a page, and the element that contains it, as far as that is known.

    ``part`` has the nodes of that element without the blocks whose text is not of the main text; only articles have it.
    """

    text: str
    node: HtmlElement | None = None
    part: Node | None = None
    #: The images and other media of the part.
    media: tuple[HtmlElement, ...] = ()


def body_html(page: Page, body: ArticleBody) -> str | None:
    """Return the content as clean HTML, with its images and embedded content."""
    if not body.text:
        return None
    if body.part is not None and len(page.elements) <= MAX_ELEMENTS:
        clean = cleaned(body.part, page.base_url)
        if clean is not None:
            return html_of(clean)
    return paragraphs(body.text)


def careful_text(page: Page, tree: HtmlElement) -> str:
    """Return the text that trafilatura finds in a tree, which cannot be used afterwards."""
    if not _has_text(page) or len(page.elements) > MAX_ELEMENTS:
        return ""
    try:
        found = bare_extraction(
            tree,
            url=page.url,
            favor_precision=True,
            include_comments=False,
            with_metadata=False,
            fast=len(page.elements) > MAX_COMPARED,
        )
    except LIBRARY_FAULTS:
        logger.debug("Careful extraction failed; the coarse extraction is used.", exc_info=True)
        return ""
    return "" if found is None or isinstance(found, dict) else _rendered(found.body)


def coarse_text(page: Page) -> str:
    """Return the text that resiliparse finds: rather too much."""
    if not _has_text(page):
        return ""
    return lines(extract_plain_text(flattened(page.source), main_content=True, alt_texts=False, list_bullets=False))


def _has_text(page: Page) -> bool:
    # Not by XPath, whose time grows by the square of texts that follow each other, as those of ruby do.
    return any(text.strip() for body in page.tree.iter("body") for text in body.itertext())


def _rendered(tree: etree._Element) -> str:
    """Return the text of trafilatura's tree: paragraphs with an empty line between them, items line by line."""
    paragraphs = []
    for block in tree:
        pieces: list[str] = []
        for event, element in etree.iterwalk(block, events=("start", "end")):
            if element.tag in _BREAKS:
                pieces.append("\n")
            elif element.tag == "cell":
                pieces.append(" ")
            pieces.append((element.text if event == "start" else element.tail if element is not block else "") or "")
        paragraphs.append(lines("".join(pieces)))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


#: The least share of the coarse text that the right box has: a coarse text has menus and comments, too.
TOO_LITTLE: Final = 0.3
#: With less than this share of a text in structured data of this length, in characters, the page does not show it.
HALF: Final = 0.5
MIN_STATED: Final = 500
#: With less text, in characters, a page waits for its scripts, however short the text in structured data is.
THIN: Final = 60

_MEDIA: Final = frozenset(("img", "picture", "video", "audio", "iframe", "figure", "embed", "svg", "source", "track"))
_EMPTY: Final = _MEDIA | {"br", "hr", "td", "th"}
_PICTURED = re.compile(r"caption|image|photo|picture|media|figure")

#: The lines before the text: headline, byline, date.
MAX_HEAD_LINES: Final = 3
MAX_BYLINE_LENGTH: Final = 160
_VOCABULARY: Final = load_vocabulary("article_lines")
_BYLINE_WORDS = _VOCABULARY.pattern("byline_words")
_WORD = re.compile(r"[^\W_]")
_LETTER = re.compile(r"[^\W\d_]")
#: The number of a release, in front of its date.
_VERSION = re.compile(r"(?<![\w.])v?\d+\.\d+\.\d+(?![\w.])")


def article_body(
    page: Page, focus: Focus, headline: str | None, known: Iterable[str] = (), stated: Thing | None = None
) -> ArticleBody:
    """Return the text of an article: rather a sentence too few than a menu too many.

    Lines at its beginning with only the headline or ``known`` data (authors, dates) are not part of it. ``stated`` is
    the article of the structured data.
    """
    prose = ArticleBox(page, focus, controls=True)
    runs = text_runs(runs_of(page, prose.box, prose.noise), focus.heading, headline or "")
    runs = runs[_head_lines([run.text for run in runs], headline or "", known) :]
    part = _kept_part(page, prose, runs) if runs else None
    media = tuple(node.element for node in part.below() if node.tag in _MEDIA) if part else ()
    body = ArticleBody(text_of(runs), page.elements[prose.box], part, media)
    if not prose.marked:
        body = _wider(page, body, headline or "", known)
    whole = (stated.text("articleBody") if stated else None) or ""
    shorter = len(body.text) < HALF * len(whole)
    return ArticleBody(whole) if shorter and (len(whole) >= MIN_STATED or len(body.text) < THIN) else body


def _wider(page: Page, body: ArticleBody, headline: str, known: Iterable[str]) -> ArticleBody:
    """Return the body, or the text of a library where that is much longer."""
    coarse = coarse_text(page)
    if len(body.text) >= TOO_LITTLE * len(coarse):
        return body
    text = careful_text(page, copy.deepcopy(page.tree))
    text = text if len(text) >= TOO_LITTLE * len(coarse) else coarse
    lines = text.splitlines()
    return ArticleBody("\n".join(lines[_head_lines(lines, headline, known) :]).lstrip())


def _head_lines(lines: list[str], headline: str, known: Iterable[str]) -> int:
    """Return the number of first lines with only known data; never all lines."""
    known_parts = sorted({part.casefold() for part in known if part}, key=len, reverse=True)
    for position, line in enumerate(lines[:MAX_HEAD_LINES]):
        is_headline = bool(headline) and line.casefold() == headline.casefold()
        if not is_headline and not _says_only(line, known_parts):
            return position
    return min(MAX_HEAD_LINES, max(0, len(lines) - 1))


def _says_only(line: str, known: list[str]) -> bool:
    """Return whether a line has no words, or only known data, as bylines do."""
    if not _WORD.search(line):
        return True
    if len(line) > MAX_BYLINE_LENGTH:
        return False
    rest = line.casefold()
    for part in known:
        rest = rest.replace(part, " ")
    if _VERSION.search(rest):
        return False
    # A line without known data is something else, however short.
    return rest != line.casefold() and not _LETTER.search(_BYLINE_WORDS.sub(" ", rest))


def _kept_part(page: Page, prose: ArticleBox, runs: list[TextRun]) -> Node | None:
    """Return the box with the text of the lines only. Images and the like stay, with their captions."""
    if page.outline.ends[prose.box] - prose.box > MAX_ELEMENTS:
        return None
    texts = {position for run in runs for position in run.texts}
    tails = {position for run in runs for position in run.tails}
    part = _kept(prose, prose.box, texts, tails)
    _prune(part)
    return part


def _kept(prose: ArticleBox, position: int, texts: AbstractSet[int], tails: AbstractSet[int]) -> Node:
    """Return an element of the box with those texts and tails only, by the positions of their elements."""
    outline = prose.outline
    element, tag = outline.nodes[position], outline.tags[position]
    node = Node(tag, outline.texts[position] if position in texts else None, None, element)
    for child in outline.children(position):
        if child not in prose.noise:
            node.add(_kept(prose, child, texts, tails))
        elif _is_shown(outline.nodes[child]):
            node.add(copy_of(outline.nodes[child]))
        if child in tails:
            node.add_text(outline.tails[child])
    return node


def _is_shown(node: HtmlElement) -> bool:
    """Return whether an element without text of the article is an image, or other media."""
    if node.tag in _MEDIA:
        return True
    names = class_and_id(node)
    return (
        bool(_PICTURED.search(names))
        and not (OTHER_THINGS.search(names) or TEASER.search(names))
        and next(node.iter("img", "video", "audio", "iframe"), None) is not None
    )


def _prune(part: Node) -> None:
    for index in range(len(part.children) - 1, -1, -1):
        node = part.children[index]
        if node.children:
            _prune(node)
        if node.tag not in _EMPTY and not node.children and not node.has_text:
            if node.text and not node.tail:
                node.tail = " "
            remove(part, index)
