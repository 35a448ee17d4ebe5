"""Features of a block of text and of its page, as numbers, for the models that find the main content.

:data:`BLOCK_NAMES` are the names of the numbers of a block in their order; those of the page follow. The models of
``block_model.json`` and ``kind_model.json`` are trained on exactly these: train them again after any change of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

from scrapy_ext.server.extraction.auto.content.blocks import ArticleMarks, Blocks, Box, TextBlock
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page.signs import address_signs, markup_signs, og_signs
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("page_parts")
# Names of parts of pages, in groups, which match at the beginning of a word in a class or id.
NAME_GROUPS: Final = _VOCABULARY.table("name_groups")
# Words of headings above parts that are rarely or only sometimes content.
HEADING_GROUPS: Final = _VOCABULARY.table("heading_groups")
NAME_BITS: Final = {name: 1 << place for place, name in enumerate(NAME_GROUPS)}
HEADING_BITS: Final = {name: 1 << place for place, name in enumerate(HEADING_GROUPS)}
#: Longest names and headings that are read, in characters.
MAX_NAMES_LENGTH: Final = 300


def _grouped(groups: dict[str, str], before: str, after: str) -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(f'(?P<{name}>{words})' for name, words in groups.items())}){after}")


_NAMED: Final = _grouped(NAME_GROUPS, r"(?<![a-z])", "")
_SAYS: Final = _grouped(HEADING_GROUPS, r"(?<!\w)", r"(?!\w)")


# Names such as ``row`` and ``container`` are on many pages, and most names on many pages of a site.
@lru_cache(maxsize=8192)
def name_bits(names: str) -> int:
    """Return the groups that these names (in lower case) belong to, a bit for each."""
    return _bits(_NAMED, NAME_BITS, names)


def heading_bits(text: str) -> int:
    """Return the groups that the words of a heading belong to, a bit for each."""
    return _bits(_SAYS, HEADING_BITS, text.casefold())


def _bits(pattern: re.Pattern[str], bits: dict[str, int], text: str) -> int:
    found = 0
    for match in pattern.finditer(text[:MAX_NAMES_LENGTH]):
        found |= bits[match.lastgroup or ""]
    return found


#: Texts of fewer words may be labels with a price.
LABEL_WORDS: Final = 14
#: Blocks of at least as many words, few of them in links, are prose.
PROSE_WORDS: Final = 15
_PRICE = re.compile(r"[$€£¥₹]\s?\d|\d\s?(?:[$€£¥₹]|USD|EUR|GBP|kr\b|zł)")


def page_features(page: Page, blocks: Blocks, article: ArticleMarks) -> dict[str, float]:
    """Return the numbers of a page, by name."""
    words = max(1, blocks.root.words)
    prose = sum(block.words for block in blocks if block.words >= PROSE_WORDS and 3 * block.link_words < block.words)
    tags = [block.box.tag for block in blocks]
    count = max(1, len(tags))
    return {
        "page_words": math.log1p(words),
        "page_blocks": math.log1p(len(blocks)),
        "page_links": blocks.root.link_words / words,
        "page_prose": prose / words,
        "page_prose_words": math.log1p(prose),
        "page_p": tags.count("p") / count,
        "page_li": tags.count("li") / count,
        "page_headings": sum(tag in HEADINGS for tag in tags) / count,
        "page_h1": float(tags.count("h1")),
        "page_pre": math.log1p(tags.count("pre")),
        "page_articles": math.log1p(page.outline.tags.count("article")),
        "page_main": float("main" in page.outline.tags),
        "page_prices": math.log1p(
            sum(bool(block.words < LABEL_WORDS and _PRICE.search(block.text)) for block in blocks)
        ),
        **_of_page(og_signs(page)),
        **_article_features(blocks, article, words, prose),
        **_of_page({**markup_signs(page), **address_signs(page)}),
    }


def _of_page(signs: dict[str, float]) -> dict[str, float]:
    return {f"page_{name}": value for name, value in signs.items()}


def _article_features(blocks: Blocks, article: ArticleMarks, words: int, prose: int) -> dict[str, float]:
    taken = sum(block.words for block, share in zip(blocks, article.shares, strict=True) if share > 0.5)
    return {
        "page_article_words": math.log1p(taken),
        "page_article_share": taken / words,
        "page_article_of_prose": min(2.0, taken / max(1, prose)),
        "page_article_marked": float(article.is_marked),
    }


#: Boxes above a block whose sums are features of it.
_STEPS: Final = (0, 1, 2, 3, 5)
_PARTS: Final = (
    "nav", "footer", "header", "aside", "main", "article", "section", "form", "button", "ul", "ol", "table",
    "figure", "dl",
)  # fmt: skip
_PART_BITS: Final = {tag: 1 << place for place, tag in enumerate(_PARTS)}
_ROLES: Final = {
    "navigation": "nav", "banner": "header", "contentinfo": "footer", "complementary": "aside", "main": "main",
    "search": "form", "article": "article", "dialog": "form", "alertdialog": "form", "listbox": "form",
    "menu": "nav", "menubar": "nav",
}  # fmt: skip
_TAGS: Final = (
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "div", "td", "th", "dt", "dd", "section", "article", "button",
    "option", "pre", "blockquote", "figcaption", "summary", "legend", "header", "footer", "nav", "aside", "main",
    "form", "body",
)  # fmt: skip
_TAG_CODES: Final = {tag: float(code) for code, tag in enumerate(_TAGS, 1)}
_HEADING_LEVELS: Final = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_ENDS: Final = frozenset('.!?。！？…"”')
_WORD = re.compile(r"\w+")
#: Characters of a text whose kinds are counted.
_SAMPLE: Final = 120
#: Blocks on either side that count as near.
_NEAR: Final = 6
_TITLE_WORDS: Final = 25
_FAR: Final = 50
_NO_WAY: Final = 99.0

BLOCK_NAMES: Final = (
    "words", "links", "word_length", "digits", "upper", "end", "commas", "tag", "level", "in_span", "hidden",
    "depth", "before", "passed", "after", "at", "to_h1", "h1_level", "core_level", "best_level", "title", "copies",
    "copy", "group", "group_words", "group_links", "since_heading", "heading_level", "near_words", "near_links",
    "next_words", "next_links", "previous_words", "previous_links", "twins", "twin_words",
    *(f"box{step}_{of}" for step in _STEPS for of in ("words", "links", "each")), *(f"in_{tag}" for tag in _PARTS),
    *(f"name_{name}" for name in NAME_BITS), *(f"under_{name}" for name in HEADING_BITS),
    "article_share", "article_box", "article_noise",
)  # fmt: skip

_DIGITS, _CAPITALS, _SMALL = (signs.encode() for signs in (digits, ascii_uppercase, ascii_lowercase))
_log = math.log1p


class _Inherited:
    """Features of a box that its blocks inherit, computed once for a box."""

    __slots__ = ("above", "best", "core", "h1", "names", "own", "parts", "sums", "twin_words", "twins")

    names: int
    parts: int
    twins: int
    twin_words: int
    #: The levels of the first box around it, or itself, that contains the core, the best parent, the first <h1>.
    core: float
    best: float
    h1: float

    def __init__(self, box: Box, above: _Inherited | None, own: int) -> None:
        self.own, self.above = own, above
        words = box.words or 1
        self.sums = (_log(box.words), box.link_words / words, words / (box.blocks or 1))
        self.names = own | (above.names if above else 0)
        part = _PART_BITS.get(box.tag, 0) | _PART_BITS.get(_ROLES.get(box.attributes.get("role") or "", ""), 0)
        self.parts = part | (above.parts if above else 0)
        # Of the repeated boxes around it the one with the most siblings, and of equals the innermost.
        self.twins, self.twin_words = (above.twins, above.twin_words) if above else (0, 0)
        if 1 < box.twins >= self.twins:
            self.twins, self.twin_words = box.twins, box.words

    def surroundings(self) -> list[float]:
        """Return the sums of the box, and of those some steps above it."""
        numbers: list[float] = []
        around, at = self, 0
        for step in _STEPS:
            while at < step and around.above is not None:
                around, at = around.above, at + 1
            numbers += around.sums
        return numbers


def _flags_of(bits: tuple[int, ...]) -> Callable[[int, int], tuple[float, ...]]:
    """Return a function that returns 2 for each bit of an element's own, 1 for one of an element around it, else 0."""

    @lru_cache(maxsize=4096)
    def flags(own: int, inherited: int) -> tuple[float, ...]:
        return tuple(2.0 if own & bit else 1.0 if inherited & bit else 0.0 for bit in bits)

    return flags


_part_flags, _name_flags, _heading_flags = map(
    _flags_of, (tuple(_PART_BITS.values()), tuple(NAME_BITS.values()), tuple(HEADING_BITS.values()))
)


def _signs_of(text: str) -> tuple[int, int, int]:
    """Return the numbers of letters, digits and capital letters of a text."""
    if not text.isascii():
        return sum(map(str.isalpha, text)), sum(map(str.isdigit, text)), sum(map(str.isupper, text))
    # A tenth of the time.
    signs = text.encode()
    without_digits = signs.translate(None, _DIGITS)
    without_capitals = without_digits.translate(None, _CAPITALS)
    capitals = len(without_digits) - len(without_capitals)
    small = len(without_capitals) - len(without_capitals.translate(None, _SMALL))
    return capitals + small, len(signs) - len(without_digits), capitals


class _Group:
    __slots__ = ("blocks", "link_words", "words")

    def __init__(self) -> None:
        self.blocks = self.words = self.link_words = 0

    def add(self, block: TextBlock) -> None:
        self.blocks += 1
        self.words += block.words
        self.link_words += block.link_words


class Features:
    """The numbers of the blocks of a page: ``rows`` has a row for each block, ``of_page`` is the same for all of them.

    ``names`` are those of the numbers of a row and of the page after them, ``names_of_page`` those of the page alone.
    """

    def __init__(self, page: Page, blocks: Blocks, article: ArticleMarks) -> None:
        self._blocks = blocks
        self._article = article
        self._inherited: dict[Box, _Inherited] = {}
        self._title = set(_WORD.findall((page.title or "").casefold()))
        self._h1 = next((at for at, block in enumerate(blocks) if block.box.tag == "h1"), None)
        self._h1_levels = {} if self._h1 is None else _levels(blocks[self._h1].box)
        self._core = {box: float(level) for level, box in enumerate(reversed(_core(blocks)))}
        self._best = _levels(_best_parent(blocks))
        of_page = page_features(page, blocks, article)
        self.names_of_page = tuple(of_page)
        self.names = (*BLOCK_NAMES, *self.names_of_page)
        self.of_page = list(of_page.values())
        self.rows = self._rows()

    def _rows(self) -> list[list[float]]:
        blocks = self._blocks
        total = max(1, blocks.root.words)
        groups, keys = _groups(blocks)
        copies: dict[str, int] = {}
        for block in blocks:
            copies[block.text] = copies.get(block.text, 0) + 1
        seen: dict[str, int] = {}
        near, article = _Near(blocks), self._article
        passed = since_heading = level = under = 0
        rows = []
        for at, block in enumerate(blocks):
            box, words = block.box, block.words
            group = groups[keys[at]]
            inherited = self._of(box)
            own = inherited.own | (name_bits(block.inline[:MAX_NAMES_LENGTH]) if block.inline else 0)
            copy = seen.get(block.text, 0)
            seen[block.text] = copy + 1
            row = [
                *self._of_text(block), float(block.in_span), float(box.hidden), float(box.depth),
                passed / total, _log(passed), _log(max(0, total - passed - words)), at / len(blocks),
                self._to_h1(at), inherited.h1, inherited.core, inherited.best, self._of_title(block),
                float(copies[block.text]), float(copy),
                _log(group.blocks), group.words / group.blocks, group.link_words / (group.words or 1),
                _log(since_heading), float(level), *near.of(at),
                _log(inherited.twins), _log(inherited.twin_words), *inherited.surroundings(),
                *_part_flags(0, inherited.parts), *_name_flags(own, inherited.names), *_heading_flags(0, under),
                article.shares[at], float(article.inside[at]), float(article.noise[at]),
            ]  # fmt: skip
            rows.append(row)
            passed += words
            since_heading += words
            if box.tag in _HEADING_LEVELS:
                under, level, since_heading = heading_bits(block.text), _HEADING_LEVELS[box.tag], 0
        return rows

    def _of_text(self, block: TextBlock) -> tuple[float, ...]:
        text, words = block.text, block.words
        sample = text[:_SAMPLE]
        letters, numerals, capitals = _signs_of(sample)
        return (
            _log(words), block.link_words / words, len(text) / words, numerals / len(sample), capitals / (letters or 1),
            float(text[-1] in _ENDS), _log(text.count(",") + text.count("，")), _TAG_CODES.get(block.box.tag, 0.0),
            float(_HEADING_LEVELS.get(block.box.tag, 0)),
        )  # fmt: skip

    def _to_h1(self, at: int) -> float:
        return -_NO_WAY if self._h1 is None else float(max(-_FAR, min(_FAR, at - self._h1)))

    def _of_title(self, block: TextBlock) -> float:
        if block.words >= _TITLE_WORDS or not self._title:
            return 0.0
        return len(self._title.intersection(_WORD.findall(block.text.casefold()))) / len(self._title)

    def _of(self, box: Box) -> _Inherited:
        found = self._inherited.get(box)
        if found is None:
            above = self._of(box.parent) if box.parent else None
            # The names of <body> say nothing about its parts.
            found = self._inherited[box] = _Inherited(
                box, above, name_bits(box.names[:MAX_NAMES_LENGTH]) if box.parent else 0
            )
            found.core = self._core.get(box, above.core if above else _NO_WAY)
            found.best = self._best.get(box, above.best if above else _NO_WAY)
            found.h1 = self._h1_levels.get(box, above.h1 if above else -1.0)
        return found


class _Near:
    def __init__(self, blocks: Blocks) -> None:
        self._sums = [(0, 0)]
        for block in blocks:
            words, links = self._sums[-1]
            self._sums.append((words + block.words, links + block.link_words))
        self._own = [(_log(block.words), block.link_words / block.words) for block in blocks]

    def of(self, at: int) -> tuple[float, ...]:
        last = len(self._own) - 1
        first_words, first_links = self._sums[max(0, at - _NEAR)]
        end_words, end_links = self._sums[min(last, at + _NEAR) + 1]
        words, links = end_words - first_words, end_links - first_links
        after = self._own[at + 1] if at < last else (0.0, 0.0)
        before = self._own[at - 1] if at else (0.0, 0.0)
        return _log(words), links / (words or 1), *after, *before


_Key = tuple[str, str, str]


def _groups(blocks: Blocks) -> tuple[dict[_Key, _Group], list[_Key]]:
    groups: dict[_Key, _Group] = {}
    keys = []
    for block in blocks:
        box = block.box
        key = (box.tag, box.names, box.parent.names if box.parent else "")
        keys.append(key)
        if key not in groups:
            groups[key] = _Group()
        groups[key].add(block)
    return groups, keys


def _core(blocks: Blocks) -> list[Box]:
    """Return the boxes from the root down that each contain more than half of the page's words outside of links."""
    found, enough = [blocks.root], (blocks.root.words - blocks.root.link_words) / 2
    for box in blocks.boxes:
        if box.parent is found[-1] and box.words - box.link_words > enough:
            found.append(box)
    return found


def _best_parent(blocks: Blocks) -> Box:
    """Return the box with the most prose in it, or in boxes one or two levels further in."""
    scores: dict[Box, float] = {}
    for block in blocks:
        if block.words >= 12 and 2 * block.link_words < block.words:
            box: Box | None = block.box
            for share in (1.0, 0.6, 0.3):
                if box is not None:
                    scores[box] = scores.get(box, 0.0) + share * block.words**0.75
                    box = box.parent
    return max(scores, key=lambda box: scores[box], default=blocks.root)


def _levels(box: Box) -> dict[Box, float]:
    return {around: float(level) for level, around in enumerate(box.chain())}
