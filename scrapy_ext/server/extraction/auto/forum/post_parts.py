"""Parts of the posts of a thread whose software no name identifies, by what the posts have in common.

A part is a line of the text right inside of an element, and its way the steps to it from the element of the post. A
part with a date in most posts is the date; one with the same words in most posts is a button or a label; a short one
that is no sentence, stands at the same place in most posts and differs in some is the author. The innermost element
with nearly all of the rest is the text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.dates import WRITTEN, in_ascii_digits, words_before_date
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page.layout import step_of
from scrapy_ext.server.extraction.auto.page.line_breaks import lines_in
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Elements of one post that are compared.
MAX_ELEMENTS: Final = 300
#: The share of the posts that have a part at the same place.
MOST: Final = 0.8
#: The share of the text of the posts that the innermost element around it has.
NEARLY_ALL: Final = 0.85
#: Longest name of an author, in characters and words: a longer line is a title or a sentence.
MAX_NAME_LENGTH: Final = 40
MAX_NAME_WORDS: Final = 4
#: Longest line with a date, and longest button, in characters.
MAX_LINE_LENGTH: Final = 60

_BUTTONS: Final = frozenset({"a", "button"})
_IN_BOLD: Final = frozenset({"b", "strong", "i", "em", "u"})
#: Elements whose neighbours are other things.
_CELLS: Final = frozenset({"td", "th", "dt", "dd"})
_NO_NAME_TAGS: Final = frozenset({"h1", "h2", "button", "time", "blockquote", "pre", "code", "label", "option"})
#: Elements around texts of several paragraphs.
_HOLDERS: Final = frozenset({"div", "section", "article", "main", "table", "tbody", "tr", "td", "li", "dd"})
_LABEL: Final = load_vocabulary("forums").text("label_of_post")
#: Words beside the date at which a member joined, or a post was changed.
_JOINED: Final = load_vocabulary("forums").pattern("joined")
#: One such label or several with signs between them, and a word or two with a number: ``Reply | Quote``, ``Posts: 12``.
_LABEL_OF_POST: Final = re.compile(
    rf"(?:{_LABEL})(?:[|·•/]\s*(?:{_LABEL}))*|[\W_]*|[^\W\d_]+(?:\s[^\W\d_]+)?\s?[:：]\s?\d[\d.,]*", re.IGNORECASE
)
#: Counts of a member above a text, and of its subject below: ``Posts: 12``, ``Score: 8``.
_COUNT: Final = re.compile(r"[^\W\d_]+(?:\s[^\W\d_]+)?\s?[:：]\s?\d[\d.,]*")
_SENTENCE_END = re.compile(r"[.!?…:;,。！？]$")
_DIGITS = re.compile(r"\d+")
#: The number of the posts of a member: ``Jane (157)``.
_COUNT_BEHIND = re.compile(r"\s*[(\[]\d[\d.,]*[)\]]$")
_NUMBER = re.compile(r"(?:^|\s)\W*\d[\d.,:/-]*(?:\s|$)")

_Way = tuple[str, ...]


class PostText(NamedTuple):
    """The text of a post, with the element of the post and the name of its author where these are known by its parts.

    ``beside`` are the elements inside of ``body`` that are not of the text: dates, names, buttons. ``lines`` are the
    elements and line breaks at which lines begin that are not of it either, and ``date`` is the line with the date.
    """

    body: HtmlElement
    beside: frozenset[HtmlElement] = frozenset()
    box: HtmlElement | None = None
    author: str | None = None
    lines: frozenset[HtmlElement] = frozenset()
    date: str | None = None


class _Part(NamedTuple):
    """A line of a post, with the number of the post and the position of its element in the page.

    ``begin`` is the position of that element, or of the line break before the line.
    """

    post: int
    position: int
    begin: int
    way: _Way
    text: str


def text_of_posts(page: Page, boxes: Sequence[HtmlElement]) -> list[PostText]:
    """Return the text of each of several posts, by the elements of these."""
    boxes = alike(boxes)
    return _Posts(page, boxes).texts()


def without_labels(page: Page, bodies: Sequence[HtmlElement]) -> list[PostText]:
    """Return the texts of posts without the labels in them: ``Member``, ``Reply | Report post``.

    Elements that have dates as well are whole posts, whatever their names are.
    """
    posts = _Posts(page, bodies)
    if not posts.labels:
        return [PostText(body) for body in bodies]
    if posts.is_dated:
        return [text._replace(box=None) for text in posts.texts()]
    return [
        PostText(body, beside, lines=lines)
        for body, (beside, lines) in zip(bodies, posts.apart(bodies, posts.labels), strict=True)
    ]


def are_posts(page: Page, boxes: Sequence[HtmlElement]) -> bool:
    """Return whether boxes without dates are posts: each has a text and an author, and most the same buttons.

    Where the name and a button lead to the same page, the boxes are about other pages.
    """
    posts = _Posts(page, boxes)
    if not all(map(posts.name_of, range(len(boxes)))):
        return False
    found = (posts.button(part) for part in posts.parts if part in posts.marked)
    buttons = [button for button in found if button is not None]
    links = {link.get("href") for link in buttons} - {None, "", "#"}
    named = (posts.button(part) for part in posts.names.values())
    return bool(buttons) and not any(link is not None and link.get("href") in links for link in named)


def names_by_place(page: Page, boxes: Sequence[HtmlElement], texts: Container[HtmlElement]) -> list[str | None]:
    """Return the name of the author of each post where posts have one at the same place, outside of their texts."""
    posts = _Posts(page, alike(boxes), texts)
    return [posts.name_of(post) for post in range(len(boxes))]


def alike(boxes: Sequence[HtmlElement]) -> list[HtmlElement]:
    """Return the elements of posts, of those in a box of another kind than most the element like these."""
    common = Counter(map(step_of, boxes)).most_common(1)[0][0]
    return [
        next((node for node in box.iter("*") if step_of(node) == common), box) if step_of(box) != common else box
        for box in boxes
    ]


class _Posts:
    """The parts of several posts, by the elements of these; without those in ``texts``."""

    def __init__(self, page: Page, boxes: Sequence[HtmlElement], texts: Container[HtmlElement] = ()) -> None:
        self._page = page
        self._boxes = boxes
        self.parts = list(_parts(page, boxes, texts))
        #: Dates, and what is the same in most posts.
        dates = list(self._own_dates())
        own_dates = [part for part in dates if not _JOINED.search(part.text.lower())]
        self.is_dated = bool(own_dates)
        self._date_of = {part.post: part.text for part in reversed(own_dates)}
        self.marked = {*dates, *self._same()}
        self.marked -= self._counts_in_text()
        #: What readers may do, and ranks of members.
        self.labels = [
            part
            for part in self.parts
            if part in self.marked and letters_of(part.text) and _LABEL_OF_POST.fullmatch(part.text)
        ]
        ends = sorted((*dates, *self.labels), key=attrgetter("begin"), reverse=True)
        self._first_facts = {part.post: part.begin for part in ends}
        names = self._ways_of_names()
        rest = [part for part in self.parts if part not in self.marked and part.way not in names]
        self._has_text = bool(rest)
        # A greeting is of the text, though all posts begin with it.
        greetings = self._beside_sentences(rest)
        self.marked -= greetings
        self._way = _way_of_most([*rest, *greetings])
        inside = [way for way in names if way[: len(self._way)] == self._way]
        outside = [way for way in names if way not in inside]
        self._name = next(iter([*outside, *inside]), None)
        #: The parts with the names of the authors, by the numbers of posts.
        self.names = {part.post: part for part in self.parts if part.way == self._name}
        self._dated_names = {} if self.names else self._names_before_dates()
        self._bare = _without_common_words({post: part.text for post, part in self.names.items()})

    def name_of(self, post: int) -> str | None:
        """Return the name of the author of a post."""
        name = self._bare.get(post) or self._dated_names.get(post)
        return _COUNT_BEHIND.sub("", name) if name else None

    def button(self, part: _Part) -> HtmlElement | None:
        """Return the link or button with a part."""
        node = self._page.elements[part.position]
        return next((each for each in (node, node.getparent()) if each is not None and _is_button(each)), None)

    def texts(self) -> list[PostText]:
        """Return the text of each post; all of it where the posts have no text but the same."""
        if not self._has_text:
            return [PostText(box, box=box) for box in self._boxes]
        bodies = [_at(box, self._way) for box in self._boxes]
        apart = self.apart(bodies, [*self.marked, *self.names.values()])
        return [
            PostText(body, beside, box, self.name_of(post), lines, self._date_of.get(post))
            for post, (box, body, (beside, lines)) in enumerate(zip(self._boxes, bodies, apart, strict=True))
        ]

    def apart(
        self, bodies: Sequence[HtmlElement], parts: Iterable[_Part]
    ) -> list[tuple[frozenset[HtmlElement], frozenset[HtmlElement]]]:
        """Return for each post the outermost elements inside of its text that have these parts only, and their lines.

        A line is named by the element or line break at which it begins.
        """
        apart = set(parts)
        left = {part.position for part in self.parts if part not in apart}
        positions = {part.position for part in apart} - left
        lines: defaultdict[int, set[HtmlElement]] = defaultdict(set)
        for part in apart:
            lines[part.post].add(self._page.elements[part.begin])
        return [(self._beside(body, positions, left), frozenset(lines[post])) for post, body in enumerate(bodies)]

    def _dates(self) -> Iterator[_Part]:
        # Most lines have no number, and this is found much faster than that they have no date.
        likely = (part for part in self.parts if len(part.text) <= MAX_LINE_LENGTH and _DIGITS.search(part.text))
        dated = [part for part in likely if words_before_date(part.text) is not None]
        return self._in_most(dated, lambda part: _kind_of_place(part.way))

    def _own_dates(self) -> Iterator[_Part]:
        """Yield the dates without the lines of the text that are days: those behind the first date of their post."""
        dated: set[int] = set()
        for part in sorted(self._dates(), key=attrgetter("begin")):
            is_bare = not words_before_date(part.text)
            is_line = bool(part.way) and _tag_of(part.way) == "br"
            if not (part.post in dated and is_bare and is_line):
                yield part
            if not _JOINED.search(part.text.lower()):
                dated.add(part.post)

    def _counts_in_text(self) -> set[_Part]:
        """Return the words with a number that stand behind the begin of a text, of which they are."""
        begins: dict[int, int] = {}
        for part in self.parts:
            if part not in self.marked and len(part.text) > MAX_NAME_LENGTH:
                begins[part.post] = min(part.begin, begins.get(part.post, part.begin))
        return {
            part
            for part in self.marked
            if part.begin > begins.get(part.post, part.begin) and _COUNT.fullmatch(part.text) and not self.button(part)
        }

    def _same(self) -> Iterator[_Part]:
        # Counts beside a word differ from post to post, and so does the place of a button behind one that few have.
        short = [part for part in self.parts if len(part.text) <= MAX_LINE_LENGTH]
        return self._in_most(short, lambda part: (*_kind_of_place(part.way), letters_of(_DIGITS.sub("", part.text))))

    def _beside_sentences(self, rest: list[_Part]) -> set[_Part]:
        """Return the marked parts that stand beside paragraphs of the text, or in bold in one.

        They are no links and buttons, nor their like by their words: "Reply", "Member".
        """
        texts = [part.way for part in rest if len(part.text) > MAX_NAME_LENGTH]
        whole, beside = set(texts), {(*way[:-1], _name_of(way)) for way in texts if way}
        found = set()
        for part in self.marked:
            way = part.way
            tag = _tag_of(way) if way else ""
            in_bold = tag in _IN_BOLD and way[:-1] in whole and part.text[-1] not in ":："
            is_paragraph = bool(way) and tag not in _CELLS and (*way[:-1], _name_of(way)) in beside
            is_label = self.button(part) is not None or _LABEL_OF_POST.fullmatch(part.text) is not None
            if (in_bold or is_paragraph) and not is_label and words_before_date(part.text) is None:
                found.add(part)
        return found

    def _in_most(self, parts: list[_Part], key: Callable[[_Part], _Way]) -> Iterator[_Part]:
        for _, same in groupby(sorted(parts, key=key), key):
            found = list(same)
            if len({part.post for part in found}) >= MOST * len(self._boxes):
                yield from found

    def _ways_of_names(self) -> list[_Way]:
        """Return the ways to what may be the names of authors, the first first."""
        by_way: defaultdict[_Way, dict[int, str]] = defaultdict(dict)
        tags = self._page.outline.tags
        for part in self.parts:
            if part not in self.marked and tags[part.position] not in _NO_NAME_TAGS:
                by_way[part.way][part.post] = part.text
        found = {way: self._are_names(texts) for way, texts in by_way.items()}
        # A short paragraph beside others is a greeting, unless a date or a rank is between them.
        texts = {_kind_of_place(way) for way, are_names in found.items() if not are_names}
        of_text = (part for part in self.parts if part not in self.marked and not found.get(part.way, False))
        first_texts = {part.post: part.begin for part in sorted(of_text, key=attrgetter("begin"), reverse=True)}
        dated = {
            part.way
            for part in self.parts
            if part.begin < self._first_facts.get(part.post, 0) < first_texts.get(part.post, 0)
        }
        return [
            way for way, are_names in found.items() if are_names and (_kind_of_place(way) not in texts or way in dated)
        ]

    def _names_before_dates(self) -> dict[int, str]:
        """Return the names in the lines with dates, before these: ``Jane wrote on 12 March``."""
        found: dict[int, str] = {}
        for part in self._dates():
            found.setdefault(part.post, _all_before_date(part.text))
        return _without_common_words(found) if self._are_names(found) else {}

    def _are_names(self, texts: dict[int, str]) -> bool:
        names = _without_common_words(texts).values()
        differ = len(set(names)) > 1
        if not differ or len(texts) < MOST * len(self._boxes) or max(map(len, names)) > MAX_NAME_LENGTH:
            return False
        # A few have a number in them: "Agent 47".
        return sum(map(_may_be_name, names)) >= MOST * len(names)

    def _beside(self, body: HtmlElement, marked: set[int], left: set[int]) -> frozenset[HtmlElement]:
        """Return the outermost elements inside of a text that have marked parts only."""
        outline = self._page.outline
        position = outline.order[body]
        end = outline.ends[position]
        found = []
        position += 1
        while position < end:
            inside = range(position, outline.ends[position])
            if not marked.isdisjoint(inside) and left.isdisjoint(inside):
                found.append(outline.nodes[position])
                position = outline.ends[position]
            else:
                position += 1
        return frozenset(found)


def _parts(page: Page, boxes: Sequence[HtmlElement], texts: Container[HtmlElement]) -> Iterator[_Part]:
    """Yield the parts of posts in the order of the page, without those of other posts within them and in ``texts``."""
    others = frozenset(boxes)
    for post, box in enumerate(boxes):
        left: list[tuple[HtmlElement, _Way]] = [(box, ())]
        for _ in range(MAX_ELEMENTS):
            if not left:
                break
            node, way = left.pop()
            lines = list(lines_in(node))
            for number, line in enumerate(lines):
                way_of_line = (*way, f"br#{number}") if len(lines) > 1 else way
                yield _Part(post, page.order[node], page.order[line.begin], way_of_line, line.text)
            found: Counter[str] = Counter()
            inner = []
            for child in node.iterchildren("*"):
                step = step_of(child)
                found[step] += 1
                if child not in others and child not in texts:
                    inner.append((child, (*way, f"{step}#{found[step]}")))
            left += reversed(inner)


def _is_button(node: HtmlElement) -> bool:
    return node.tag in _BUTTONS or node.get("role") == "button" or node.get("onclick") is not None


def _kind_of_place(way: _Way) -> _Way:
    return tuple(step.rpartition("#")[0] for step in way)


def _name_of(way: _Way) -> str:
    return way[-1].rpartition("#")[0]


def _tag_of(way: _Way) -> str:
    return re.split(r"[.#]", way[-1], maxsplit=1)[0]


def _without_common_words(texts: dict[int, str]) -> dict[int, str]:
    """Return texts without the words in small letters that all begin and end with: "by Jane", "Jane wrote on"."""
    words = [text.split() for text in texts.values()]
    begin, end = _common(words), _common([each[::-1] for each in words])
    return {post: " ".join(each[begin : len(each) - end]) for post, each in zip(texts, words, strict=True)}


def _common(words: list[list[str]]) -> int:
    """Return the number of first words that are the same in all, in small letters or before a colon."""
    count = 0
    for first, *others in zip(*words, strict=False):
        if any(word != first for word in others) or not (first[0].islower() or first[-1] in ":："):
            break
        count += 1
    return count


def _may_be_name(text: str) -> bool:
    return (
        len(text.split()) <= MAX_NAME_WORDS
        and any(map(str.isalpha, text))
        and not (_SENTENCE_END.search(text) or _NUMBER.search(text))
    )


def _all_before_date(text: str) -> str:
    """Return what stands before the date of a line; nothing where that may be a day of the week: ``Jane, 12 March``."""
    before = words_before_date(text) or ""
    date = WRITTEN.search(in_ascii_digits(text))
    return before if date is not None and letters_of(before) == letters_of(text[: date.start()]) else ""


def _way_of_most(parts: list[_Part]) -> _Way:
    """Return the way to the innermost element with nearly all of the text."""
    lengths: Counter[_Way] = Counter()
    for part in parts:
        for depth in range(len(part.way) + 1):
            lengths[part.way[:depth]] += len(part.text)
    way: _Way = ()
    enough = NEARLY_ALL * lengths[way]
    while True:
        inner = [each for each in lengths if len(each) == len(way) + 1 and each[:-1] == way]
        best = max(inner, key=lengths.__getitem__, default=None)
        if best is None or lengths[best] < enough or _tag_of(best) == "br":
            return way
        # Posts of one paragraph are many, and others have several.
        alone = sum(_kind_of_place(each) == _kind_of_place(best) for each in inner) == 1
        if not alone or (_tag_of(best) not in _HOLDERS and lengths[best] < lengths[way]):
            return way
        way = best


def _at(box: HtmlElement, way: _Way) -> HtmlElement:
    """Return the element at the end of a way; the post where it has none."""
    node = box
    for step in way:
        name, _, place = step.rpartition("#")
        same = [child for child in node.iterchildren("*") if step_of(child) == name]
        if len(same) < int(place):
            return box
        node = same[int(place) - 1]
    return node
