"""What stands around an element: the parts that it is in, its way from the root, and the box that it has for itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

#: Tells something of an element.
Judge = Callable[[HtmlElement], bool]

_DIGITS = re.compile(r"\d+")
_WHOLE_PAGE: Final = frozenset({"html", "body", "main"})


class Parts:
    """The parts of a page of one kind. Whether an element stands in one is looked up once for each element around it.

    ``begins`` tells whether such a part begins at an element; what ``ends`` tells is in none, whatever is around it.
    """

    def __init__(
        self, begins: Callable[[HtmlElement], bool], ends: Callable[[HtmlElement], bool] | None = None
    ) -> None:
        self._begins = begins
        self._ends = ends
        self._verdicts: dict[HtmlElement, bool] = {}

    def hold(self, node: HtmlElement) -> bool:
        """Whether an element is such a part, or stands in one."""
        passed: list[HtmlElement] = []
        verdict = False
        current: HtmlElement | None = node
        while current is not None and not (self._ends and self._ends(current)):
            known = self._verdicts.get(current)
            if known is not None:
                verdict = known
                break
            passed.append(current)
            if self._begins(current):
                verdict = True
                break
            current = current.getparent()
        self._verdicts.update(dict.fromkeys(passed, verdict))
        return verdict


def step_of(node: HtmlElement) -> str:
    """The tag of an element and its first class without numbers: equal for elements that are made alike."""
    names = (node.get("class") or "").split(None, 1)
    return f"{node.tag}.{_DIGITS.sub('', names[0])[:40]}" if names else str(node.tag)


def way_to(node: HtmlElement, steps: int) -> str:
    """The last steps to an element from the root: equal for elements that are reached alike."""
    return "/".join(step_of(step) for step in islice((node, *node.iterancestors()), steps))


def own_boxes(nodes: Iterable[HtmlElement]) -> dict[HtmlElement, HtmlElement]:
    """For each of several elements the outermost one that holds it and none of the others."""
    nodes = list(nodes)
    held = Counter(ancestor for node in nodes for ancestor in node.iterancestors())
    boxes = {}
    for node in nodes:
        boxes[node] = node
        for ancestor in node.iterancestors():
            if held[ancestor] > 1 or ancestor.tag in _WHOLE_PAGE:
                break
            boxes[node] = ancestor
    return boxes
