"""Evaluation of the XPath that rules may have (:mod:`scrapy_ext.api.extraction.xpath`), with a bound on its work.

Each step visits an element once, however many elements it starts from: what lies below, beside or above an element that
was visited is not visited again. Where positions count, and inside of predicates, that is not possible; the bound then
ends the evaluation.

Most steps search the whole page for a class or an attribute. They read the outline of the page, which takes a hundredth
of the time of a predicate for each element.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.api.extraction.xpath import Call, Expression, Literal, Operation, Path, Step, is_positional
from scrapy_ext.server.extraction.auto.page import Page

#: Elements, texts and functions that the rules of one page may visit and call in all: 1 to 2 s. Rules for ordinary
#: pages need some thousand each.
MAX_WORK: Final = 1_000_000
#: Longest text of an element that is kept for further predicates, in characters.
MAX_KEPT: Final = 10_000
#: Characters of text, and elements of the outline, that count as one visit.
_PER_VISIT: Final = 100
#: Characters for translate(), which makes a table of them.
_PER_VISIT_OF_TABLE: Final = 10
_OF_OUTLINE: Final = 20
#: Elements that are read as the text of one around them, and count as one visit.
_PER_READ: Final = 2


class TooMuchWorkError(Exception):
    """The rules of a page need more than :data:`MAX_WORK`."""


class Selected(NamedTuple):
    """An element of the page, or one of its attributes or texts."""

    node: HtmlElement
    #: The value of the attribute, or the text; None: the element itself.
    text: str | None = None
    #: What stands behind the path of the element: ``/@href``, ``/text()``.
    suffix: str = ""
    #: Where a text stands, as a key of sorting; empty for an element or an attribute.
    place: tuple[int, ...] = ()

    @property
    def identity(self) -> tuple[HtmlElement, str, tuple[int, ...]]:
        """Key that no other element, attribute or text of the page has."""
        return self.node, self.suffix, self.place


class _Context(NamedTuple):
    item: Selected
    position: int = 1
    size: int = 1


_Value = str | float | bool | list[Selected]


class Evaluator:
    """Evaluator of expressions on one page."""

    def __init__(self, page: Page) -> None:
        self._root = Selected(page.tree)
        self._outline = page.outline
        self._order = page.order
        #: Visits and calls so far.
        self.work = 0
        self._texts: dict[HtmlElement, str] = {}

    def select(self, expression: Expression) -> list[Selected]:
        """Return what an expression selects, in the order of the page; raises :class:`TooMuchWorkError`."""
        found = self._of(expression, _Context(self._root))
        if not isinstance(found, list):
            return []
        return self._sorted(found)

    def _sorted(self, items: list[Selected]) -> list[Selected]:
        return sorted(items, key=lambda item: item.place or (self._order.get(item.node, 0),))

    def spend(self, visits: int = 1) -> None:
        """Count work before it is done; raises :class:`TooMuchWorkError`."""
        if self.work + visits > MAX_WORK:
            raise TooMuchWorkError
        self.work += visits

    def outermost(self, items: list[Selected]) -> list[Selected]:
        """Return selected elements and texts that lie in none of the elements, of items in the order of the page."""
        kept, end = [], -1
        for item in items:
            position = self._order[item.node]
            is_element = item.text is None
            if position >= end or (not is_element and not item.place):
                kept.append(item)
                end = self._outline.ends[position] if is_element else end
        return kept

    def spend_on(self, node: HtmlElement) -> None:
        """Count the reading of an element with all that is in it."""
        position = self._order[node]
        self.spend((self._outline.ends[position] - position) // _PER_READ + 1)

    # ── values ──

    def _of(self, tree: Expression, context: _Context) -> _Value:
        self.spend()
        match tree:
            case Literal(value):
                return value
            case Path():
                return self._path(tree, context.item)
            case Call(function, arguments):
                return self._call(function, arguments, context)
        return self._operation(tree, context)

    def _operation(self, tree: Operation, context: _Context) -> _Value:
        sign = tree.sign
        left = self._of(tree.left, context)
        if sign == "and":
            return self._truth(left) and self._truth(self._of(tree.right, context))
        if sign == "or":
            return self._truth(left) or self._truth(self._of(tree.right, context))
        right = self._of(tree.right, context)
        if sign == "|":
            return self._united(left, right)
        if sign in ("+", "-", "mod"):
            return _computed(sign, self._number(left), self._number(right))
        return self._compared(sign, left, right)

    def _compared(self, sign: str, left: _Value, right: _Value) -> bool:
        """Return whether any value of one side compares to any of the other. Of two paths, one is compared as text."""
        if isinstance(left, bool) or isinstance(right, bool):
            return _compare(sign, float(self._truth(left)), float(self._truth(right)))
        lefts, rights = (self._each(side) for side in (left, right))
        self.spend(len(lefts) + len(rights))
        is_number = sign not in ("=", "!=") or isinstance(left, float) or isinstance(right, float)
        if is_number:
            numbers = [_number_of(text) for text in rights]
            self.spend(len(lefts) * len(numbers))
            return any(_compare(sign, _number_of(text), number) for text in lefts for number in numbers)
        if sign == "=":
            return not set(lefts).isdisjoint(rights)
        return len({*lefts, *rights}) > 1 and bool(lefts) and bool(rights)

    def _each(self, value: _Value) -> list[str]:
        if isinstance(value, list):
            return [self._text_of(item) for item in value]
        return [self._text(value)]

    def _text(self, value: _Value) -> str:
        if isinstance(value, list):
            return self._text_of(value[0]) if value else ""
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        return _digits(value)

    def _number(self, value: _Value) -> float:
        return float(value) if isinstance(value, float | bool) else _number_of(self._text(value))

    def _truth(self, value: _Value) -> bool:
        return bool(value) and not (isinstance(value, float) and math.isnan(value))

    def _text_of(self, item: Selected) -> str:
        if item.text is not None:
            return item.text
        known = self._texts.get(item.node)
        if known is None:
            pieces = []
            for piece in item.node.itertext():
                self.spend(1 + len(piece) // _PER_VISIT)
                pieces.append(piece)
            known = "".join(pieces)
            if len(known) <= MAX_KEPT:
                self._texts[item.node] = known
        return known

    def _call(self, function: str, arguments: tuple[Expression, ...], context: _Context) -> _Value:
        if function == "position":
            return float(context.position)
        if function == "last":
            return float(context.size)
        values: list[_Value] = [self._of(each, context) for each in arguments] or [[context.item]]
        if function == "not":
            return not self._truth(values[0])
        if function == "count":
            return float(len(values[0])) if isinstance(values[0], list) else 0.0
        if function == "name":
            first = values[0][0] if isinstance(values[0], list) and values[0] else None
            return str(first.node.tag) if first is not None and first.text is None else ""
        if function == "substring":
            return _substring(self._text(values[0]), [self._number(each) for each in values[1:]])
        texts = [self._text(each) for each in values]
        self.spend(sum(map(len, texts)) // (_PER_VISIT if function != "translate" else _PER_VISIT_OF_TABLE))
        return _of_texts(function, texts)

    # ── paths ──

    def _path(self, path: Path, item: Selected) -> list[Selected]:
        found = [self._root if path.absolute else item]
        steps = path.steps
        # The root of an absolute path is the document, whose child is the element html.
        if path.absolute and steps and steps[0].axis in ("child", "descendant", "descendant-or-self"):
            first = steps[0]
            axis = "self" if first.axis == "child" else "descendant-or-self"
            found = self._step(first._replace(axis=axis), found)
            if first.axis == "descendant-or-self" and len(steps) > 1 and steps[1].axis == "child":
                # ``//html``: it is a child of the document.
                html = self._step(steps[1]._replace(axis="self"), [self._root])
                return self._steps(steps[2:], self._united(html, self._step(steps[1], found)))
            steps = steps[1:]
        return self._steps(steps, found)

    def _steps(self, steps: Iterable[Step], found: list[Selected]) -> list[Selected]:
        for step in steps:
            if not found:
                break
            found = self._step(step, found)
        return found

    def _step(self, step: Step, items: list[Selected]) -> list[Selected]:
        visited: set[HtmlElement] = set()
        found: dict[tuple[HtmlElement, str, tuple[int, ...]], Selected] = {}
        is_shared = not any(map(is_positional, step.predicates))
        if is_shared and step.axis.startswith("descendant"):
            items = self._outermost(items)
        for item in items:
            candidates = list(self._candidates(step, item, visited if is_shared else set()))
            for predicate in step.predicates:
                candidates = self._filtered(predicate, candidates)
            self.spend(len(candidates))
            for each in candidates:
                found.setdefault(each.identity, each)
        return list(found.values())

    def _united(self, *sides: _Value) -> list[Selected]:
        found = [item for side in sides if isinstance(side, list) for item in side]
        self.spend(len(found))
        return list({item.identity: item for item in found}.values())

    def _outermost(self, items: list[Selected]) -> list[Selected]:
        """Return the items that lie in none of the others, in the order of the page."""
        self.spend(len(items))
        return self.outermost(self._sorted(items))

    def _filtered(self, predicate: Expression, items: list[Selected]) -> list[Selected]:
        kept, size = [], len(items)
        for position, item in enumerate(items, 1):
            value = self._of(predicate, _Context(item, position, size))
            # A number is a position.
            if value == position if isinstance(value, float) else self._truth(value):
                kept.append(item)
        return kept

    def _candidates(self, step: Step, item: Selected, visited: set[HtmlElement]) -> Iterator[Selected]:
        node, test = item.node, step.test
        if item.text is not None:
            yield from self._from_text(step, item, visited)
            return
        if step.axis == "attribute":
            names = node.keys() if test == "*" else [test]
            for name in names:
                self.spend()
                if (value := node.get(name)) is not None:
                    self.spend(len(value) // _PER_VISIT)
                    yield Selected(node, value, f"/@{name}")
            return
        if test in ("text()", "node()") and step.axis != "self":
            yield from self._nodes(step, node, visited)
            return
        if step.axis.startswith("descendant"):
            yield from map(Selected, self._below(step, node))
            return
        for each in self._walk(step.axis, node, visited):
            if test in ("*", "node()") or each.tag == test:
                yield Selected(each)

    def _from_text(self, step: Step, item: Selected, visited: set[HtmlElement]) -> Iterator[Selected]:
        """Yield what a step selects from a text or an attribute: their parent is the element that has them."""
        is_text = bool(item.place)
        if step.axis in ("self", "ancestor-or-self", "descendant-or-self") and (
            step.test == "node()" or (step.test == "text()" and is_text)
        ):
            yield item
        if step.axis == "parent":
            above: Iterable[HtmlElement] = [item.node]
        else:
            above = self._walk("ancestor-or-self", item.node, visited) if step.axis.startswith("ancestor") else []
        yield from (Selected(each) for each in above if step.test in ("*", "node()", each.tag))
        if is_text and step.axis.endswith("sibling"):
            beside = self._beside(step.axis, item.node, 2 * item.place[-1])
            yield from (each for each in beside if _is(each, step.test))

    def _nodes(self, step: Step, node: HtmlElement, visited: set[HtmlElement]) -> Iterator[Selected]:
        """Yield the texts, or texts and elements, that a step selects from an element."""
        if step.axis.endswith("sibling"):
            parent = node.getparent()
            found = self._beside(step.axis, parent, 2 * parent.index(node) + 1) if parent is not None else []
            yield from (each for each in found if _is(each, step.test))
            return
        texts = list(self._text_nodes(step.axis, node))
        if step.test == "text()":
            yield from texts
        elif step.axis.startswith("descendant"):
            yield from self._sorted([*map(Selected, self._below(step, node)), *texts])
        else:
            yield from self._sorted([*map(Selected, self._walk(step.axis, node, visited)), *texts])

    def _beside(self, axis: str, parent: HtmlElement, place: int) -> list[Selected]:
        """Return the elements and texts of an element behind a place, or those before it, the nearest first.

        The places of its elements are odd, and those of the texts after them even.
        """
        inner = ((2 * number - 1, Selected(each)) for number, each in enumerate(parent, 1) if each in self._order)
        texts = ((2 * text.place[-1], text) for text in self._text_nodes("child", parent))
        contents = sorted([*inner, *texts], key=lambda each: each[0])
        self.spend(len(contents))
        if axis == "following-sibling":
            return [each for at, each in contents if at > place]
        return [each for at, each in reversed(contents) if at < place]

    def _below(self, step: Step, node: HtmlElement) -> list[HtmlElement]:
        """Return the elements below an element that have the tag of a step, and attributes that its predicates need."""
        outline, start = self._outline, self._order[node]
        end = outline.ends[start]
        self.spend((end - start) // _OF_OUTLINE + 1)
        positions: Iterable[int] = range(start + (step.axis == "descendant"), end)
        if step.test not in ("*", "node()"):
            positions = [at for at in positions if outline.tags[at] == step.test]
        # A predicate with positions counts all of them.
        is_filter = bool(step.predicates) and not is_positional(step.predicates[0])
        for name, part in _needed(step.predicates[0]) if is_filter else ():
            positions = [at for at in positions if part in (outline.attributes[at].get(name) or _NONE)]
        return [outline.nodes[at] for at in positions]

    def _text_nodes(self, axis: str, node: HtmlElement) -> Iterator[Selected]:
        walk = [node]
        if axis != "child":
            walk = self._below(Step("descendant-or-self", "*", ()), node) if axis.startswith("descendant") else []
        for each in walk:
            pieces = list(self._pieces(each))
            self.spend(len(pieces))
            yield from (Selected(each, piece, "/text()", place) for piece, place in pieces if piece)

    def _pieces(self, node: HtmlElement) -> Iterator[tuple[str | None, tuple[int, ...]]]:
        """Yield the texts that stand in an element itself, each with its place.

        A place is the position of the last element that begins before the text; behind those that end there, the inner
        first; behind comments.
        """
        place = (self._order[node], 0, 0)
        yield node.text, (*place, 0)
        for number, inner in enumerate(node, 1):
            if (position := self._order.get(inner)) is not None:
                place = (self._outline.ends[position] - 1, 1, -position)
            yield inner.tail, (*place, number)

    def _walk(self, axis: str, node: HtmlElement, visited: set[HtmlElement]) -> Iterator[HtmlElement]:
        """Yield the elements of an axis, the nearest first, but none behind one that was visited on the same axis."""
        for each in _axis(axis, node):
            self.spend()
            if axis in _SHARED:
                if each in visited:
                    break
                visited.add(each)
            yield each


def _is(item: Selected, test: str) -> bool:
    """Return whether an element or text fits the test of a step."""
    if test == "node()":
        return True
    return test == "text()" if item.text is not None else test in ("*", item.node.tag)


#: Axes on which all that is behind an element was visited with it.
_SHARED: Final = frozenset({"ancestor", "ancestor-or-self", "following-sibling", "preceding-sibling"})
#: Stands for the value of an attribute that an element lacks: no text is in it.
_NONE: Final[tuple[str, ...]] = ()


def _needed(predicate: Expression) -> Iterator[tuple[str, str]]:
    """Yield the attributes that an element needs for a predicate to hold, each with a part of its value."""
    match predicate:
        case Operation("and", left, right):
            yield from _needed(left)
            yield from _needed(right)
        case Call("contains", (Path(False, (Step("attribute", name, ()),)), Literal(str(part)))) if (
            part and name != "*"
        ):
            yield name, part
        case Operation("=", Path(False, (Step("attribute", name, ()),)), Literal(str(part))) if part and name != "*":
            yield name, part


def _axis(axis: str, node: HtmlElement) -> Iterable[HtmlElement]:
    match axis:
        case "child":
            return list(node)
        case "parent" | "ancestor":
            return islice(node.iterancestors(), 1 if axis == "parent" else None)
        case "ancestor-or-self":
            return (each for each in (node, *node.iterancestors()))
        case "following-sibling" | "preceding-sibling":
            siblings: Iterable[HtmlElement] = node.itersiblings(preceding=axis == "preceding-sibling")
            return siblings
    return (node,)


def _compare(sign: str, left: float, right: float) -> bool:
    match sign:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right


def _computed(sign: str, left: float, right: float) -> float:
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    return left % right if right else float("nan")


def _digits(number: float) -> str:
    """Return a number as XPath writes it, without an exponent."""
    if math.isnan(number) or math.isinf(number):
        return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"
    if number == int(number):
        return str(int(number))
    return f"{Decimal(repr(number)):f}"


def _number_of(text: str) -> float:
    try:
        return float(text.strip()[:40])
    except ValueError:
        return float("nan")


def _substring(text: str, numbers: list[float]) -> str:
    start = numbers[0]
    end = start + numbers[1] if len(numbers) > 1 else math.inf
    if math.isnan(start) or math.isnan(end):
        return ""
    # A page can have numbers that are infinite, which cannot be rounded.
    first, behind = (round(min(max(place, 1), len(text) + 1)) for place in (start, end))
    return text[first - 1 : behind - 1]


def _of_texts(function: str, texts: list[str]) -> str | float | bool:
    first, second = texts[0], texts[1] if len(texts) > 1 else ""
    match function:
        case "contains":
            return second in first
        case "starts-with":
            return first.startswith(second)
        case "concat":
            return "".join(texts)
        case "normalize-space":
            return " ".join(first.split())
        case "string-length":
            return float(len(first))
        case "substring-after":
            return first.partition(second)[2] if second else first
        case "substring-before":
            return first.partition(second)[0] if second and second in first else ""
        case "translate":
            to = texts[2]
            table = {ord(sign): to[at] if at < len(to) else None for at, sign in reversed([*enumerate(second)])}
            return first.translate(table)
    return first
