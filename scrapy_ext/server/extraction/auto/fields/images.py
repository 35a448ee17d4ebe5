"""Images of a page, at the best size that it offers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import Image
from scrapy_ext.server.extraction.auto.page import Page, Thing
from scrapy_ext.server.extraction.auto.page.sources import highest

MAX_IMAGES: Final = 100

#: Attributes with the address of the large or not yet loaded image, the best first.
_SOURCES: Final = (
    "data-zoom-image", "data-large_image", "data-large", "data-zoom", "data-old-hires", "data-full",
    "data-original", "data-lazy-src", "data-src", "src",
)  # fmt: skip
_SETS: Final = ("data-srcset", "srcset")
_WIDTH = re.compile(r"\s(\d+(?:\.\d+)?)[wx]$")
#: Placeholders, tracking pixels and icons.
_NO_IMAGE = re.compile(
    r"(?:^data:|\.svg(?:$|[?#])|/(?:blank|spacer|pixel|placeholder|transparent|loading|spinner|1x1)[^/]*$|sprite|/icons?/)",
    re.IGNORECASE,
)
#: Names of files that are placeholders.
_PLACEHOLDER = re.compile(
    r"(?:^|[_.-])(?:image[-_]?)?(?:placeholder|no[-_]?(?:image|photo|picture|img)|image[-_]not[-_]available)(?![^\W\d_])",
    re.IGNORECASE,
)
#: Smaller sides, in pixels, are those of icons and avatars.
_SMALLEST: Final = 90


def of_thing(page: Page, thing: Thing | None) -> list[Image]:
    """Return the images of an entity of structured data, absolute, each once."""
    if thing is None:
        return []
    return images(page, (text for value in thing.values("image") for text in _addresses(value)))


def of_metas(page: Page) -> list[Image]:
    """Return the images for previews (OpenGraph, Twitter)."""
    names = ("og:image:secure_url", "og:image", "og:image:url", "twitter:image", "twitter:image:src")
    return images(page, (content for name in names for content in page.metas.get(name, ())))


def of_nodes(page: Page, nodes: Iterable[HtmlElement]) -> list[Image]:
    """Return the images of ``<img>`` elements that are no icons or placeholders."""
    return images(page, (source for node in nodes if not _small(node) and (source := _best_source(node))))


def images(page: Page, references: Iterable[str | None]) -> list[Image]:
    """Return absolute images of references, each once whatever its size, in their order."""
    found: dict[str, str] = {}
    for reference in references:
        if reference and not _is_no_image(reference) and (url := page.link(reference)):
            found.setdefault(url.partition("?")[0] if len(url) > 40 else url, url)
            if len(found) >= MAX_IMAGES:
                break
    return [Image(url=url) for url in found.values()]


def _is_no_image(reference: str) -> bool:
    # A query may name what stands in for a picture that is missing.
    path = reference.partition("?")[0].partition("#")[0]
    return _NO_IMAGE.search(reference) is not None or _PLACEHOLDER.search(path.rpartition("/")[2]) is not None


def merged(*lists: list[Image]) -> list[Image]:
    found = {image.url.partition("?")[0]: image for some in reversed(lists) for image in reversed(some)}
    return list(reversed(found.values()))


def _addresses(value: str | Thing) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    for name in ("contentUrl", "url", "@value", "thumbnailUrl"):
        found = [inner for inner in value.properties.get(name, ()) if isinstance(inner, str)]
        if found:
            yield from found
            return
    if value.id:
        yield value.id


def _best_source(node: HtmlElement) -> str | None:
    source: str | None
    for name in _SOURCES[:-1]:
        source = node.get(name)
        if source and not _is_no_image(source):
            return source
    for name in _SETS:
        source = _largest_of_set(node.get(name))
        if source and not _is_no_image(source):
            return source
    source = node.get("src")
    return source


def _largest_of_set(srcset: str | None) -> str | None:
    """Return the widest candidate of a ``srcset``. Only commas before a space separate, as URLs contain commas too."""
    found: list[tuple[float, str]] = []
    for candidate in re.split(r",\s+", (srcset or "").strip())[:50]:
        width = _WIDTH.search(candidate)
        if source := (candidate[: width.start()] if width else candidate).strip():
            found.append((float(width.group(1)) if width else 0.0, source))
    return highest(found)


def _small(node: HtmlElement) -> bool:
    for side in ("width", "height"):
        match = re.match(r"\d{1,5}", node.get(side) or "")
        if match and int(match.group()) < _SMALLEST:
            return True
    return False
