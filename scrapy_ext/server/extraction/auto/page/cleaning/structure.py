"""Structure of clean HTML: which tags stay, the levels of headings, and lists and tables that are whole."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.extraction.auto.page.cleaning.nodes import COMMENT, Node, dissolve, dissolve_all, remove, unwrap

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
HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
#: Parts, and the elements of which they must be inside one.
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
