"""Attributes of clean HTML: the few that mean something without style and script, with absolute addresses."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus, urljoin

from lxml.html import HtmlElement, defs

from scrapy_ext.server.extraction.auto.page.urls import absolute, is_address

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


class NoAddress(Exception):  # noqa: N818  (a verdict on an element, not a fault)
    """An image or the like without an address."""


def attributes_of(element: HtmlElement, base_url: str, *, tag: str, embedded: bool) -> dict[str, str]:
    """Return the attributes of an element of clean HTML; raises :class:`NoAddress` for one that shows nothing.

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
            raise NoAddress
        else:
            del found[name]


def _joined(base_url: str, address: str) -> str:
    try:
        return urljoin(base_url, address.strip())
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
