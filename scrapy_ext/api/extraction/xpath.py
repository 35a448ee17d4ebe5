"""The part of XPath 1.0 that rules for extraction may use, parsed to a tree. CSS selectors are translated to it.

Pages and rules are foreign to the server that applies them, and a library for XPath takes unlimited time for some
pairs of them. So both sides parse the expression here, and the server evaluates the tree with a bound on its work
(``server/extraction/auto/extract_rules/evaluating.py``). Left out: variables, namespaces, multiplication, division, the
axes ``following`` and ``preceding``, and functions that are not in :data:`FUNCTIONS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

AXES: Final = (
    *("child", "descendant", "descendant-or-self", "self", "parent", "ancestor", "ancestor-or-self"),
    *("following-sibling", "preceding-sibling", "attribute"),
)
#: Functions, with the least and greatest number of their arguments.
FUNCTIONS: Final = {
    "concat": (2, 8),
    "contains": (2, 2),
    "count": (1, 1),
    "last": (0, 0),
    "name": (0, 1),
    "normalize-space": (0, 1),
    "not": (1, 1),
    "position": (0, 0),
    "starts-with": (2, 2),
    "string": (0, 1),
    "string-length": (0, 1),
    "substring": (2, 3),
    "substring-after": (2, 2),
    "substring-before": (2, 2),
    "translate": (3, 3),
}
#: Longest expression, in characters, and deepest nesting of brackets in it. The translation of a selector is longer.
MAX_LENGTH: Final = 500
MAX_TRANSLATION: Final = 10_000
MAX_DEPTH: Final = 20
#: Most steps, functions and operators of an expression.
MAX_PARTS: Final = 300

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"[^"]*"|'[^']*')|(?P<number>\d+(?:\.\d+)?)|(?P<sign>\.\.|::|//|!=|<=|>=|[.@/\[\]()|=<>+,*-])"""
    r"|(?P<name>[^\W\d][\w-]*))"
)
_NODE_TESTS: Final = ("text", "node")
#: Operators from the loosest to the tightest.
_LEVELS: Final = (("or",), ("and",), ("=", "!="), ("<", "<=", ">", ">="), ("+", "-", "mod"), ("|",))


class XPathError(ValueError):
    """An expression that rules may not have; the message is the rule that it breaks."""


class Literal(NamedTuple):
    value: str | float


class Step(NamedTuple):
    axis: str
    #: A tag or the name of an attribute, ``*``, ``text()`` or ``node()``.
    test: str
    predicates: tuple[Expression, ...]


class Path(NamedTuple):
    #: Whether it begins at the root of the page.
    absolute: bool
    steps: tuple[Step, ...]


class Call(NamedTuple):
    function: str
    arguments: tuple[Expression, ...]


class Operation(NamedTuple):
    sign: str
    left: Expression
    right: Expression


Expression = Literal | Path | Call | Operation

_ANYTHING: Final = Step("descendant-or-self", "node()", ())
#: The same before a step from which texts and attributes lead nowhere.
_ELEMENTS: Final = Step("descendant-or-self", "*", ())
_FROM_ELEMENTS: Final = ("child", "descendant", "descendant-or-self", "attribute")


@lru_cache(maxsize=1000)
def of_xpath(text: str) -> Expression:
    """Return the tree of an expression that selects elements, attributes or texts; raises :class:`XPathError`."""
    if not text or len(text) > MAX_LENGTH:
        raise XPathError(f"must have 1 to {MAX_LENGTH} characters")
    return _selection(text)


@lru_cache(maxsize=1000)
def of_css(text: str) -> Expression:
    """Return the tree of a CSS selector, with ``::text`` and ``::attr(name)`` of Scrapy; raises :class:`XPathError`."""
    if not text or len(text) > MAX_LENGTH:
        raise XPathError(f"must have 1 to {MAX_LENGTH} characters")
    # Imported here: they are needed only where there are such rules.
    from cssselect import SelectorError
    from parsel import css2xpath

    try:
        translated = css2xpath(text)
    except (SelectorError, ValueError, RecursionError) as error:
        raise XPathError(f"is no CSS selector ({error})") from None
    if len(translated) > MAX_TRANSLATION:
        raise XPathError("is too complex")
    try:
        return _selection(translated)
    except XPathError as error:
        raise XPathError(f"uses a part of CSS that rules do not have ({error})") from None


def _selection(text: str) -> Expression:
    tree = _Parser(text).whole()
    if not _selects(tree):
        raise XPathError("must select elements, attributes or texts")
    return tree


def _selects(tree: Expression) -> bool:
    if isinstance(tree, Operation):
        return tree.sign == "|" and _selects(tree.left) and _selects(tree.right)
    return isinstance(tree, Path)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise XPathError(f"is no XPath at character {at + 1}")
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return [*found, _Token("end", "", end)]


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0
        self._parts = 0

    def whole(self) -> Expression:
        tree = self._level(0)
        if self._peek().kind != "end":
            raise self._unexpected()
        return tree

    def _peek(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _is(self, *signs: str) -> bool:
        token = self._peek()
        return token.kind in ("sign", "name") and token.text in signs

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            raise self._unexpected(f", where {sign} is expected")
        self._next += 1

    def _unexpected(self, more: str = "") -> XPathError:
        token = self._peek()
        if token.kind == "end":
            return XPathError(f"ends too early{more}")
        return XPathError(f"has {token.text[:40]} at character {token.at + 1}{more or ', which rules cannot have'}")

    def _count(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise XPathError(f"must have at most {MAX_PARTS} steps, functions and operators")

    def _nested(self, read: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise XPathError(f"must be nested at most {MAX_DEPTH} deep")
        tree = read()
        self._depth -= 1
        return tree

    def _level(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._operand()
        tree = self._level(level + 1)
        while self._is(*_LEVELS[level]):
            self._count()
            tree = Operation(self._take().text, tree, self._level(level + 1))
        return tree

    def _operand(self) -> Expression:
        token = self._peek()
        if token.kind == "text":
            self._next += 1
            return Literal(token.text[1:-1])
        if token.kind == "number":
            self._next += 1
            return Literal(float(token.text))
        if self._is("("):
            self._next += 1
            tree = self._nested(lambda: self._level(0))
            self._expect(")")
            return tree
        behind = self._peek(1)
        if token.kind == "name" and behind.text == "(" and behind.kind == "sign" and token.text not in _NODE_TESTS:
            return self._call()
        return self._path()

    def _call(self) -> Expression:
        self._count()
        token = self._peek()
        bounds = FUNCTIONS.get(token.text)
        if bounds is None:
            raise self._unexpected(f"; the functions of rules are {', '.join(FUNCTIONS)}")
        self._next += 2
        arguments: list[Expression] = []
        while not self._is(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._nested(lambda: self._level(0)))
        self._next += 1
        least, most = bounds
        if not least <= len(arguments) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise XPathError(f"has {token.text}() with {len(arguments)} arguments, and it takes {wanted}")
        if token.text == "count" and not _selects(arguments[0]):
            raise XPathError("has count() of what is no path")
        return Call(token.text, tuple(arguments))

    def _path(self) -> Expression:
        steps: list[Step] = []
        absolute = self._is("/", "//")
        if absolute and self._take().text == "//":
            steps.append(_ANYTHING)
        steps.append(self._step())
        while self._is("/", "//"):
            if self._take().text == "//":
                steps.append(_ANYTHING)
            steps.append(self._step())
        return Path(absolute, tuple(_joined(steps)))

    def _step(self) -> Step:
        self._count()
        if self._is("."):
            self._next += 1
            return Step("self", "node()", ())
        if self._is(".."):
            self._next += 1
            return Step("parent", "node()", ())
        axis = "child"
        if self._is("@"):
            self._next += 1
            axis = "attribute"
        elif self._peek().kind == "name" and self._peek(1).text == "::":
            if self._peek().text not in AXES:
                raise self._unexpected(f"; the axes of rules are {', '.join(AXES)}")
            axis = self._take().text
            self._next += 1
        test = self._test()
        predicates: list[Expression] = []
        while self._is("["):
            self._next += 1
            predicates.append(self._nested(lambda: self._level(0)))
            self._expect("]")
        return Step(axis, test, tuple(predicates))

    def _test(self) -> str:
        if self._is("*"):
            self._next += 1
            return "*"
        token = self._peek()
        if token.kind != "name":
            raise self._unexpected()
        self._next += 1
        if token.text in _NODE_TESTS and self._is("("):
            self._next += 1
            self._expect(")")
            return f"{token.text}()"
        return token.text


def _joined(steps: list[Step]) -> list[Step]:
    """Return the steps with ``//name`` as one walk, where no predicate counts positions."""
    joined: list[Step] = []
    for step in steps:
        if joined and joined[-1] is _ANYTHING and step.axis in _FROM_ELEMENTS:
            if step.axis == "child" and not any(map(is_positional, step.predicates)):
                joined[-1] = step._replace(axis="descendant")
                continue
            joined[-1] = _ELEMENTS
        joined.append(step)
    return joined


def is_positional(predicate: Expression) -> bool:
    """Return whether a predicate depends on the position of an element among those of its step."""
    match predicate:
        case Literal(value):
            return not isinstance(value, str)
        case Call(function, arguments):
            # count() and others return numbers, which are positions.
            numbers = ("last", "position", "count", "string-length")
            return function in numbers or any(map(_has_position, arguments))
        case Operation(sign, left, right):
            return sign in ("+", "-", "mod") or _has_position(left) or _has_position(right)
    return False


def _has_position(tree: Expression) -> bool:
    match tree:
        case Call(function, arguments):
            return function in ("last", "position") or any(map(_has_position, arguments))
        case Operation(_, left, right):
            return _has_position(left) or _has_position(right)
    return False
