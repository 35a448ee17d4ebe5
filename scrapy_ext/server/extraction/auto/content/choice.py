"""Choice of the blocks that are content: by the chance of each block, and by the kind of page.

The chances are those of two models: gradient-boosted trees over the features of pages and blocks. The trees are plain
numbers in ``block_model.json`` and ``kind_model.json``, made by ``benchmarks/quality/train_block_model.py`` from
labelled pages (the labels are those of the WCXB of Murrough Foley, CC-BY-4.0; the models contain nothing of the pages).
A tree is a leaf (a number, summed over all trees) or ``[feature, threshold, below, above]``, where rows with a number
of at most ``threshold`` continue with ``below``.

The text of an article is what the rules for articles take, as far as the page is one: they leave out more of what is
around it. Pages of forums and products show much that is not their content, so that a doubtful block is taken less
easily there. A text is taken as often as it stands there, but for copies at places for such, as a quoted post is.
Dialogs about cookies are never taken: they can have more sentences than the page, and services that many sites use name
them in the same way.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import islice
from typing import Any, Final, NamedTuple

from scrapy_ext.server.extraction.auto.content.blocks import Box, TextBlock
from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.auto.page.text import Found
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

BLOCK_DATA: Final = "block_model.json"
KIND_DATA: Final = "kind_model.json"
#: A block whose sum over the first trees is further than SURE from zero gets twice that, instead of the sum over all
#: trees: this saves a third of the time, and changes the choice for two words in 10,000.
FIRST_TREES: Final = 60
SURE: Final = 2.0


@dataclass(frozen=True)
class BlockModel:
    """The names of the numbers of a row, in order, and the trees over them."""

    features: tuple[str, ...]
    trees: tuple[Any, ...]

    def likelihoods(self, rows: Sequence[Sequence[float]], of_page: Sequence[float] = ()) -> list[float]:
        """Return the probability (0 to 1) of each row's block to be content; ``of_page`` is appended to every row."""
        begin, rest = self._sums
        found = []
        for row in rows:
            numbers = (*row, *of_page)
            total = begin(*numbers)
            total = total + rest(*numbers) if -SURE <= total <= SURE else 2 * total
            found.append(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))))
        return found

    @cached_property
    def _sums(self) -> tuple[Callable[..., float], Callable[..., float]]:
        """The sums over the first trees, and over the others."""
        first, others = self.trees[:FIRST_TREES], self.trees[FIRST_TREES:]
        return _compiled(first, len(self.features)), _compiled(others, len(self.features))


@dataclass(frozen=True)
class KindModel:
    """The names of the numbers of a page, in order, and the trees of each kind over them."""

    features: tuple[str, ...]
    trees: Mapping[str, tuple[Any, ...]]

    def likelihoods(self, of_page: Sequence[float]) -> dict[str, float]:
        """Return the probability of each kind of page; together they are 1."""
        scores = {kind: sum_of(*of_page) for kind, sum_of in self._sums.items()}
        highest = max(scores.values())
        weights = {kind: math.exp(score - highest) for kind, score in scores.items()}
        total = sum(weights.values())
        return {kind: weight / total for kind, weight in weights.items()}

    @cached_property
    def _sums(self) -> dict[str, Callable[..., float]]:
        return {kind: _compiled(trees, len(self.features)) for kind, trees in self.trees.items()}


def _compiled(trees: Sequence[Any], numbers: int) -> Callable[..., float]:
    """Return the sum over trees as a function of so many numbers.

    Compiled, a tree takes a quarter of the time of a walk over its tuples.
    """
    names = ", ".join(f"n{feature}" for feature in range(numbers))
    source = f"lambda {names}: {' + '.join(['0.0', *map(_expression, trees)])}"
    function: Callable[..., float] = eval(source, {"__builtins__": {}})  # noqa: S307 - of numbers alone
    return function


def _expression(node: Any) -> str:
    if node.__class__ is not tuple:
        return repr(float(node))
    feature, threshold, below, above = node
    return f"({_expression(below)} if n{int(feature)} <= {float(threshold)!r} else {_expression(above)})"


@cache
def block_model() -> BlockModel:
    """Return the model of blocks of the package, read once."""
    return read_block_model(_text_of(BLOCK_DATA))


@cache
def kind_model() -> KindModel:
    """Return the model of kinds of pages of the package, read once."""
    return read_kind_model(_text_of(KIND_DATA))


def read_block_model(text: str) -> BlockModel:
    """Return the model of blocks that a file holds."""
    data = json.loads(text)
    return BlockModel(tuple(data["features"]), tuple(map(_tree, data["trees"])))


def read_kind_model(text: str) -> KindModel:
    """Return the model of kinds of pages that a file holds."""
    data = json.loads(text)
    trees = {kind: tuple(map(_tree, of_kind)) for kind, of_kind in data["trees"].items()}
    return KindModel(tuple(data["features"]), trees)


def _text_of(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _tree(node: Any) -> Any:
    """Convert a tree to tuples of numbers."""
    if not isinstance(node, list):
        return float(node)
    feature, threshold, below, above = node
    return (int(feature), float(threshold), _tree(below), _tree(above))


# ── choice of the blocks: by the chance of each block, and by the kind of page ──

#: Kinds of pages with rules of their own, by their names in the model of kinds.
ARTICLE: Final = "article"
DOCUMENTATION: Final = "documentation"
#: The exponent of the chances of blocks by kind of page: above 1, doubtful blocks are taken less easily.
CARE: Final = {"forum": 1.4, "product": 1.4, DOCUMENTATION: 1.0}
USUAL_CARE: Final = 1.1
#: With less than this share of the words that the model takes, the rules for articles have missed the text, rather than
#: left out what is around it.
TOO_LITTLE: Final = 0.3
#: With this chance of documentation, copies stay: manuals repeat their examples.
SURE_OF_MANUAL: Final = 0.4


class Candidate(NamedTuple):
    """A block as the choice sees it."""

    words: int
    #: The chance to be content by the model, from 0 to 1.
    chance: float
    #: The share that the rules for articles take, from 0 to 1.
    of_article: float
    #: Whether it is a copy of another block at a place for such (:func:`copies`).
    is_copy: bool = False
    #: Whether it is in a dialog about cookies (:func:`in_consent_dialogs`).
    is_consent: bool = False


def choose(candidates: Sequence[Candidate], kinds: Mapping[str, float]) -> list[bool]:
    """Return for each block whether it is content; ``kinds`` are the chances of the kinds of page."""
    candidates = [each._replace(chance=0.0, of_article=0.0) if each.is_consent else each for each in candidates]
    words = [each.words for each in candidates]
    weight = _weight_of_article(candidates, kinds.get(ARTICLE, 0.0))
    care = sum(chance * CARE.get(kind, USUAL_CARE) for kind, chance in kinds.items())
    chances = [((1 - weight) * each.chance + weight * each.of_article) ** care for each in candidates]
    taken = most_likely(chances, words)
    if kinds.get(DOCUMENTATION, 0.0) >= SURE_OF_MANUAL:
        return taken
    return [is_taken and not each.is_copy for is_taken, each in zip(taken, candidates, strict=True)]


def _weight_of_article(candidates: Sequence[Candidate], chance: float) -> float:
    taken = most_likely([each.chance**USUAL_CARE for each in candidates], [each.words for each in candidates])
    by_model = sum(each.words for each, is_taken in zip(candidates, taken, strict=True) if is_taken)
    by_rules = sum(each.words for each in candidates if each.of_article > 0.5)
    # Squared, as the rules for articles do harm on other pages.
    return chance**2 if by_rules >= TOO_LITTLE * by_model else 0.0


def most_likely(chances: Sequence[float], words: Sequence[int]) -> list[bool]:
    """Choose the blocks with the highest expected F1 of their words.

    With reliable blocks on a page, a doubtful one adds little and may cost much; where all are doubtful, half of them
    are better than none. So the threshold depends on the page: it is half of the highest F1.
    """
    order = sorted(range(len(chances)), key=lambda at: -chances[at])
    expected = sum(chance * count for chance, count in zip(chances, words, strict=True))
    best = found = taken = 0.0
    least = 2.0
    for at in order:
        found += chances[at] * words[at]
        taken += words[at]
        score = 2 * found / (taken + expected)
        if score > best:
            best, least = score, chances[at]
    return [chance >= least for chance in chances]


_CONSENT_NAMES: Final = load_vocabulary("page_parts").words("consent_dialog")
_CONSENT_TEXT, _CONSENT_STATE = load_vocabulary("page_parts").patterns("consent_text", "consent_state")
_COOKIES: Final = load_vocabulary("page_parts").pattern("about_cookies", re.IGNORECASE)
#: Main headings that may say that a page is about cookies, and the characters of each that are read.
MAX_MAIN_HEADINGS: Final = 5
MAX_HEADING_LENGTH: Final = 300
#: What is in no dialog: a box around it is of the page, which can have the name of a dialog while one is open.
_OF_PAGE: Final = frozenset({"body", "main", "article", "h1"})


def in_consent_dialogs(page: Page, blocks: Sequence[TextBlock]) -> list[bool]:
    """Return for each block whether it is in a dialog about cookies.

    A page about cookies has none, as its own text could be taken for it; nor is a dialog all that a page has.
    """
    outline = page.outline
    named = page.named(*_CONSENT_NAMES)
    if not named or _is_about_cookies(page):
        return [False] * len(blocks)
    of_page = [position for position, tag in enumerate(outline.tags) if tag in _OF_PAGE]
    inside: set[int] = set()
    done = 0
    for node in named:
        start = outline.order[node]
        names = [name for name in page.names(node).split() if name.startswith(_CONSENT_NAMES)]
        # Elements come in the order of the page: one inside of a dialog, or of a text about cookies, belongs to it.
        if start < done or not names or any(map(_CONSENT_STATE.search, names)):
            continue
        end = outline.ends[start]
        if any(map(_CONSENT_TEXT.search, names)):
            done = end
        elif bisect_left(of_page, start) == bisect_left(of_page, end):
            inside.update(range(start, end))
            done = end
    found = [block.pieces[0] // 2 in inside for block in blocks]
    return [False] * len(blocks) if all(found) else found


def _is_about_cookies(page: Page) -> bool:
    headings = (node_text(node, MAX_HEADING_LENGTH) for node in islice(page.tree.iter("h1"), MAX_MAIN_HEADINGS))
    return any(map(_COOKIES.search, (page.title or "", *headings)))


# Copies of a text at places where pages put what they show elsewhere: quotes, and versions for other screens.
#
# Such a place decides, and not that two texts are equal: the refrain of a song, and a date that several entries share,
# are as often in the content as the page has them.


#: The least words of a text that is a copy, rather than the same label of two things.
COPIED_WORDS: Final = 10
#: Earlier places of a text that are compared with a later one.
MAX_PLACES: Final = 8
MAX_NAMES_LENGTH: Final = 2_000
_VARIANT: Final = load_vocabulary("page_parts").pattern("variant")
_QUOTE: Final = re.compile(r"(?:^|[\s_-])(?:ips|bb|post|message)?(?:block)?quot(?:e|ed|ation)(?:$|[\s_-])")


def copies(blocks: Sequence[TextBlock]) -> list[bool]:
    """Return for each block whether it is such a copy of another one."""
    is_variant = Found(_VARIANT)
    found = [False] * len(blocks)
    places: dict[str, list[int]] = {}
    for at, block in enumerate(blocks):
        if block.words < COPIED_WORDS or block.box.tag == "pre":
            continue
        earlier = places.setdefault(block.text, [])
        for other in earlier[:MAX_PLACES]:
            ours, others = _apart(block.box, blocks[other].box)
            if _is_quoted(ours) != _is_quoted(others):
                found[at if _is_quoted(ours) else other] = True
            elif is_variant[_names(ours)] or is_variant[_names(others)]:
                found[at] = True
        earlier.append(at)
    return found


def _apart(first: Box, second: Box) -> tuple[list[Box], list[Box]]:
    """Return the boxes around each of two that are not around the other."""
    around_first, around_second = first.chain(), second.chain()
    while around_first and around_second and around_first[-1] is around_second[-1]:
        around_first.pop()
        around_second.pop()
    return around_first, around_second


def _is_quoted(boxes: Iterable[Box]) -> bool:
    return any(box.tag == "blockquote" or _QUOTE.search(box.names) for box in boxes)


def _names(boxes: Iterable[Box]) -> str:
    return " ".join(box.names for box in boxes if box.names)[:MAX_NAMES_LENGTH]
