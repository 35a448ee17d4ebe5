"""Absolute XPaths of elements, in the page as users parse it: extraction moves and removes elements of its own tree."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from lxml.html import HtmlElement

#: Tags that an XPath can name; others (``o:p``) are written as ``*[2]``.
_PLAIN_TAG: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


class _Step(NamedTuple):
    """An element below its parent; the root has none."""

    parent: HtmlElement | None
    step: str


class ElementPaths:
    """The steps from the root to each element of a tree, as it is when this is made."""

    def __init__(self, tree: HtmlElement) -> None:
        self._steps: dict[HtmlElement, _Step] = {}
        # The parser makes another root of content after the end of the page.
        roots = [tree, *(node for node in tree.itersiblings() if isinstance(node.tag, str))]
        self._add(None, roots)
        for root in roots:
            for parent in root.iter("*"):
                self._add(parent, list(parent.iterchildren("*")))

    def _add(self, parent: HtmlElement | None, children: list[HtmlElement]) -> None:
        alike = Counter(child.tag for child in children)
        seen: Counter[str] = Counter()
        for place, child in enumerate(children, 1):
            tag = child.tag
            seen[tag] += 1
            plain = f"{tag}[{seen[tag]}]" if alike[tag] > 1 else tag
            self._steps[child] = _Step(parent, plain if _PLAIN_TAG.fullmatch(tag) else f"*[{place}]")

    def of(self, node: HtmlElement) -> str | None:
        """Return the XPath of an element; None for one that was added to the tree since."""
        steps: list[str] = []
        current: HtmlElement | None = node
        while current is not None:
            found = self._steps.get(current)
            if found is None:
                return None
            steps.append(found.step)
            current = found.parent
        return "/" + "/".join(reversed(steps))
