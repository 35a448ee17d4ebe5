"""Items as pages show them: the order of their fields, nested values that unfold within bounds, and their image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.server.ui import shapes

#: Fields by which people recognize an item, in the order of columns.
IDENTIFYING: Final = ("name", "title", "headline", "price", "url")
#: Fields with the address of an image, or of several.
_IMAGES: Final = ("mainImage", "image", "image_url", "imageUrl", "images", "image_urls", "thumbnail", "photo", "photos")
#: Members of an object with the address of its image.
_IMAGE_URLS: Final = ("url", "src", "contentUrl")
#: Maximum depth and members of a value that unfolds, and values of a page: larger ones are on the page of their item.
_DEPTH: Final = 6
_MEMBERS: Final = 50
_VALUES: Final = 1500
#: Maximum members and characters of a list or an object that is short enough to be shown in one line.
_SHORT: Final = 6
_SHORT_TEXT: Final = 60


class Value(NamedTuple):
    """A value with its name or number in the value around it.

    ``members``: those of a list or an object, of which ``more`` are not shown.
    """

    name: str
    text: str
    link: str | None = None
    members: Sequence[Value] = ()
    more: int = 0


class Values:
    """Shown values of a page, which together have a bound."""

    def __init__(self, most: int = _VALUES) -> None:
        self._left = most

    def of(self, value: object, name: str = "", depth: int = _DEPTH) -> Value:
        """Return a value as it is shown: text, or what unfolds."""
        self._left -= 1
        if not isinstance(value, list | dict):
            return Value(name, shapes.cell(value), shapes.web_address(value))
        if (short := _short(value)) is not None:
            return Value(name, short)
        shown = min(len(value), _MEMBERS, max(self._left, 0)) if depth else 0
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        members = [self.of(each, str(key), depth - 1) for (key, each), _ in zip(pairs, range(shown), strict=False)]
        return Value(name, _size(value), None, members, len(value) - len(members))


def _short(value: list[Any] | dict[str, Any]) -> str | None:
    """Return a value that needs no unfolding in one line; None for others."""
    if not value:
        return "[]" if isinstance(value, list) else "{}"
    members = value.values() if isinstance(value, dict) else value
    if len(value) > _SHORT or any(isinstance(each, list | dict) for each in members):
        return None
    names = [f"{shapes.cell(name)}: " for name in value] if isinstance(value, dict) else [""] * len(value)
    parts = [name + shapes.cell(each) for name, each in zip(names, members, strict=True)]
    text = ", ".join(parts)
    return text if len(text) <= _SHORT_TEXT else None


def _size(value: list[Any] | dict[str, Any]) -> str:
    number, noun = len(value), "value" if isinstance(value, list) else "field"
    return f"{shapes.number(number)} {shapes.plural(number, noun)}"


def ordered(counts: Mapping[str, int], shown: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Return the fields of items without hidden ones: identifying ones first, then by the number of items with them.

    ``shown``: items whose order of fields decides between equal numbers.
    """
    places: dict[str, int] = {}
    for record in shown:
        for name in record:
            places.setdefault(name, len(places))
    names = {**places, **counts}
    return sorted(
        (name for name in names if not name.startswith("_")),
        key=lambda name: (_identity(name), -counts.get(name, 0), places.get(name, len(places)), name),
    )


def _identity(name: str) -> int:
    lowered = name.lower()
    return IDENTIFYING.index(lowered) if lowered in IDENTIFYING else len(IDENTIFYING)


def title_of(item: Mapping[str, Any]) -> str:
    """Return the text by which people recognize an item, "" without one."""
    for wanted in IDENTIFYING[:3]:
        for name, value in item.items():
            if name.lower() == wanted and isinstance(value, str) and value.strip():
                return value
    return ""


def image_of(item: Mapping[str, Any]) -> str | None:
    """Return the http(s) URL of an item's first image; None without one."""
    for name in _IMAGES:
        value = item.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, dict):
            value = next((value[each] for each in _IMAGE_URLS if isinstance(value.get(each), str)), None)
        if (address := shapes.web_address(value)) is not None:
            return address
    return None
