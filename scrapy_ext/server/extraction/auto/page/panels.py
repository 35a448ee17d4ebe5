"""Hidden elements that a click on their heading or question opens, as the answers of most lists of questions are.

A page hides them by an attribute or style until then, and no script has run over HTTP. Such a text is read with what is
above it, like that of ``details``: a heading without its text says nothing. What is above it must be a heading, a term
or a question; it has a control that names the element or, of several questions alike, none. Menus, forms, dialogs,
advertisements and lists of links are hidden as well, and stay so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final

from scrapy_ext.server.extraction.auto.page.outline import Outline
from scrapy_ext.server.extraction.auto.page.questions import is_question
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_PANELS: Final = frozenset({"article", "dd", "div", "ol", "p", "section", "span", "td", "tr", "ul"})
_TITLES: Final = HEADINGS | {"dt", "summary"}
#: Elements that people operate, which no answer has.
_OPERATED: Final = frozenset({"button", "form", "input", "select", "textarea"})
_OUTSIDE: Final = frozenset({"aside", "dialog", "footer", "form", "header", "nav"})
_OUTSIDE_ROLES: Final = frozenset({
    "alert", "alertdialog", "banner", "complementary", "contentinfo", "dialog", "form", "menu", "menubar", "navigation",
    "search", "status", "tablist", "tooltip",
})  # fmt: skip
_PARTS: Final = load_vocabulary("page_parts")
_ACTION, _OVER_PAGE, _OF_QUESTIONS = _PARTS.patterns(
    "title_of_action", "over_page", "of_questions", flags=re.IGNORECASE
)
#: Attributes of controls with the ids of what they open.
_OPENING: Final = ("aria-controls", "data-target", "data-bs-target", "href")
#: Elements around a hidden one beside which its heading is searched, and elements of both that are read.
MAX_AROUND: Final = 3
MAX_INSIDE: Final = 300
#: Hidden elements that are read.
MAX_HIDDEN: Final = 1_000
#: How many times as long as the links in it a text is at least.
LINKED: Final = 3
#: Lengths of the shortest text and of the longest heading, in characters.
SHORTEST: Final = 20
LONGEST_TITLE: Final = 300
#: Questions without controls: as many alike make a list of questions.
SEVERAL: Final = 2


def panels_of(outline: Outline, hidden: Iterable[int]) -> frozenset[int]:
    """Return those of the hidden elements, by position, that their headings or questions open."""
    found: set[int] = set()
    asked: dict[int, tuple[str, str]] = {}
    for panel in sorted(hidden)[:MAX_HIDDEN]:
        title = _title_of(outline, panel) if _is_text(outline, panel) else None
        if title is None:
            continue
        said = _text(outline, title)
        asks = is_question(said)
        if _ACTION.fullmatch(said):
            continue
        inside = outline.tags[title : outline.ends[title]]
        if not asks and _TITLES.isdisjoint(inside):
            continue
        if _opens(outline, title, panel):
            found.add(panel)
        elif asks and (not _TITLES.isdisjoint(inside) or _is_named(outline, (title, panel), _OF_QUESTIONS)):
            # Between the paragraphs of a text, one that asks opens nothing.
            asked[panel] = outline.tags[title], outline.attributes[title].get("class", "")
    alike = Counter(asked.values())
    return frozenset(found.union(panel for panel, kind in asked.items() if alike[kind] >= SEVERAL))


def _is_text(outline: Outline, panel: int) -> bool:
    """Return whether a hidden element has a text, little of it in links, and neither controls nor cards of pages."""
    if outline.tags[panel] not in _PANELS or _is_named(outline, (panel,), _OVER_PAGE):
        return False
    for around in outline.around(panel):
        if outline.tags[around] in _OUTSIDE or outline.attributes[around].get("role") in _OUTSIDE_ROLES:
            return False
    end = outline.ends[panel]
    if not _OPERATED.isdisjoint(outline.tags[panel:end]):
        return False
    length, linked, at = len(_text(outline, panel)), 0, panel
    while at < min(end, panel + MAX_INSIDE):
        is_link = outline.tags[at] == "a"
        inside = outline.tags[at : outline.ends[at]]
        if (is_link and not HEADINGS.isdisjoint(inside)) or (outline.tags[at] in HEADINGS and "a" in inside):
            return False
        linked += len(_text(outline, at)) if is_link else 0
        at = outline.ends[at] if is_link else at + 1
    return length >= SHORTEST and LINKED * linked <= length


def _is_named(outline: Outline, positions: Iterable[int], names: re.Pattern[str]) -> bool:
    """Return whether the class or id of one of the elements, or of one right around them, has one of these names."""
    around = (at for position in positions for at in (position, outline.parents[position]) if at >= 0)
    return any(
        names.search(outline.attributes[at].get(attribute, "")) for at in around for attribute in ("class", "id")
    )


def _title_of(outline: Outline, panel: int) -> int | None:
    """Return the element with a text that stands right before an element, or before one around it."""
    for around in islice(outline.around(panel), MAX_AROUND):
        if around == panel and (outline.texts[outline.parents[panel]] or "").strip():
            return None
        title = outline.sibling_before(around)
        if title >= 0 and not _text(outline, title):
            # An icon stands between.
            title = outline.sibling_before(title)
        if title >= 0:
            is_short = len(_text(outline, title)) <= LONGEST_TITLE and not (outline.tails[title] or "").strip()
            return title if is_short else None
    return None


def _text(outline: Outline, position: int) -> str:
    return " ".join("".join(islice(outline.texts_in(position), MAX_INSIDE)).split())


def _opens(outline: Outline, title: int, panel: int) -> bool:
    """Return whether a heading has a control that names an element, or the element is found by a search in the page."""
    attributes = outline.attributes[panel]
    if attributes.get("hidden", "").lower() == "until-found":
        return True
    own, labels = attributes.get("id"), set(attributes.get("aria-labelledby", "").split())
    for at in range(title, min(outline.ends[title], title + MAX_INSIDE)):
        of_title = outline.attributes[at]
        if of_title.get("id") in labels:
            return True
        if own and any(own in of_title.get(name, "").replace("#", " ").split() for name in _OPENING):
            return True
    return False
