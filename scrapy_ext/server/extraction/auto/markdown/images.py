"""Images of a page: the address of one that scripts would load later, and its description."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.extraction.auto.page import Page, one_line

#: Attributes with the address of an image, the first that has one; those of scripts that load it later come first, as
#: ``src`` is a placeholder there.
_SOURCES: Final = ("data-src", "data-original", "data-lazy-src", "data-lazy", "src")
_SETS: Final = ("data-srcset", "srcset")
#: Sides in pixels of what is no picture: beacons that count visits.
_BEACON: Final = 2
_MAX_ALT: Final = 1_000


def image_of(page: Page, position: int) -> tuple[str, str] | None:
    """Return the alternative text and the URL of an image; None for one that shows nothing."""
    attributes = page.outline.attributes[position]
    if any(_is_tiny(attributes.get(side)) for side in ("width", "height")):
        return None
    url = next((url for name in _SOURCES if (url := page.link(attributes.get(name)))), None)
    if url is None:
        sets = (attributes.get(name, "").strip().split(maxsplit=1) for name in _SETS)
        url = next((url for parts in sets if parts and (url := page.link(parts[0].rstrip(",")))), None)
    if url is None:
        return None
    return one_line(attributes.get("alt") or attributes.get("title"))[:_MAX_ALT].strip(), url


def _is_tiny(side: str | None) -> bool:
    number = (side or "").strip().removesuffix("px")
    return number.isascii() and number.isdigit() and len(number) < 5 and int(number) <= _BEACON
