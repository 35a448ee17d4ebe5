"""Cleaning of a part of a page, step by step, and the part that comes of it, as HTML and as text.

The result is an ``article`` with blocks right inside of it: paragraphs, headings from the second level on, lists,
tables, quotes, code and figures. Inside of them are text, line breaks, emphasis, links and media. Posts of other sites
stay as their sites want them to be embedded. Attributes are the few that mean something without style and script, with
absolute addresses.
"""

from __future__ import annotations

import copy
import html
import logging
import re
from typing import Final
from urllib.parse import unquote_plus, urljoin

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement, defs

from scrapy_ext.server.extraction.auto.page.clean_nodes import Node, copy_of
from scrapy_ext.server.extraction.auto.page.clean_structure import (
    FIGURES,
    WHOLES,
    dissolve_incomplete,
    frame_media,
    into_paragraphs,
    set_apart,
    settle_captions,
    settle_figures,
    settle_headings,
    simplify,
)
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, MAX_VALUE_LENGTH, layout_text
from scrapy_ext.server.extraction.auto.page.urls import absolute, is_address, joined_plain

_KEPT: Final = frozenset({
    "alt", "cite", "colspan", "datetime", "dir", "href", "label", "rowspan", "sizes", "src", "srcset", "start",
    "title", "type", "value", "vspace",
})  # fmt: skip
#: Schemes of addresses that are, or may be, programs: anywhere in the address, as some sites wrap them.
_PROGRAM = re.compile(r"(?:javascript|jscript|livescript|vbscript|data|about|mocha):", re.IGNORECASE)
_IMAGE_DATA = re.compile(r"data:image/(.{1,255}?);base64,", re.IGNORECASE)
_IMAGE_WITH_PROGRAM = re.compile(r"xml|svg", re.IGNORECASE)
#: White space and control characters, which browsers ignore in the middle of a scheme.
_IGNORED = re.compile(r"[\s\x00-\x08\x0b\x0c\x0e-\x19]+")
#: An address in which nothing is written in another way.
_PLAIN = re.compile(r"[!-~]+")


class NoAddressError(Exception):
    """An image or the like without an address."""


def attributes_of(element: HtmlElement, base_url: str, *, tag: str, embedded: bool) -> dict[str, str]:
    """Return the attributes of an element of clean HTML; raises :class:`NoAddressError` for one that shows nothing.

    ``tag`` is its tag there. Of a post of another site (``embedded``), all but style and programs are kept.
    """
    is_kept = _is_kept_of_post if embedded else _is_kept
    found: dict[str, str] = {name: value for name, value in element.items() if is_kept(name)}
    if found:
        _settle_addresses(found, base_url, tag=tag, is_image=element.tag == tag == "img")
    return found


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.startswith("data-")


def _is_kept_of_post(name: str) -> bool:
    return name != "style" and not name.startswith("on")


def _settle_addresses(found: dict[str, str], base_url: str, *, tag: str, is_image: bool) -> None:
    # Those of objects are relative to something else.
    names = [name for name in found if name in defs.link_attrs] if tag != "object" else []
    for name in names:
        found[name] = _joined(base_url, found[name])
    # Images that scripts load.
    if is_image and not found.get("src") and found.get("data-src"):
        found["src"] = found["data-src"]
        names.append("src")
    for name in names:
        found[name] = _without_program(found[name].strip())
    for name in ("href", "src"):
        address = found.get(name)
        if address is None:
            continue
        url = _settled(base_url, address)
        if url:
            found[name] = url
        elif name == "src":
            raise NoAddressError
        else:
            del found[name]


def _joined(base_url: str, address: str) -> str:
    stripped = address.strip()
    try:
        return joined_plain(base_url, stripped) or urljoin(base_url, stripped)
    except ValueError:
        return address


def _settled(base_url: str, address: str) -> str | None:
    # Most are joined already, which takes as long as all the rest.
    if address.startswith(("https://", "http://")) and _PLAIN.fullmatch(address):
        return address if is_address(address) else None
    return absolute(base_url, address)


def _without_program(address: str) -> str:
    """Return an address; "" for one that is, or contains, a program."""
    if address.startswith(("https://", "http://")) and address.count(":") == 1 and "%3" not in address:
        return address
    bare = _IGNORED.sub("", unquote_plus(address))
    images = _IMAGE_DATA.findall(bare)
    if any(map(_IMAGE_WITH_PROGRAM.search, images)) or len(_PROGRAM.findall(bare)) > len(images):
        return ""
    return address


_PARSER: Final = lxml_html.HTMLParser()
_PARSER.set_element_class_lookup(etree.ElementDefaultClassLookup(element=HtmlElement))


def clean(part: Node, base_url: str) -> HtmlElement:
    """Return a part of a page as clean HTML with absolute addresses. The nodes cannot be used afterwards."""
    article = simplify(part)
    tags = {node.tag for node in article.below()}
    if not tags.isdisjoint(HEADINGS):
        settle_headings(article)
    if not tags.isdisjoint(FIGURES):
        settle_figures(article)
    if not tags.isdisjoint(WHOLES):
        dissolve_incomplete(article)
    if not tags.isdisjoint(FIGURES):
        settle_captions(article)
    if "iframe" in tags:
        _empty_frames(article)
    into_paragraphs(article)
    frame_media(article)
    set_apart(article)
    element: HtmlElement = _PARSER.makeelement("article")
    _write(article, element, base_url)
    return element


def _empty_frames(article: Node) -> None:
    """Leave out the text for browsers without frames."""
    for node in article.below():
        if node.tag == "iframe":
            node.text, node.children = None, []


def _write(node: Node, element: HtmlElement, base_url: str) -> None:
    """Write the text and children of a node into an element."""
    texts = [node.text or ""]
    last: HtmlElement | None = None
    for child in node.children:
        try:
            attributes = (
                attributes_of(child.element, base_url, tag=child.tag, embedded=child.embedded)
                if child.element is not None
                else {}
            )
        except NoAddressError:
            texts.append(child.tail or "")
            continue
        _set_text(element, last, texts)
        last = etree.SubElement(element, child.tag)
        for name, value in attributes.items():
            last.set(name, value)
        if child.text or child.children:
            _write(child, last, base_url)
        texts = [child.tail or ""]
    _set_text(element, last, texts)


def _set_text(element: HtmlElement, last: HtmlElement | None, texts: list[str]) -> None:
    text = "".join(texts)
    if not text:
        return
    if last is None:
        element.text = text
    else:
        last.tail = text


# ── parts of pages as clean HTML: structure, links, images and embedded content, without style and script ──


logger = logging.getLogger(__name__)

#: Exceptions that libraries of extraction raise, undocumented, on markup that they do not expect.
LIBRARY_FAULTS: Final = (
    ValueError, TypeError, AttributeError, LookupError, AssertionError, RecursionError, etree.LxmlError,
)  # fmt: skip


def cleaned(part: HtmlElement | Node, base_url: str) -> HtmlElement | None:
    """Return a part of a page as clean HTML with absolute addresses; None where it cannot be cleaned.

    An element stays as it is. Nodes cannot be used afterwards.
    """
    try:
        return clean(part if isinstance(part, Node) else copy_of(part), base_url)
    except LIBRARY_FAULTS:
        logger.debug("A part of a page could not be cleaned; its text is used instead.", exc_info=True)
        return None


def html_of(node: HtmlElement) -> str:
    return str(lxml_html.tostring(node, encoding="unicode", with_tail=False))


def text_of(node: HtmlElement) -> str:
    """Return the text of a clean node in paragraphs, without captions."""
    if next(node.iterdescendants("figcaption"), None) is None:
        return layout_text(node)
    shown = copy.deepcopy(node)
    for caption in list(shown.iterdescendants("figcaption")):
        caption.drop_tree()
    return layout_text(shown)


def paragraphs(text: str) -> str:
    """Return the HTML of a text, with a paragraph for each line."""
    lines = "\n\n".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines() if line)
    return f"<article>\n\n{lines}\n\n</article>"


def stated_html(thing: Thing, text: str, base_url: str) -> str:
    """Return the HTML of the description in structured data: its own, or its lines as paragraphs."""
    raw = next((value for value in thing.values("description") if isinstance(value, str)), "")
    source = html.unescape(raw[:MAX_VALUE_LENGTH])
    if "<" in source:
        try:
            node = lxml_html.fragment_fromstring(source, create_parent="article")
        except etree.LxmlError:
            return paragraphs(text)
        clean = cleaned(node, base_url)
        if clean is not None:
            return html_of(clean)
    return paragraphs(text)
