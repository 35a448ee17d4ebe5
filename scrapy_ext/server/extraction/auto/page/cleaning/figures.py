"""Figures of clean HTML: media with a caption, and media that stand alone."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.extraction.auto.page.cleaning.nodes import (
    Node,
    dissolve,
    dissolve_all,
    is_double_break,
    path_to,
    remove,
)
from scrapy_ext.server.extraction.auto.page.cleaning.structure import MEDIA

_CAPTION: Final = "figcaption"
#: Tags without which there is nothing to settle.
FIGURES: Final = frozenset({_CAPTION, "figure"})
#: Tags of captions and in them.
_IN_CAPTIONS: Final = frozenset({
    "a", "b", "br", "cite", "em", _CAPTION, "i", "p", "s", "strong", "sub", "sup", "u",
})  # fmt: skip
_SHOWN: Final = MEDIA | {"source"}
#: Elements that a figure in the middle would break, and the tag of a part of each, which is dissolved later.
_BROKEN: Final = {"table": "tr", "dl": "dt", "ol": "li", "ul": "li"}
_AROUND_ROWS: Final = frozenset({"table", "tbody", "thead", "tfoot", "dl", "ul", "ol"})


def settle_figures(article: Node) -> None:
    """Let each caption be in a figure with what it is about; leave out figures of a caption alone."""
    for caption in [node for node in article.below() if node.tag == _CAPTION]:
        _put_into_figure(article, caption)
    _remove_without_content(article)


def _put_into_figure(article: Node, caption: Node) -> None:
    """Make a figure of a caption and the block before it, where it is in none."""
    path = path_to(article, caption)
    if any(node.tag == "figure" for node, _ in path):
        return
    around = path[::-1]
    # The caption may be alone in several elements.
    for parent, index in around:
        start = _last_with_content(parent, index)
        if start is not None:
            break
        if len(parent.children) > 1 or parent.has_text or parent.children[index].has_tail:
            return
    else:
        return
    first = parent.children[start]
    if first.tag == "p" and not any(node.tag in MEDIA for node in first.below()):
        return
    if parent.tag in _AROUND_ROWS:
        broken = next((node for node, _ in around if node.tag in _BROKEN), None)
        if broken is not None:
            broken.tag = _BROKEN[broken.tag]
    figure = _wrapped(parent, start, index + 1, "figure")
    for inner in [node for node in figure.below() if node.tag == "figure"]:
        place = path_to(figure, inner)[-1]
        dissolve(*place)
    _fuse_captions(figure)


def _last_with_content(parent: Node, index: int) -> int | None:
    """Return the index of the last child before another that shows something."""
    for before in range(index - 1, -1, -1):
        if not parent.children[before].has_tail and _shows(parent.children[before]):
            return before
    return None


def _shows(node: Node) -> bool:
    return node.tag in _SHOWN or node.has_text or any(child.has_tail or _shows(child) for child in node.children)


def _wrapped(parent: Node, start: int, end: int, tag: str) -> Node:
    """Put some children into a new one, and return that."""
    node = Node(tag)
    node.children = parent.children[start:end]
    last = node.children[-1]
    node.tail, last.tail = last.tail, None
    parent.children[start:end] = [node]
    return node


def _fuse_captions(figure: Node) -> None:
    """Make one caption of those that follow each other, and leave out others."""
    children = figure.children
    start = next((index for index, child in enumerate(children) if child.tag == _CAPTION), None)
    if start is None:
        return
    end = start + 1
    while end < len(children) and children[end].tag == _CAPTION and not children[end - 1].has_tail:
        end += 1
    for index in range(len(children) - 1, end - 1, -1):
        if children[index].tag == _CAPTION:
            dissolve(figure, index, keep=False)
    if end - start > 1:
        fused = _wrapped(figure, start, end, _CAPTION)
        index = 0
        while index < len(fused.children):
            index = dissolve(fused, index)


def _remove_without_content(parent: Node) -> None:
    index = 0
    while index < len(parent.children):
        child = parent.children[index]
        if child.tag == "figure" and _has_caption_only(child):
            index = dissolve(parent, index, keep=False)
        else:
            if child.children:
                _remove_without_content(child)
            index += 1


def _has_caption_only(figure: Node) -> bool:
    if figure.has_text or any(child.tag != _CAPTION for child in figure.children):
        return False
    return not figure.children or not figure.children[0].has_tail


def settle_captions(article: Node) -> None:
    """Leave out captions without a figure, and what captions cannot contain."""
    _remove_without_figure(article, in_figure=False)
    for caption in [node for node in article.below() if node.tag == _CAPTION]:
        parent, index = path_to(article, caption)[-1]
        if index >= 2 and is_double_break(parent.children, index - 2) and not parent.children[index - 1].has_tail:
            remove(parent, index - 1)
            remove(parent, index - 2)
    for caption in [node for node in article.below() if node.tag == _CAPTION]:
        for node in (caption, *caption.below()):
            node.embedded = False
        dissolve_all(caption, lambda node: node.tag not in _IN_CAPTIONS)


def _remove_without_figure(parent: Node, *, in_figure: bool) -> None:
    in_figure = in_figure or parent.tag == "figure"
    index = 0
    while index < len(parent.children):
        child = parent.children[index]
        if child.children:
            _remove_without_figure(child, in_figure=in_figure)
        is_unwanted = child.tag == _CAPTION and not in_figure
        index = dissolve(parent, index, keep=False) if is_unwanted else index + 1


def frame_media(article: Node) -> None:
    """Make a figure of each paragraph that is only an image, or another of the media, linked or not."""
    for child in article.children:
        if child.tag == "p" and (only := _only_child(child)) is not None:
            inner = _only_child(only) if only.tag == "a" else only
            if inner is not None and inner.tag in MEDIA:
                child.tag = "figure"


def _only_child(node: Node) -> Node | None:
    if len(node.children) != 1 or node.has_text or node.children[0].has_tail:
        return None
    return node.children[0]
