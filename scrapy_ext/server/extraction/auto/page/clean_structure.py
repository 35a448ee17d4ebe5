"""Structure of clean HTML: the tags that stay, levels of headings, lists and tables that are whole, and paragraphs."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.extraction.auto.page.clean_nodes import (
    COMMENT,
    INLINE,
    Node,
    dissolve,
    dissolve_all,
    is_double_break,
    path_to,
    remove,
    unwrap,
)
from scrapy_ext.server.extraction.auto.page.text import HEADINGS

MEDIA: Final = frozenset({"audio", "embed", "iframe", "img", "object", "video"})
_TABLE_PARTS: Final = frozenset({"tbody", "td", "tfoot", "th", "thead", "tr"})
#: Tags of clean HTML.
TAGS: Final = MEDIA | _TABLE_PARTS | {
    "a", "aside", "b", "blockquote", "br", "cite", "code", "dd", "dl", "dt", "em", "figcaption", "figure", "h1", "h2",
    "h3", "h4", "h5", "h6", "i", "li", "ol", "p", "pre", "s", "source", "strong", "sub", "sup", "table", "u", "ul",
}  # fmt: skip
#: Tags that stay without any content.
_MAY_BE_EMPTY: Final = MEDIA | {"br", "dd", "dt", "source", "td"}
#: Tags whose content is not for readers.
_WITHOUT_READERS: Final = frozenset(
    {"script", "style", "link", "meta", "frameset", "frame", "noframes", COMMENT}
)  # fmt: skip
_SYNONYMS: Final = {"b": "strong", "i": "em", "tt": "code"}
#: Parts, and the elements that may hold them.
WHOLES: Final = {
    "li": frozenset({"ol", "ul"}),
    **dict.fromkeys(_TABLE_PARTS, frozenset({"table"})),
    **dict.fromkeys(("dd", "dt"), frozenset({"dl"})),
}
_POSTS: Final = frozenset({
    "instagram-media", "twitter-tweet", "twitter-timeline", "twitter-moment", "fb-post", "fb-video",
    "fb-comment-embed",
})  # fmt: skip


def simplify(root: Node) -> Node:
    """Keep the tags of clean HTML only, inside of an ``article``, and return that."""
    _prepare(root, embedded=False)
    _remove_empty(root)
    _remove_unread(root)
    dissolve_all(root, lambda node: node.tag not in TAGS and not node.embedded)
    if root.tag in TAGS:
        article = Node("article")
        article.children.append(root)
        root.tail = None
        return article
    root.tag, root.element = "article", None
    return root


def _prepare(node: Node, *, embedded: bool) -> None:
    """Mark posts of other sites, and give tags of the same meaning the same name."""
    classes = node.element.get("class") if node.element is not None and not embedded else None
    node.embedded = embedded = embedded or (classes is not None and not _POSTS.isdisjoint(classes.split()))
    if not embedded:
        node.tag = _SYNONYMS.get(node.tag, node.tag)
    for child in node.children:
        _prepare(child, embedded=embedded)


def _remove_empty(parent: Node) -> None:
    index = 0
    while index < len(parent.children):
        child = parent.children[index]
        if child.children:
            _remove_empty(child)
        is_empty = not child.children and not child.has_text and child.tag not in _MAY_BE_EMPTY
        index = unwrap(parent, index) if is_empty else index + 1


def _remove_unread(parent: Node) -> None:
    index = 0
    while index < len(parent.children):
        child = parent.children[index]
        if child.tag in _WITHOUT_READERS and not child.embedded:
            remove(parent, index)
        else:
            if child.tag == "image":
                child.tag = "img"
            if child.children:
                _remove_unread(child)
            index += 1


def settle_headings(article: Node) -> None:
    """Let the highest level of headings be ``h2``; a heading of the sixth becomes a strong paragraph."""
    headings = [node for node in article.below() if node.tag in HEADINGS]
    highest = min((int(node.tag[1]) for node in headings), default=1)
    for node in headings:
        if node.embedded:
            continue
        if node.tag == "h6":
            node.tag = "p"
            strong = Node("strong", node.text)
            strong.children, node.children, node.text = node.children, [strong], None
        else:
            node.tag = f"h{int(node.tag[1]) - highest + 2}"


def dissolve_incomplete(parent: Node, around: frozenset[str] = frozenset()) -> None:
    """Dissolve the parts of lists and tables that are not inside of one."""
    around = around | {parent.tag}
    index = 0
    while index < len(parent.children):
        child = parent.children[index]
        if child.children:
            dissolve_incomplete(child, around)
        wholes = WHOLES.get(child.tag)
        is_incomplete = wholes is not None and wholes.isdisjoint(around)
        # A post stays only where it is no part of something else.
        if is_incomplete and not (child.embedded and around == {"article"}):
            index = dissolve(parent, index)
        else:
            index += 1


# ── paragraphs of clean HTML: text that is in no block, and text between double line breaks ──


def into_paragraphs(article: Node) -> None:
    """Put all text right inside an article into paragraphs. Double line breaks separate them."""
    children = article.children
    breaks = _breaks(children)
    found: list[Node] = []
    chunk: list[Node] = []
    text, article.text = article.text and article.text.lstrip(), None
    # The child whose tail is the text of the next paragraph.
    before: Node | None = None
    for index, child in enumerate([*children, None]):
        is_break = index in breaks
        if child is not None and child.tag in INLINE and not is_break:
            chunk.append(child)
            continue
        if before is not None:
            text, before.tail = before.tail and before.tail.rstrip(), None
        paragraph = Node("p", text)
        paragraph.children, chunk = chunk, []
        if paragraph.children or paragraph.has_text:
            found.append(paragraph)
        if child is not None and not is_break:
            found.append(child)
        before = child
    article.children = found


def _breaks(children: list[Node]) -> set[int]:
    """Return the indices of line breaks that are beside another."""
    found: set[int] = set()
    for index in range(len(children) - 1):
        if is_double_break(children, index):
            found |= {index, index + 1}
    return found


def set_apart(article: Node) -> None:
    """Separate the blocks of an article by an empty line, without space at their ends."""
    article.text = "\n\n"
    for child in article.children:
        child.tail = "\n\n"
        if child.tag != "pre":
            child.text = (child.text or "").lstrip()
            if child.children:
                child.children[-1].tail = (child.children[-1].tail or "").rstrip()
            else:
                child.text = child.text.rstrip()


# ── figures: media with a caption, and media that stand alone ──


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
