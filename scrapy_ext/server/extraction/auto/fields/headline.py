"""The headline of a page, without the name of the site that titles carry."""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, one_line
from scrapy_ext.server.extraction.auto.page.layout import is_of_site, names_other_page
from scrapy_ext.server.extraction.auto.page.sources import origin
from scrapy_ext.server.extraction.auto.page.text import is_wide, letters_of, shown_pieces, shown_text
from scrapy_ext.server.extraction.auto.page.urls import site_of, slug_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_HEADLINE_LENGTH: Final = 500
MAX_HEADINGS: Final = 200
#: Shortest paragraph, in characters, that has begun the text.
MIN_PROSE: Final = 40
#: Words of titles are searched in so many paragraphs, and characters of each.
MAX_PARAGRAPHS: Final = 30
MAX_PARAGRAPH_LENGTH: Final = 2_000
#: Shortest name of a site, in letters, that is searched in parts of titles: shorter ones are in many words.
MIN_NAME: Final = 4
#: Most words of a title that may be the name of its site alone.
MAX_SITE_WORDS: Final = 4
#: Pieces of text of a heading that are compared with the titles.
MAX_PIECES: Final = 40
#: Fewest words of a title that is a part of its heading: a single word may be any part of it.
MIN_PART: Final = 2
#: Fewest long words of a heading that may be a slogan.
MIN_SLOGAN: Final = 3
#: Types of articles in structured data.
_ARTICLES: Final = ("Article", "NewsArticle", "ReportageNewsArticle", "TechArticle", "BlogPosting")
#: How far from the heading, in elements, the date or byline of an article stands.
NEAR: Final = 40
#: Elements of a heading that may be marks.
MAX_MARKS: Final = 10
_MARK, _KICKER = load_vocabulary("page_parts").patterns("heading_mark", "heading_kicker")
_MARK_TAGS: Final = ("span", "a", "small", "strong", "b", "em", "i", "div", "p")
_SEPARATOR = " :：–—|·•/-"
_WORD = re.compile(r"\w{2,}")
_FIRST_WORD = re.compile(r"\W*\w+")
#: A title and its last part, which is often the name of the site.
_PARTS = re.compile(r"^(.+)\s+[|»·•–—-]\s+([^|»·•]{2,100})$")
#: Signs between a title and the name of the site, which sentences do not have.
_SURE_SIGNS: Final = frozenset("|»·•")
_SITE_PART = re.compile(r"^(.{15,}?)\s+[|»·•–—-]\s+([^|»·•–—]{2,60})$")


def headline_of(page: Page, thing: Thing | None, focus: Focus, *, of_article: bool = False) -> str | None:
    """Return the headline: the visible heading, else that of structured data, else the title.

    A heading that shares no word with the titles counts where the text has more of its words than of theirs, or it is
    the longer one: names of sites and sections are short, and hardly occur in a text. With
    ``of_article`` the heading is no slogan, as that of a page of a company may be.
    """
    return page.sources.chosen(
        "headline",
        _chosen(page, thing, focus, of_article=of_article),
        ("heading", lambda: focus.heading_text),
        (origin(thing, "headline"), lambda: one_line(thing.text("headline")) if thing else None),
        ("meta og:title", lambda: one_line(page.meta("og:title", "twitter:title"))),
        ("title without the name of the site", lambda: without_site(page, one_line(page.title))),
        ("title", lambda: one_line(page.title)),
        ("first heading of the content", lambda: _first_of_content(page)),
    )


def _chosen(page: Page, thing: Thing | None, focus: Focus, *, of_article: bool) -> str | None:
    heading = _heading_of_content(page, focus)
    stated = thing.text("headline") if thing else None
    slogans = not (of_article or stated or _is_article(page, focus))
    if heading and _is_of_page(page, heading) and not (slogans and _is_slogan(page, heading)):
        return _without_known_site(page, heading)
    whole = one_line(stated or page.meta("og:title", "twitter:title") or page.title)
    title = without_site(page, whole)
    shown = heading or _first_of_content(page)
    shown = None if shown and _is_name_of_site(page, shown) else shown
    if shown and not stated and (_is_name_of_site(page, title) or (title == whole and _says_more(page, shown, title))):
        return _without_known_site(page, shown)
    # What stands before the name of the site in a title is the headline.
    return title[:MAX_HEADLINE_LENGTH] or None


def _is_article(page: Page, focus: Focus) -> bool:
    """Return whether a page says that it is an article, or shows a date or byline near its heading."""
    if page.meta("og:type") == "article" or "article:published_time" in page.metas:
        return True
    if page.markup.things(*_ARTICLES):
        return True
    shown = chain(page.tree.iter("time"), page.named("byline"))
    return any(
        abs(focus.distance(node)) <= NEAR and not focus.elsewhere(node) and not focus.in_card(node)
        for node in islice(shown, MAX_HEADINGS)
    )


def _is_slogan(page: Page, heading: str) -> bool:
    """Return whether less than half of the words of a heading are in the titles of its page, and several others are.

    Pages of companies show a slogan in the place of their subject. The headlines of articles differ from their titles.
    """
    begin = _WORD.findall(heading.casefold())[:2]
    if any(_WORD.findall(title.casefold())[:2] == begin for title in (page.title, page.meta("og:title")) if title):
        return False
    words = _long_words(heading)
    titles = {
        word for title in (page.title, page.meta("og:title", "twitter:title")) for word in _long_words(title or "")
    }
    both = len(words & titles)
    return len(words) >= MIN_SLOGAN and 0 < both < len(words) / 2


def _long_words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) > 3}


def _says_more(page: Page, heading: str, title: str) -> bool:
    text = _text_of(page)
    ours, its = (_share_in(text, each) for each in (heading, title))
    return ours > its or (ours == its and len(letters_of(heading)) > len(letters_of(title)))


def _text_of(page: Page) -> str:
    paragraphs = islice(page.tree.iter("p"), MAX_PARAGRAPHS)
    return " ".join(shown_text(node, MAX_PARAGRAPH_LENGTH) for node in paragraphs).casefold()


def _share_in(text: str, title: str) -> float:
    """Return the share of the words of a title that occur in a text; of pairs of characters, where it has no spaces."""
    words = [word for word in _WORD.findall(title.casefold()) if len(word) > 3 or is_wide(word[0])]
    parts = [word[at : at + 2] if is_wide(word[0]) else word for word in words for at in _starts_of(word)]
    return sum(part in text for part in parts) / len(parts) if parts else 0.0


def _starts_of(word: str) -> range:
    return range(max(1, len(word) - 1)) if is_wide(word[0]) else range(1)


def _first_of_content(page: Page) -> str | None:
    """Return the first heading in the content of a page, where that has no prose and no card of another page before
    it.
    """
    holder = next((node for tag in ("article", "main", "body") for node in page.tree.iter(tag)), None)
    for node in islice(holder.iter("h1", "h2", "h3", "p"), MAX_HEADINGS) if holder is not None else ():
        text = shown_text(node, MAX_HEADLINE_LENGTH)
        if node.tag == "p" and len(text) >= MIN_PROSE:
            return None
        if node.tag != "p" and letters_of(text) and not is_of_site(page, node):
            return None if names_other_page(page, node) else text
    return None


def _is_name_of_site(page: Page, title: str) -> bool:
    return letters_of(title) in _names_of_site(page)


def _names_of_site(page: Page) -> set[str]:
    """Return the names of the site that the page and its URL give, as letters."""
    names = (page.meta("og:site_name", "application-name") or "", site_of(page.url).partition(".")[0])
    return {letters for name in names if (letters := letters_of(name))}


def _heading_of_content(page: Page, focus: Focus) -> str | None:
    """Return the heading; where that is the end of the title, as the name of a book or site is, the one below it that
    the title begins with.
    """
    if focus.heading is None or is_of_site(page, focus.heading):
        return None
    heading, parts = heading_text(page, focus) or "", _PARTS.match(page.title or "")
    other = page.meta("og:title") or page.title or ""
    if _is_name_of_site(page, heading) and other and letters_of(heading) not in letters_of(other):
        return None
    if heading and letters_of(heading) == letters_of(page.title or "") and len(heading.split()) <= MAX_SITE_WORDS:
        return _other_than_site(page, heading, focus)
    if not heading or not parts or letters_of(heading) != letters_of(parts.group(2)):
        return heading
    begin = letters_of(parts.group(1))
    below = (node for node in page.tree.iter("h1", "h2", "h3") if focus.distance(node) > 0)
    texts = (shown_text(node, MAX_HEADLINE_LENGTH) for node in islice(below, MAX_HEADINGS))
    found = next((text for text in texts if letters_of(text) == begin), None)
    if found is None and len(begin) > len(letters_of(heading)) and _is_of_text(page, parts.group(1), heading):
        return None
    return found or heading


def _without_marks(page: Page, node: HtmlElement, text: str) -> str:
    """Return the text of a heading without the labels or kicker at its beginning, and the sign of a link or a button
    at its end.

    What the titles of the page have in the same place belongs to the heading.
    """
    for part in islice(node.iter(*_MARK_TAGS, "button"), MAX_MARKS):
        whole = shown_text(part, MAX_HEADLINE_LENGTH)
        named = _MARK.search(page.names(part)) or _KICKER.search(page.names(part))
        if whole and text.startswith(whole) and text != whole:
            rest = text.removeprefix(whole)
            first = whole + (_FIRST_WORD.match(rest) or [""])[0]
            if (named and not _is_in_titles(page, first)) or _is_title(page, rest):
                text = rest.lstrip(_SEPARATOR).rstrip()
        elif _is_behind(page, part, whole) and not _is_in_titles(page, text):
            text = text.removesuffix(whole).strip() or text
    return text


def _is_behind(page: Page, part: HtmlElement, text: str) -> bool:
    """Return whether a part of a heading is a button, or the sign of a link."""
    return part.tag == "button" or (bool(_MARK.search(page.names(part))) and not letters_of(text))


def _is_title(page: Page, text: str) -> bool:
    """Return whether a text of several words is a title of the page, without the name of the site."""
    letters = letters_of(text)
    if text.lstrip(_SEPARATOR)[:1].islower():
        return False  # The end of a sentence.
    titles = (one_line(title) for title in (page.title, page.meta("og:title")) if title)
    return len(_WORD.findall(text)) > 1 and any(letters == letters_of(without_site(page, title)) for title in titles)


def _is_in_titles(page: Page, text: str) -> bool:
    titles = (page.title, page.meta("og:title"))
    return any(text.casefold() in one_line(title).casefold() for title in titles if title)


def _other_than_site(page: Page, heading: str, focus: Focus) -> str:
    """Return a heading that is the whole title; where that is the name of the site, the next of its level."""
    below = (node for node in page.tree.iter("h1") if focus.distance(node) > 0)
    texts = (shown_text(node, MAX_HEADLINE_LENGTH) for node in islice(below, MAX_HEADINGS))
    return next((text for text in texts if letters_of(text) and _is_of_text(page, text, heading)), heading)


def heading_text(page: Page, focus: Focus) -> str | None:
    """Return the text of the heading without its marks, and without what stands beside the title in it.

    Taglines, buttons, numbers of comments and links to sources have elements of their own there.
    """
    if focus.heading is None:
        return None
    text = _without_marks(page, focus.heading, focus.heading_text or "")
    return (_titled_part(page, focus.heading, text) or text) or None


def _titled_part(page: Page, node: HtmlElement, text: str) -> str | None:
    """Return the pieces of a heading that are a title of its page, where the others are in elements of their own.

    A heading whose whole text a title has is left as it is.
    """
    if next(iter(node), None) is None or _is_in_titles(page, text):
        return None
    titles = {
        letters_of(title): title
        for whole in (page.title, page.meta("og:title"))
        if whole and len((title := without_site(page, one_line(whole))).split()) >= MIN_PART
    }
    pieces = list(islice(shown_pieces(node), MAX_PIECES + 1))
    if not titles or len(pieces) > MAX_PIECES:
        return None
    ends = range(1, len(pieces) + 1)
    parts = ("".join(pieces[start:end]) for end in ends for start in range(end))
    own = letters_of(" ".join([node.text or "", *(child.tail or "" for child in node)]))
    return next(
        (
            shown
            for part in parts
            if (found := letters_of(part)) in titles
            and own in found
            # Else it is the end of a sentence.
            and (not (shown := one_line(part))[:1].islower() or titles[found][:1].islower())
        ),
        None,
    )


def _is_of_text(page: Page, first: str, second: str) -> bool:
    """Return whether the text of a page has words of the first title, and none of the second."""
    text = _text_of(page)
    return _share_in(text, first) > 0 and not _share_in(text, second)


def _is_of_page(page: Page, heading: str) -> bool:
    """Return whether a heading shares a word with the titles of its page or its URL, apart from the site's name."""
    words = set(_WORD.findall(heading.casefold()))
    site = set(_WORD.findall((page.meta("og:site_name") or "").casefold()))
    words = words - site or words
    titles = [title for title in (page.title, page.meta("og:title", "twitter:title"), slug_of(page.url)) if title]
    return not titles or any(not words.isdisjoint(_WORD.findall(title.casefold())) for title in titles)


def _without_known_site(page: Page, heading: str) -> str:
    """Return a heading without the name of its site at the end, where the page or its URL gives that name.

    A heading that repeats the whole title loses the sections of the site before that name, too.
    """
    parts = _PARTS.match(heading)
    if not parts:
        return heading
    if letters_of(parts.group(2)) in _names_of_site(page):
        return parts.group(1)
    is_title = letters_of(heading) == letters_of(page.title or "")
    return without_site(page, heading) if is_title and _names_site(page, parts) else heading


def without_site(page: Page, title: str) -> str:
    """Return a title without the name of its site at the end, and without the sections of the site before that."""
    parts = _PARTS.match(title)
    if parts and _names_site(page, parts):
        return parts.group(1).partition(" | ")[0].strip()
    match = _SITE_PART.match(title)
    return match.group(1) if match and not page.meta("og:site_name", "application-name") else title


def _names_site(page: Page, parts: re.Match[str]) -> bool:
    """Return whether the last part of a title is, is in, or has a name of the site.

    Behind a dash, which sentences have too, that name is at least half of it.
    """
    letters = letters_of(parts.group(2))
    sure = not _SURE_SIGNS.isdisjoint(parts.string[parts.end(1) : parts.start(2)])
    least = MIN_NAME if sure else max(MIN_NAME, len(letters) / 2)
    return any(
        letters == name or (len(letters) >= MIN_NAME and letters in name) or (len(name) >= least and name in letters)
        for name in _names_of_site(page)
    )
