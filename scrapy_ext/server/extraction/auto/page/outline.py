"""Outline of a page: one walk over its elements that all later passes read from.

lxml makes a new Python string, or looks for the object of an element, at each access to an attribute, a text or a
parent, and a search with XPath takes as long as all these accesses together. With many passes over a page, that takes
longer than the passes. Here each is read once, into lists by the position of the element in the document. All
elements inside of one follow it, up to ``ends``, so that a pass over a part of the tree is a loop over numbers, and
leaving out a part is a jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, takewhile
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.questions import is_question
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Elements with the heading of what is below them, and how far above its text they are looked for.
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "dt"})
_IN_HEADING: Final = 3
_CONTROLS: Final = frozenset({"button", "label"})
#: Elements that people operate, which the answer to a question has not.
_OPERATED: Final = _CONTROLS | {"input", "select", "textarea"}
#: Elements below a heading or a question that are looked at.
_FOLDED: Final = 100
#: Most letters of a heading beside the control that it consists of: those of a number or sign, not "Copy link".
_BESIDE: Final = 2
#: Attributes of controls that fold a part in and out, and types of inputs that do so by their labels.
_FOLDING: Final = ("aria-expanded", "aria-controls", "data-toggle", "data-bs-toggle")
_SWITCHES: Final = frozenset({"checkbox", "radio"})
#: Questions without such an attribute: as many alike make a list of questions.
_SEVERAL: Final = 2
#: Elements of a form that is no page around its text.
_SMALL_FORM: Final = 60
#: Lengths of a question on a control, and of the shortest answer to it, in characters: ``Help?`` is none.
_SHORTEST_QUESTION: Final = 8
_LONGEST_QUESTION: Final = 300
_SHORTEST_ANSWER: Final = 20
#: Signs behind which a name goes on.
GOES_ON: Final = (",", ":", "-", "–", "—", "/", "(", "&", "+")
#: Words in small letters no longer than this end no heading: "Guide to". Nor do these: "All about".
_LONGEST_PARTICLE: Final = 2
_PARTICLE: Final = load_vocabulary("page_parts").pattern("particle")


class Outline:
    """The elements of a tree in document order, the root at position 0.

    It has the text and attributes of the tree as they were when it was made, and is not changed with it. A control
    that folds the text below in and out is text as well: its tag is ``span`` where it is all of a heading, and
    ``summary`` with a question. Polls, forms and requests to log in ask as well, but fold nothing and stand alone.
    An element of another tag with the role of a button is a ``button`` at the border of a heading with other words.
    """

    __slots__ = ("attributes", "ends", "nodes", "order", "parents", "tags", "tails", "texts")

    def __init__(self, nodes: list[HtmlElement], attributes: list[dict[str, str]]) -> None:
        # The nodes are kept, because lxml would otherwise create the Python object of an element anew at each access.
        self.nodes = nodes
        self.attributes = attributes
        self.order = order = {node: position for position, node in enumerate(nodes)}
        self.tags: list[str] = [node.tag for node in nodes]
        self.texts: list[str | None] = [node.text for node in nodes]
        self.tails: list[str | None] = [node.tail for node in nodes]
        #: The positions of the parents; -1 for the root.
        self.parents: list[int] = [-1, *(order[node.getparent()] for node in nodes[1:])]
        #: The positions after the last element inside of each.
        self.ends = _ends(self.parents)
        questions: dict[tuple[str | None, ...], list[int]] = {}
        for position, tag in enumerate(self.tags):
            if tag not in _CONTROLS and attributes[position].get("role") != "button":
                continue
            if self._is_in_heading_of_text(position):
                self._make_text(position, "span" if tag in _CONTROLS else tag)
            elif self._is_question(position):
                questions.setdefault(self._kind_of(position), []).append(position)
            elif self._is_at_border_of_heading(position):
                self.tags[position] = "button"
        folded_by_label = self._switches() if questions else set()
        for (kind, *_), found in questions.items():
            several = len(found) >= _SEVERAL and kind != "label"
            for position in found:
                if several or self._folds(position, folded_by_label):
                    self._make_text(position, "summary")

    def _make_text(self, position: int, tag: str) -> None:
        """Make a control an element of text, and links in it that lead nowhere as well."""
        self.tags[position] = tag
        # A copy: the attributes are those of the tree.
        self.attributes[position] = {name: value for name, value in self.attributes[position].items() if name != "role"}
        for inside in range(position + 1, self.ends[position]):
            if self.tags[inside] == "a" and self.attributes[inside].get("href", "")[:1] in ("", "#"):
                self.tags[inside] = "span"

    def _kind_of(self, control: int) -> tuple[str | None, ...]:
        around = self.parents[control]
        return self.tags[control], self.attributes[control].get("class"), self.tags[around]

    def _switches(self) -> set[str]:
        """Return the ids of the inputs that can be on or off."""
        inputs = (at for at, tag in enumerate(self.tags) if tag == "input")
        attributes = (self.attributes[at] for at in inputs)
        return {each["id"] for each in attributes if each.get("type", "").lower() in _SWITCHES and "id" in each}

    def _folds(self, control: int, switches: set[str]) -> bool:
        attributes = self.attributes[control]
        if self.tags[control] == "label":
            return attributes.get("for") in switches
        return not attributes.keys().isdisjoint(_FOLDING)

    def _is_in_heading_of_text(self, control: int) -> bool:
        """Return whether a control in a heading, or one that is it, folds a text in and out, rather than a menu."""
        inside = takewhile(lambda at: self.tags[at] != "a", islice(self.around(control), _IN_HEADING + 1))
        heading = next((at for at in inside if self.tags[at] in _HEADINGS), -1)
        if heading < 0 or self._letters(heading) > self._letters(control) + _BESIDE:
            return False
        for box in islice(self.around(heading), _IN_HEADING):
            if below := range(self.ends[box], min(self.ends[self.parents[box]], self.ends[box] + _FOLDED)):
                return 2 * self._length(below, in_links=True) <= self._length(below)
        return False

    def _is_at_border_of_heading(self, control: int) -> bool:
        """Return whether a heading has the text of a control at its begin or end, and words that need none of it."""
        around = islice(self.around(control), 1, _IN_HEADING + 1)
        heading = next((at for at in around if self.tags[at] in _HEADINGS), -1)
        if heading < 0 or self._letters(heading) <= self._letters(control) + _BESIDE:
            return False
        whole, own = (
            " ".join("".join(islice(self.texts_in(at), _FOLDED)).split())[:_LONGEST_QUESTION]
            for at in (heading, control)
        )
        if own and whole.startswith(own):
            # A heading that goes on begins with the control: "Tonnage of old boats".
            first = whole.removeprefix(own).lstrip()[:1]
            return first.isalnum() and not first.islower()
        words = whole.removesuffix(own).rstrip() if own else ""
        last = words.rpartition(" ")[2]
        is_open = words.endswith(GOES_ON) or (
            last.islower() and (len(last) <= _LONGEST_PARTICLE or _PARTICLE.fullmatch(last) is not None)
        )
        return words not in ("", whole) and not is_open

    def _is_question(self, control: int) -> bool:
        """Return whether a control has a question, and the element behind it a text, but no more controls."""
        question = "".join(islice(self.texts_in(control), _FOLDED)).strip()
        answer = self.ends[control]
        if not is_question(question) or not _SHORTEST_QUESTION <= len(question) <= _LONGEST_QUESTION:
            return False
        if self._is_in_small_form(control):
            return False
        if answer >= self.ends[self.parents[control]]:
            return False
        if not _OPERATED.isdisjoint(self.tags[answer : self.ends[answer]]):
            return False
        below = range(answer, min(self.ends[answer], answer + _FOLDED))
        return self._length(below) >= max(_SHORTEST_ANSWER, 2 * self._length(below, in_links=True))

    def _is_in_small_form(self, control: int) -> bool:
        form = next((at for at in islice(self.around(control), _FOLDED) if self.tags[at] == "form"), -1)
        return form >= 0 and self.ends[form] - form <= _SMALL_FORM

    def _letters(self, position: int) -> int:
        signs = chain.from_iterable(islice(self.texts_in(position), _FOLDED))
        return sum(map(str.isalpha, islice(signs, 3 * _LONGEST_QUESTION)))

    def _length(self, part: range, *, in_links: bool = False) -> int:
        """Return the number of characters right in the elements of a part, of all or of links alone."""
        length = end_of_link = 0
        for at in part:
            if self.tags[at] == "a":
                end_of_link = max(end_of_link, self.ends[at])
            if at < end_of_link or not in_links:
                length += len((self.texts[at] or "").strip())
        return length

    def children(self, position: int) -> Iterator[int]:
        """Yield the positions of the children of an element."""
        ends, child, end = self.ends, position + 1, self.ends[position]
        while child < end:
            yield child
            child = ends[child]

    def sibling_before(self, position: int) -> int:
        """Return the position of the element before one in the same parent; -1 for none."""
        parent, before = self.parents[position], position - 1
        while before > parent and self.parents[before] != parent:
            before = self.parents[before]
        return before if before > parent else -1

    def around(self, position: int) -> Iterator[int]:
        """Yield the positions of an element and of those around it, from the inside."""
        while position >= 0:
            yield position
            position = self.parents[position]

    def pieces(self, position: int) -> Iterator[str]:
        """Yield the texts in an element in their order, where no element inside of it has others inside."""
        if text := self.texts[position]:
            yield text
        for child in range(position + 1, self.ends[position]):
            if text := self.texts[child]:
                yield text
            if tail := self.tails[child]:
                yield tail

    def first_texts(self, position: int, most: int) -> list[str]:
        """Return the first texts in an element that are no white space, without that around them."""
        if self.ends[position] == position + 1:
            text = self.texts[position]
            return [stripped] if text and (stripped := text.strip()) else []
        return list(islice((stripped for text in self.texts_in(position) if (stripped := text.strip())), most))

    def texts_in(self, position: int) -> Iterator[str]:
        """Yield the texts in an element in their order, however deep they are."""
        if text := self.texts[position]:
            yield text
        begun: list[int] = []
        for child in range(position + 1, self.ends[position]):
            while begun and self.ends[begun[-1]] <= child:
                if tail := self.tails[begun.pop()]:
                    yield tail
            if text := self.texts[child]:
                yield text
            begun.append(child)
        while begun:
            if tail := self.tails[begun.pop()]:
                yield tail


def _ends(parents: list[int]) -> list[int]:
    ends = [0] * len(parents)
    # From the end, so that the first of an element's children to come is its last one.
    for position in range(len(parents) - 1, -1, -1):
        end = ends[position] = ends[position] or position + 1
        parent = parents[position]
        if parent >= 0 and not ends[parent]:
            ends[parent] = end
    return ends
