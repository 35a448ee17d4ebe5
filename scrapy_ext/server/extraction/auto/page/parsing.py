"""Parsing of any HTML into a tree: within bounds, without what no reader sees, and with the scripts apart."""

from __future__ import annotations

import re
from itertools import chain
from typing import Final, NamedTuple

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement

#: The part of a page that is read, in characters. The largest of several hundred real pages has 5.1 million.
MAX_HTML_LENGTH: Final = 6_000_000
#: The part of a page that is read, in elements. Of those pages, the largest has 18 thousand.
MAX_ELEMENTS: Final = 60_000

_UNSEEN: Final = ("style", "template", "svg", "object", "math")
#: Longer values are images or data of scripts, or an attack.
MAX_VALUE_LENGTH: Final = 10_000
#: Characters that a tree cannot hold; those of them that are one byte are searched much faster.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNWRITABLE_BYTES: Final = bytes({*range(0x20)} - set(b"\t\n\r"))
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


def parsed(html: str) -> Parsed:
    """Return the tree of a page without scripts, styles, templates and comments; an empty one for an empty page."""
    source, tree = _parse_within_bounds(html)
    scripts = _take_scripts(tree)
    etree.strip_elements(tree, *_UNSEEN, with_tail=False)
    _strip_noscript(tree)
    elements = list(tree.iter("*"))
    return Parsed(source, tree, elements, _attributes(elements), scripts)


def _parse_within_bounds(html: str) -> tuple[bytes, HtmlElement]:
    source = _encoded(html[:MAX_HTML_LENGTH])
    tree = _parse(source)
    for _ in range(8):
        elements = int(tree.xpath("count(//*)"))
        if elements <= MAX_ELEMENTS:
            break
        # Elements are not spread evenly, so one cut may not be enough; the last halves what is left.
        source = source[: min(len(source) // 2, len(source) * MAX_ELEMENTS // elements)]
        tree = _parse(source)
    return source, tree


def _encoded(html: str) -> bytes:
    """Return a page in UTF-8, with a replacement for each character that a tree cannot hold."""
    try:
        source = html.encode()
    except UnicodeEncodeError:
        return _UNWRITABLE.sub("\ufffd", html).encode()
    writable = len(source.translate(None, _UNWRITABLE_BYTES)) == len(source)
    if writable and b"\xef\xbf\xbe" not in source and b"\xef\xbf\xbf" not in source:
        return source
    return _UNWRITABLE.sub("\ufffd", html).encode()


def _parse(source: bytes) -> HtmlElement:
    parser = lxml_html.HTMLParser(
        encoding="utf-8", huge_tree=False, no_network=True, remove_comments=True, remove_pis=True
    )
    # lxml.html asks a Python function for the class of every element. Here it is always the same one.
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=HtmlElement))
    try:
        tree = lxml_html.document_fromstring(source, parser=parser)
    except etree.LxmlError:
        # Nothing in it but comments or white space.
        tree = lxml_html.document_fromstring(_EMPTY, parser=parser)
    _move_trailing_content(tree)
    return tree


def _move_trailing_content(tree: HtmlElement) -> None:
    """Move content after ``</body>`` or ``</html>`` into the body, as browsers do: on some pages that is most of it.

    The parser puts it beside the body, and makes another root of content after the end of the first.
    """
    body = tree.find("body")
    following = [*(body.itersiblings() if body is not None else ()), *tree.itersiblings()]
    if body is None:
        if not following:
            return
        body = etree.SubElement(tree, "body")
    text, body.tail = body.tail or "", None
    if len(body):
        body[-1].tail = (body[-1].tail or "") + text
    else:
        body.text = (body.text or "") + text
    for node in following:
        body.append(node)
    if following:
        etree.strip_tags(body, "html", "head", "body")


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
    """Keep ``<noscript>`` only where it has more text than the rest of the page, as forums serve it to crawlers."""
    parts = tree.xpath("//body//noscript")
    length = sum(len(part.text_content().strip()) for part in parts)
    if parts and 2 * length > len(tree.text_content().strip()):
        etree.strip_tags(tree, "noscript")
    else:
        etree.strip_elements(tree, "noscript", with_tail=False)


def _take_scripts(tree: HtmlElement) -> list[Script]:
    scripts = [
        Script((node.get("type") or "").partition(";")[0].strip().lower(), node.text or "")
        for node in tree.iter("script")
        if node.text
    ]
    etree.strip_elements(tree, "script", with_tail=False)
    return scripts
