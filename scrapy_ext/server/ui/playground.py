"""Conversion of a form to an extraction request, to code that sends it, and of its result to a page. No I/O."""

from __future__ import annotations

import base64
import binascii
import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pprint import pformat
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.extraction import EXTRACT_TYPES, ExtractResult
from scrapy_ext.api.extraction.records import FieldSource, SourceCandidate
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import json_bodies
from scrapy_ext.server.http.forms import Form

#: Outputs with a checkbox, besides one kind of automatic extraction.
TICKS: Final = {
    "browserHtml": "HTML of the browser",
    "screenshot": "screenshot",
    "markdown": "Markdown",
    "httpResponseBody": "response body",
    "httpResponseHeaders": "response headers",
}
#: Maximum number of characters shown of a page, and of a Base64 screenshot.
_SHOWN: Final = 200_000
_SCREENSHOT: Final = 16 * 1024 * 1024
_DEEPEST: Final = 4
_MOST_FIELDS: Final = 500
_MOST_SOURCES: Final = 100
_MOST_OTHERS: Final = 3
#: Maximum number of characters of the text of an element.
_TEXT: Final = 200
#: Levels of JSON. Python's own limit for the code of a request depends on its caller, and is at most a thousand.
MAX_LEVELS: Final = 500
#: Bytes of a request whose code is broken into lines.
_FORMATTED: Final = 10_000
#: Characters of an image in Base64 in which its header is, and its longest side in pixels.
_HEADER: Final = 65_536
_LONGEST_SIDE: Final = 65_535
#: Markers of a JPEG before its size.
_FRAMES_OF_JPEG: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Place(NamedTuple):
    """Rule of a value, its element, and the number of its box in the drawing (0: none)."""

    value: Any
    rule: str
    xpath: str = ""
    #: The text of the element; "" where the value begins with it.
    text: str = ""
    box: int = 0


class FieldRow(NamedTuple):
    """A field of the item, nested ones as ``name.inner``. The first one of a nested field has its source."""

    name: str
    value: Any
    place: Place | None = None
    #: The values of other rules.
    others: Sequence[Place] = ()


class DrawnBox(NamedTuple):
    """Rectangle in the screenshot, in its pixels, with a label at ``label_x``, ``label_y``."""

    number: int
    label: str
    x: int
    y: int
    width: int
    height: int
    label_x: int
    label_y: int
    is_other: bool


class Drawing(NamedTuple):
    """Boxes on the screenshot, which has this size in pixels."""

    width: int
    height: int
    letters: int
    boxes: list[DrawnBox]


class Shown(NamedTuple):
    """A result as shown. Texts are cut at ``_SHOWN`` characters."""

    #: Heading, text, and the length of the whole text.
    texts: list[tuple[str, str, int]]
    headers: list[tuple[str, str]]
    screenshot: str
    fields: list[FieldRow]
    #: None where the size of the screenshot is not known, or there are no boxes.
    drawing: Drawing | None


def fields_of(form: Form) -> dict[str, Any]:
    """Return the fields of the request in a form; raises ``ContractError`` when ``more`` is not a JSON object."""
    body: dict[str, Any] = {"url": (form.get("url") or "").strip()}
    body |= {name: True for name in TICKS if form.get(name) is not None}
    kind = form.get("kind")
    if kind in EXTRACT_TYPES:
        body[kind] = True
        if source := form.get("extractFrom"):
            body |= {"serpOptions": {"extractFrom": source}} if kind == "serp" else {"extractFrom": source}
        if form.get("fieldSources") is not None:
            body["fieldSources"] = True
            if body.get("screenshot"):
                # The elements may be anywhere on the page.
                body["screenshotOptions"] = {"fullPage": True}
    elif body.get("markdown") and (source := form.get("extractFrom")):
        body["extractFrom"] = source
    if more := (form.get("more") or "").strip():
        value = json_bodies.given(more.encode(), "more")
        if not isinstance(value, dict):
            raise refused("more", "must be a JSON object", 'Write {"geolocation": "DE"}.')
        if _is_deeper(value, MAX_LEVELS):
            raise refused("more", f"is nested over {MAX_LEVELS} levels deep", "Use fewer levels.")
        body |= value
    return body


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether a JSON value has more levels of objects and arrays."""
    level = [value]
    for _ in range(levels + 1):
        boxes = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        if not boxes:
            return False
        level = [inner for box in boxes for inner in box]
    return True


def as_curl(body: Mapping[str, Any], server: str) -> str:
    """Return the request as a shell command, with the key from the environment."""
    data = shlex.quote(msgspec.json.encode(body).decode())
    return (
        f'curl --user "$EXTRACT_API_KEY:" --header "Content-Type: application/json" \\\n'
        f"  --data {data} \\\n  {shlex.quote(f'{server}/v1/extract')}"
    )


def as_request(body: Mapping[str, Any]) -> str:
    """Return the request as a Scrapy request that sends exactly these fields."""
    indented = _literal({name: value for name, value in body.items() if name != "url"}).replace("\n", "\n" + " " * 24)
    return (
        f"scrapy.Request(\n    {body.get('url', '')!r},\n    meta={{\n"
        f'        "extract_api": {indented},\n        "extract_api_automap": False,\n    }},\n)'
    )


def _literal(fields: dict[str, Any]) -> str:
    """Return an object as Python code: in lines, unless it is long or deep."""
    # pformat formats each level with all that is in it, which takes seconds for a deep value.
    if len(msgspec.json.encode(fields)) <= _FORMATTED:
        with contextlib.suppress(RecursionError):
            return pformat(fields, width=90, sort_dicts=False)
    return repr(fields)


def shown(result: ExtractResult) -> Shown:
    """Return a result as its page shows it."""
    builtins = msgspec.to_builtins(result)
    item = next((builtins[kind] for kind in EXTRACT_TYPES if builtins.get(kind) is not None), None)
    body = _text(result.http_response_body) if result.http_response_body else ""
    texts = (
        ("Markdown", result.markdown or ""),
        ("HTML of the browser", result.browser_html or ""),
        ("Response body", body),
    )
    screenshot = _picture(result.screenshot or "")
    size = image_size(result.screenshot or "") if screenshot else None
    boxes = _Boxes(size) if size is not None else None
    rows = list(_rows(item or {}, result.field_sources or {}, boxes))
    if result.custom_attributes:
        own = Place(None, "customAttributes")
        rows += [FieldRow(name, value, own) for name, value in _flat(result.custom_attributes.get("values") or {})]
    return Shown(
        [(title, text[:_SHOWN], len(text)) for title, text in texts if text],
        [(header.name, header.value) for header in result.http_response_headers or ()],
        screenshot,
        rows[:_MOST_FIELDS],
        boxes.drawing() if boxes is not None else None,
    )


# ── sources of the fields, and their boxes in the screenshot ──


def _rows(item: Mapping[str, Any], sources: Mapping[str, FieldSource], boxes: _Boxes | None) -> Iterator[FieldRow]:
    left = dict(islice(sources.items(), _MOST_SOURCES))
    for name, value in _flat(item):
        field = name.partition(".")[0]
        source = left.pop(field, None)
        if source is None:
            yield FieldRow(name, value)
            continue
        place = _place(boxes, field, source, value, is_other=False)
        others = source.others[:_MOST_OTHERS]
        yield FieldRow(name, value, place, [_place(boxes, field, each, each.value, is_other=True) for each in others])


def _place(
    boxes: _Boxes | None, field: str, source: FieldSource | SourceCandidate, value: Any, *, is_other: bool
) -> Place:
    box = boxes.add(field, source.box, is_other=is_other) if boxes is not None and source.box is not None else 0
    is_known = isinstance(value, str) and " ".join(value[: 4 * _TEXT].split()).startswith(source.text or "")
    if is_other and isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return Place(value, source.rule, source.xpath or "", "" if is_known else source.text or "", box)


class _Boxes:
    """The boxes of a screenshot, each rectangle once: fields with the same one share it."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._width, self._height = size
        self._found: dict[tuple[tuple[int, int, int, int], bool], tuple[int, list[str]]] = {}

    def add(self, field: str, box: tuple[int, int, int, int], *, is_other: bool) -> int:
        """Return the number of a box, from 1; 0 for one outside of the screenshot."""
        x, y, width, height = box
        if x >= self._width or y >= self._height or x + width <= 0 or y + height <= 0:
            return 0
        number, fields = self._found.setdefault((box, is_other), (len(self._found) + 1, []))
        if field not in fields:
            fields.append(field)
        return number

    def drawing(self) -> Drawing | None:
        # As large in a column of the page, or on a phone, as its other text.
        letters = max(12, self._width // 50)
        boxes = [
            DrawnBox(
                number, ", ".join(fields), x, y, width, height, max(x, 0), max(y - letters // 4, letters), is_other
            )
            for ((x, y, width, height), is_other), (number, fields) in self._found.items()
        ]
        return Drawing(self._width, self._height, letters, boxes) if boxes else None


def image_size(encoded: str) -> tuple[int, int] | None:
    """Return width and height of a PNG or JPEG in Base64, in pixels; None where its header does not have them."""
    try:
        head = base64.b64decode(encoded[:_HEADER], validate=True)
    except (binascii.Error, ValueError):
        return None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = head[16:24]
        width, height = int.from_bytes(size[:4], "big"), int.from_bytes(size[4:], "big")
    else:
        height, width = _size_of_jpeg(head)
    return (width, height) if 0 < width <= _LONGEST_SIDE and 0 < height <= _LONGEST_SIDE else None


def _size_of_jpeg(head: bytes) -> tuple[int, int]:
    at = 2
    while head.startswith(b"\xff\xd8") and at + 9 <= len(head) and head[at] == 0xFF:
        if head[at + 1] in _FRAMES_OF_JPEG:
            return int.from_bytes(head[at + 5 : at + 7], "big"), int.from_bytes(head[at + 7 : at + 9], "big")
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return 0, 0


def _text(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return ""


def _picture(encoded: str) -> str:
    """Return a data URL of an image, "" when a page cannot show it."""
    if not encoded or len(encoded) > _SCREENSHOT or not encoded.isascii():
        return ""
    kind = "jpeg" if encoded.startswith("/9j/") else "png"
    return f"data:image/{kind};base64,{encoded}"


def _flat(value: Mapping[str, Any], above: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an item, nested ones as ``name.inner``."""
    for name, inner in value.items():
        if isinstance(inner, Mapping) and inner and depth < _DEEPEST:
            yield from _flat(inner, f"{above}{name}.", depth + 1)
        else:
            yield f"{above}{name}", inner
