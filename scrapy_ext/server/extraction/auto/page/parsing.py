"""Parsing of any HTML into a tree: within bounds, without what no reader sees, the scripts apart.

The content of declarative shadow roots of web components (``<template shadowrootmode>``) stands in the place of their
hosts, and that of the hosts in the slots, as a browser shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, dropwhile, islice, takewhile
from typing import Final, NamedTuple

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.formulas import write_formulas
from scrapy_ext.server.extraction.auto.page.joints import write_joints
from scrapy_ext.server.extraction.auto.page.paths import ElementPaths
from scrapy_ext.server.extraction.auto.page.readings import write_readings
from scrapy_ext.server.extraction.auto.page.start_tags import with_bounded_attributes

#: Elements of HTML that can have a shadow root, beside all custom elements.
_HOSTS: Final = frozenset({
    "article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main",
    "nav", "p", "section", "span",
})  # fmt: skip
_MODES: Final = frozenset({"open", "closed"})


def compose(tree: HtmlElement) -> None:
    """Replace the content of each host by that of its shadow root, and slots by what the host has for them."""
    # In the order of the page: what is in an outer slot can be for a slot of the component around it.
    templates = [node for node in tree.iter("template") if (node.get("shadowrootmode") or "").lower() in _MODES]
    composed = set()
    for template in templates:
        host = template.getparent()
        if host is not None and host not in composed and (host.tag in _HOSTS or "-" in host.tag):
            composed.add(host)
            _compose(host, template)
    if composed:
        etree.strip_tags(tree, "slot")


def _compose(host: HtmlElement, template: HtmlElement) -> None:
    following = template.tail
    _add_text_before(template, following)
    template.tail = None
    host.remove(template)
    slots: dict[str, HtmlElement] = {}
    for slot in _slots(template):
        slots.setdefault((slot.get("name") or "").strip(), slot)
    _fill(host, slots)
    host.text = template.text
    for node in list(template):
        host.append(node)


def _add_text_before(node: HtmlElement, text: str | None) -> None:
    before, parent = node.getprevious(), node.getparent()
    if before is not None:
        before.tail = (before.tail or "") + (text or "")
    else:
        parent.text = (parent.text or "") + (text or "")


def _slots(node: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the slots in an element, without those of shadow roots in it."""
    for child in node:
        if child.tag == "template":
            continue
        if child.tag == "slot":
            yield child
        yield from _slots(child)


def _fill(host: HtmlElement, slots: dict[str, HtmlElement]) -> None:
    """Move what a host contains to the slots of its root; what has no slot is not shown."""
    filled: set[str] = set()
    _add_text(host.text, slots, filled)
    for node in list(host):
        name, following = (node.get("slot") or "").strip(), node.tail
        node.tail = None
        host.remove(node)
        slot = slots.get(name)
        if slot is not None:
            _begin(slot, name, filled)
            slot.append(node)
        _add_text(following, slots, filled)


def _add_text(text: str | None, slots: dict[str, HtmlElement], filled: set[str]) -> None:
    slot = slots.get("")
    if not text or slot is None:
        return
    _begin(slot, "", filled)
    if len(slot):
        slot[-1].tail = (slot[-1].tail or "") + text
    else:
        slot.text = (slot.text or "") + text


def _begin(slot: HtmlElement, name: str, filled: set[str]) -> None:
    """Remove what a slot shows as long as there is nothing for it."""
    if name not in filled:
        filled.add(name)
        slot.text = None
        for node in list(slot):
            slot.remove(node)


#: The part of a page that is read, in characters. The largest of several hundred real pages has 5.1 million.
MAX_HTML_LENGTH: Final = 6_000_000
#: The part of a page that is read, in elements. Of those pages, the largest has 18 thousand.
MAX_ELEMENTS: Final = 60_000
#: Levels of elements in a tree.
MAX_DEPTH: Final = 250

_UNSEEN: Final = ("style", "template", "svg", "object")
#: Elements of a head.
_OF_HEAD: Final = frozenset({
    "base", "basefont", "bgsound", "link", "meta", "noframes", "noscript", "script", "style", "template", "title",
})  # fmt: skip
#: Signs of links to the heading that they are in, the elements that have them, and how far around.
_HEADING_SIGNS: Final = frozenset({"¶", "#", "§", "🔗", "🔗\ufe0e", "⚓", "⚓\ufe0e", "\uf0c1"})
_LONGEST_SIGN: Final = 10
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "dt"})
_IN_HEADING: Final = 3
#: Longer values are images or data of scripts, or an attack.
MAX_VALUE_LENGTH: Final = 10_000
#: Characters that a tree cannot hold; those of them that are one byte are searched much faster.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNWRITABLE_BYTES: Final = bytes({*range(0x20)} - set(b"\t\n\r"))
#: Soft hyphens and characters without width, at which a word may be parted into lines; they are not shown. The joiners
#: of Arabic and Indic letters and of emoji are not among them.
_UNSHOWN: Final = (
    b"\xc2\xad", b"&shy;", b"&#173;", b"&#xad;", b"&#xAD;", b"&#x00AD;", b"&#x00ad;",
    b"\xe2\x80\x8b", b"&#8203;", b"&#x200b;", b"&#x200B;", b"&ZeroWidthSpace;",
    b"\xe2\x81\xa0", b"&#8288;", b"&#x2060;", b"&NoBreak;", b"\xef\xbb\xbf", b"&#65279;", b"&#xfeff;", b"&#xFEFF;",
)  # fmt: skip
_UNSHOWN_SIGNS: Final = [each.decode() for each in _UNSHOWN if not each.startswith(b"&")]
_ESCAPED_UNSHOWN = re.compile(b"&(?:%b)" % b"|".join(each[1:] for each in _UNSHOWN if each.startswith(b"&")))
#: Tags of formatting elements (HTML, Parsing), but links, of which one may be open.
_FORMATTING = re.compile(r"<(/?)(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])")
_EMPTY: Final = b"<html><body></body></html>"


class Script(NamedTuple):
    """An inline script: its ``type`` in lower case (often empty) and its source."""

    type: str
    source: str


class Parsed(NamedTuple):
    """The part of the source that was read, its tree, and the inline scripts that stood in it."""

    source: bytes
    tree: HtmlElement
    #: The elements of the tree in document order, and the attributes of each.
    elements: list[HtmlElement]
    attributes: list[dict[str, str]]
    scripts: list[Script]
    #: The places of the elements in the page as users parse it, where they are wanted.
    paths: ElementPaths | None


def parsed(html: str, *, with_paths: bool = False) -> Parsed:
    """Return the tree of a page without scripts, styles, templates and comments; an empty one for an empty page."""
    source, tree = _parse_within_bounds(html)
    paths = ElementPaths(tree) if with_paths else None
    _move_content(tree)
    write_formulas(tree)
    scripts = _take_scripts(tree)
    compose(tree)
    etree.strip_elements(tree, *_UNSEEN, with_tail=False)
    _strip_noscript(tree)
    _strip_heading_signs(tree)
    write_readings(tree)
    write_joints(tree)
    elements = list(tree.iter("*"))
    return Parsed(source, tree, elements, _attributes(elements), scripts, paths)


def _parse_within_bounds(html: str) -> tuple[bytes, HtmlElement]:
    source = with_bounded_attributes(_without_unshown(html[:MAX_HTML_LENGTH]))
    tree = _parse(source)
    for _ in range(8):
        elements = int(tree.xpath("count(//*)"))
        if elements <= MAX_ELEMENTS:
            break
        # Elements are not spread evenly, so one cut may not be enough; the last halves what is left.
        source = source[: min(len(source) // 2, len(source) * MAX_ELEMENTS // elements)]
        tree = _parse(source)
    return source, tree


def _without_unshown(html: str) -> bytes:
    source = _encoded(html)
    # Most pages have none: these searches take a fifteenth of the time of the replacements.
    if any(map(html.__contains__, _UNSHOWN_SIGNS)) or _ESCAPED_UNSHOWN.search(source):
        for unshown in _UNSHOWN:
            source = source.replace(unshown, b"")
    return source


def _encoded(html: str) -> bytes:
    """Return a page in UTF-8, with a replacement for each character that a tree cannot hold."""
    try:
        source = html.encode()
    except UnicodeEncodeError:
        return _UNWRITABLE.sub("\ufffd", html).encode()
    writable = len(source.translate(None, _UNWRITABLE_BYTES)) == len(source)
    if writable and "\ufffe" not in html and "\uffff" not in html:
        return source
    return _UNWRITABLE.sub("\ufffd", html).encode()


def _parse(source: bytes) -> HtmlElement:
    parser = _new_parser()
    tree = _parse_with(parser, source)
    last = parser.error_log.last_error
    if last is None or last.type != etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return tree
    # The parser has ended at an element that was nested too deeply for it.
    tree = _parse_with(_new_parser(may_be_deep=True), source)
    _raise_deep(tree)
    return tree


def _new_parser(*, may_be_deep: bool = False) -> lxml_html.HTMLParser:
    """Return a parser that ends at 256 levels of elements, or at 2,048."""
    return lxml_html.HTMLParser(
        encoding="utf-8", huge_tree=may_be_deep, no_network=True, remove_comments=True, remove_pis=True
    )


def _raise_deep(tree: HtmlElement) -> None:
    """Put elements that are nested too deeply behind those around them, in the order of the page.

    Tags that nothing closes make pages so deep. Many rules look at all elements around one, so depth is time.
    """
    level = [tree]
    for _ in range(MAX_DEPTH - 1):
        level = [child for node in level for child in node]
    for node in level:
        if len(node):
            _flatten(node)


def _flatten(node: HtmlElement) -> None:
    """Put all elements in one behind it."""
    order: list[HtmlElement] = []
    #: The texts behind the start of each, and behind the ends of those in it.
    behind: list[list[str]] = []
    for event, element in etree.iterwalk(node, events=("start", "end")):
        if event == "start":
            order.append(element)
            behind.append([])
        elif element.tail:
            behind[-1].append(element.tail)
    for element in order:
        for child in list(element):
            element.remove(child)
    last = node
    for element, texts in zip(order, behind, strict=True):
        element.tail = "".join(texts) or None
        if element is not node:
            last.addnext(element)
            last = element


def _parse_with(parser: lxml_html.HTMLParser, source: bytes) -> HtmlElement:
    # lxml.html asks a Python function for the class of every element. Here it is always the same one.
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=HtmlElement))
    try:
        tree = lxml_html.document_fromstring(source, parser=parser)
    except etree.LxmlError:
        # Nothing in it but comments or white space.
        tree = lxml_html.document_fromstring(_EMPTY, parser=parser)
    return tree


def flattened(source: bytes) -> str:
    """Return the page for another parser of HTML, whose time and memory then grow with its length.

    Without this, they grow by the square of the depth, which is bounded here, and of formatting elements that nothing
    closes, which HTML repeats in each block that follows: 60 KB become a tree of 3 GB.
    """
    return _FORMATTING.sub(r"<\1span", etree.tostring(_parse(source), encoding="unicode", method="html"))


def _move_content(tree: HtmlElement) -> None:
    """Move content before ``<body>``, and after ``</body>`` or ``</html>``, into the body, as browsers do: on some
    pages that is most of it, or all.

    The parser leaves an element that it does not know, such as ``<main>``, in the head of a page whose body has no
    tag. It puts content after the body beside it, and makes another root of content after the end of the first.
    """
    body = tree.find("body")
    leading = _content_before(tree, body)
    following = [*(body.itersiblings() if body is not None else ()), *tree.itersiblings()]
    if body is None:
        if not leading and not following:
            return
        body = etree.SubElement(tree, "body")
    text, body.tail = body.tail or "", None
    if len(body):
        body[-1].tail = (body[-1].tail or "") + text
    else:
        body.text = (body.text or "") + text
    _insert_first(body, leading)
    for node in following:
        body.append(node)
    if leading or following:
        etree.strip_tags(body, "html", "head", "body")


def _content_before(tree: HtmlElement, body: HtmlElement | None) -> list[HtmlElement]:
    """Return the elements of the head from the first that belongs into a body, and those between head and body."""
    head = tree.find("head")
    of_head = head if head is not None else ()
    found = list(dropwhile(lambda node: node.tag in _OF_HEAD, of_head))
    before = takewhile(lambda node: node is not body, tree)
    return [*found, *(node for node in before if node is not head and node.tag != "frameset")]


def _insert_first(body: HtmlElement, nodes: list[HtmlElement]) -> None:
    if not nodes:
        return
    text, body.text = body.text or "", None
    for place, node in enumerate(nodes):
        body.insert(place, node)
    nodes[-1].tail = (nodes[-1].tail or "") + text


def _attributes(elements: list[HtmlElement]) -> list[dict[str, str]]:
    """Return the attributes of each element, read once; long ones are removed."""
    found = [dict(element.items()) for element in elements]
    longest = max(map(len, chain.from_iterable(map(dict.values, found))), default=0)
    if longest > MAX_VALUE_LENGTH:
        for element, attributes in zip(elements, found, strict=True):
            for name in [name for name, value in attributes.items() if len(value) > MAX_VALUE_LENGTH]:
                del attributes[name], element.attrib[name]
    return found


def _strip_noscript(tree: HtmlElement) -> None:
    """Keep ``<noscript>`` only where it has more text than the rest of the page, as forums serve it to crawlers.

    The address and size of an image in it are those of the placeholder before it, which a script is to fill.
    """
    parts = tree.xpath("//body//noscript")
    for part in parts:
        image, lazy = part.find(".//img"), part.getprevious()
        if image is not None and lazy is not None and lazy.tag == "img" and _is_placeholder(lazy):
            # By its size, an image that counts readers is distinguished from a picture.
            for name in ("src", "width", "height"):
                lazy.set(name, image.get(name) or lazy.get(name) or "")
    length = sum(len(part.text_content().strip()) for part in parts)
    if parts and 2 * length > len(tree.text_content().strip()):
        etree.strip_tags(tree, "noscript")
    else:
        etree.strip_elements(tree, "noscript", with_tail=False)


def _is_placeholder(image: HtmlElement) -> bool:
    return not image.get("data-src") and (image.get("src") or "data:").startswith("data:")


def _strip_heading_signs(tree: HtmlElement) -> None:
    """Remove the signs that link to a heading itself, as manuals have them: ``Options ¶``."""
    for link in list(tree.iter("a")):
        text = link.text
        if text and len(text) < _LONGEST_SIGN and not len(link) and text.strip() in _HEADING_SIGNS:
            around = islice(link.iterancestors(), _IN_HEADING)
            if "#" in link.get("href", "") and any(node.tag in _HEADINGS for node in around):
                link.drop_tree()


def _take_scripts(tree: HtmlElement) -> list[Script]:
    scripts = [
        Script((node.get("type") or "").partition(";")[0].strip().lower(), node.text or "")
        for node in tree.iter("script")
        if node.text
    ]
    etree.strip_elements(tree, "script", with_tail=False)
    return scripts
