"""Repeated blocks in the main part of a page: the cards, rows and entries of lists.

Links are grouped by their path from the root (the tag and first class of each element on it). The entries of a group
are the outermost elements that contain one of its links each. So an entry is found as a whole, whether entries are
siblings, in rows of a grid, or deep in boxes of their own. Every element is visited a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.auto.page.layout import Parts, step_of
from scrapy_ext.server.extraction.auto.page.urls import bare, parts_of, same_page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Bounds of the search. Of several hundred real pages, the largest has 4 thousand links.
MAX_LINKS: Final = 6_000
MAX_ENTRIES: Final = 500
MAX_GROUPS: Final = 60
#: Fewer entries are no list.
FEWEST: Final = 2
#: The share of its links that a group may lose to entries that contain several of them.
SHARED: Final = 0.1
#: Sibling links that are distinguished by their order.
MAX_PLACES: Final = 5
#: Elements after a heading, a term or a row that may belong to it.
MAX_FOLLOWING: Final = 4

_OUTSIDE_TAGS: Final = frozenset({"nav", "footer", "aside", "dialog", "select", "menu"})
_OUTSIDE_ROLES: Final = frozenset(
    {"navigation", "banner", "contentinfo", "dialog", "complementary", "search", "menu", "tablist"}
)
_VOCABULARY: Final = load_vocabulary("lists")
_OUTSIDE_NAME = _VOCABULARY.pattern("outside_name")
#: Names of a layout or of a kind of entry, which contain a word of the frame and are no part of it.
_NOT_OUTSIDE = _VOCABULARY.pattern("not_outside")
_HEADER_TAGS: Final = frozenset({"article", "section", "main", "li"})
#: Links to images in their full size lead to no page.
_IMAGE_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|avif|svg|bmp)$", re.IGNORECASE)
_STREAMED = re.compile(r"S:\w{1,6}")
_SPLIT_ENTRIES: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "dt", "tr"})


@dataclass(frozen=True, slots=True, eq=False)
class ListEntry:
    """One of several similar entries: its element, the elements after it that belong to it, and its main link."""

    node: HtmlElement
    link: HtmlElement
    url: str
    following: tuple[HtmlElement, ...] = ()

    def elements(self) -> Iterator[HtmlElement]:
        """The elements of the entry, in the order of the page."""
        for part in (self.node, *self.following):
            yield from part.iter("*")

    def text(self, limit: int) -> str:
        """Return the text of the entry in one line."""
        return " ".join(node_text(part, limit) for part in (self.node, *self.following))[:limit]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Entries of the same structure, in the order of the page, each with a URL of its own."""

    entries: tuple[ListEntry, ...]

    @property
    def key(self) -> object:
        """Equal for groups of the same entries."""
        return (len(self.entries), self.entries[0].link, self.entries[-1].link)


class Surroundings(Parts):
    """The parts of a page around its content: header, menus, side bars, footer, filters."""

    def __init__(self, page: Page) -> None:
        super().__init__(_Outside(page).begins_at)


class _Outside:
    """Rule for the elements at which such parts begin."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._by_names: dict[str, bool] = {}

    def begins_at(self, node: HtmlElement) -> bool:
        if node.tag in {"body", "html", "main"} or node.get("role") == "main":
            return False
        # Streamed parts (``S:1``), which a script is to move, count as shown.
        hidden = node.get("hidden") is not None and not _STREAMED.fullmatch(node.get("id") or "")
        if hidden or node.tag in _OUTSIDE_TAGS or node.get("role") in _OUTSIDE_ROLES:
            return True
        if node.tag == "header":
            # A header that is never closed contains the page.
            inner = any(ancestor.tag in _HEADER_TAGS for ancestor in node.iterancestors())
            return not inner and not self._is_most(node)
        return self._named(self._page.names(node)) and not self._is_most(node) and node not in self._around_main

    @cached_property
    def _around_main(self) -> frozenset[HtmlElement]:
        mains = self._page.tree.xpath("//main | //*[@role='main']")
        return frozenset(above for main in mains[:3] for above in main.iterancestors())

    def _named(self, names: str) -> bool:
        if names not in self._by_names:
            self._by_names[names] = bool(names) and _OUTSIDE_NAME.search(_NOT_OUTSIDE.sub(" ", names)) is not None
        return self._by_names[names]

    def _is_most(self, node: HtmlElement) -> bool:
        """Return whether an element has so much of the page that its name is about a part of it (``with-sidebar``)."""
        most = len(self._page.elements) // 2
        return next(islice(node.iter("*"), most, None), None) is not None


def groups_of(page: Page, surroundings: Surroundings, *, by_class: bool = True) -> list[Group]:
    """Return the groups of entries in the main part of a page, the largest first.

    Without ``by_class``, paths are compared by tags alone: each entry of a list may have a class of its own.
    """
    step = step_of if by_class else lambda node: str(node.tag)
    by_way = [some for links in _links_by_way(page, surroundings, step) for some in (links, *_by_place(links))]
    by_way += [some for links in list(by_way) for some in _by_column(links)]
    ranked = sorted(by_way, key=len, reverse=True)[:MAX_GROUPS]
    found = [Group(tuple(_with_following(entries))) for links in ranked if len(entries := _entries(links)) >= FEWEST]
    return _joined(found, {node: position for position, node in enumerate(page.elements)})


def _links_by_way(
    page: Page, surroundings: Surroundings, step: Callable[[HtmlElement], str]
) -> list[list[tuple[HtmlElement, str]]]:
    ways: dict[HtmlElement, int] = {}
    numbers: dict[tuple[int, str], int] = {}
    found: dict[int, list[tuple[HtmlElement, str]]] = {}
    for link in islice(page.tree.iter("a"), MAX_LINKS):
        url = page.link(link.get("href"))
        if url is None or same_page(url, page.url) or surroundings.hold(link):
            continue
        path = parts_of(url).path
        if path in {"", "/"} or _IMAGE_FILE.search(path):
            continue
        links = found.setdefault(_way(link, ways, numbers, step), [])
        # An image and a name with one URL, one after the other, belong to one entry.
        if not links or bare(links[-1][1]) != bare(url):
            links.append((link, url))
        elif node_text(link, 3) and not node_text(links[-1][0], 3):
            links[-1] = (link, url)
    return [links for links in found.values() if len(links) >= FEWEST]


def _by_place(links: list[tuple[HtmlElement, str]]) -> Iterator[list[tuple[HtmlElement, str]]]:
    """Yield the first, second and so on of sibling links, where there are several sets of siblings.

    So names are separated from brands and reviews where only the order distinguishes them.
    """
    return _by_order(links, lambda link: link.getparent())


def _by_column(links: list[tuple[HtmlElement, str]]) -> Iterator[list[tuple[HtmlElement, str]]]:
    """Yield the first, second and so on of the links of table rows: names are separated from buttons in other cells."""
    if links[0][0].getparent() is not None and any(above.tag == "tr" for above in links[0][0].iterancestors()):
        yield from _by_order(
            links, lambda link: next((above for above in link.iterancestors() if above.tag == "tr"), None)
        )


def _by_order(
    links: list[tuple[HtmlElement, str]], box_of: Callable[[HtmlElement], HtmlElement | None]
) -> Iterator[list[tuple[HtmlElement, str]]]:
    """Yield the first, second and so on of the links of each box, where there are several boxes."""
    seen: dict[HtmlElement | None, int] = {}
    places: list[list[tuple[HtmlElement, str]]] = [[] for _ in range(MAX_PLACES)]
    for link, url in links:
        parent = box_of(link)
        place = seen[parent] = seen.get(parent, -1) + 1
        if place < MAX_PLACES:
            places[place].append((link, url))
    if FEWEST <= len(seen) < len(links):
        yield from (some for some in places if len(some) >= FEWEST)


def _way(
    node: HtmlElement,
    ways: dict[HtmlElement, int],
    numbers: dict[tuple[int, str], int],
    step: Callable[[HtmlElement], str],
) -> int:
    """Return the number of the path from the root to a node: the same for nodes with the same path."""
    above: list[HtmlElement] = []
    current: HtmlElement | None = node
    while current is not None and current not in ways:
        above.append(current)
        current = current.getparent()
    way = ways[current] if current is not None else 0
    for part in reversed(above):
        way = numbers.setdefault((way, step(part)), len(numbers) + 1)
        ways[part] = way
    return way


def _entries(links: list[tuple[HtmlElement, str]]) -> list[ListEntry]:
    """Return the outermost elements that contain one of the links each, as far as possible."""
    paths = [[link, *link.iterancestors()][::-1] for link, _ in links]
    depth = len(paths[0])
    enough = max(FEWEST, round(len(links) * (1 - SHARED)))
    level = next((level for level in range(depth) if len({path[level] for path in paths}) >= enough), depth - 1)
    entries: dict[str, ListEntry] = {}
    nodes: set[HtmlElement] = set()
    for path, (link, url) in zip(paths, links, strict=True):
        if url not in entries and path[level] not in nodes:
            entries[url] = ListEntry(path[level], link, url)
            nodes.add(path[level])
            if len(entries) >= MAX_ENTRIES:
                break
    return list(entries.values())


def _with_following(entries: list[ListEntry]) -> Iterable[ListEntry]:
    if all(_is_defined(entry.node) for entry in entries):
        # The term has the date, as in lists of news.
        return [replace(entry, node=entry.node.getprevious(), following=(entry.node,)) for entry in entries]
    if entries[0].node.tag not in _SPLIT_ENTRIES:
        return entries
    nodes = {entry.node for entry in entries}
    found = []
    for entry in entries:
        following: list[HtmlElement] = []
        for sibling in entry.node.itersiblings("*"):
            if sibling in nodes or len(following) >= MAX_FOLLOWING:
                break
            if sibling.tag in _SPLIT_ENTRIES and sibling.tag != "tr":
                break
            following.append(sibling)
        found.append(ListEntry(entry.node, entry.link, entry.url, tuple(following)))
    return found


def _is_defined(node: HtmlElement) -> bool:
    """Return whether an element is the definition of a term of its own."""
    before = node.getprevious() if node.tag == "dd" else None
    return before is not None and before.tag == "dt"


def _joined(groups: list[Group], order: dict[HtmlElement, int]) -> list[Group]:
    """Merge groups whose entries are siblings of the same structure and differ only in their names."""
    by_place: dict[object, list[Group]] = {}
    for group in groups:
        by_place.setdefault(_place(group), []).append(group)
    return [union for some in by_place.values() for union in _unions(some, order)]


def _place(group: Group) -> object:
    """Return the parent and the structure of the entries of a group: groups are merged where these are equal."""
    parents = {entry.node.getparent() for entry in group.entries}
    if len(parents) > 1:
        return group
    first = group.entries[0]
    way = takewhile(lambda part: part is not first.node, (first.link, *first.link.iterancestors()))
    return (next(iter(parents)), first.node.tag, *(step_of(part) for part in way))


def _unions(groups: list[Group], order: dict[HtmlElement, int]) -> Iterator[Group]:
    """Merge the groups of one place, as long as no element is an entry of two groups with different links."""
    left = groups
    while left:
        nodes: set[HtmlElement] = set()
        entries: dict[str, ListEntry] = {}
        rest = []
        for group in left:
            own = {entry.node for entry in group.entries}
            if nodes.isdisjoint(own):
                nodes |= own
                entries.update((entry.url, entry) for entry in group.entries)
            else:
                rest.append(group)
        yield Group(tuple(sorted(entries.values(), key=lambda entry: order[entry.node])))
        left = rest
