"""Conversion of a form to an extraction request, to code that sends it, and of its result to a page. No I/O."""

from __future__ import annotations

import base64
import binascii
import shlex
from collections.abc import Iterator, Mapping
from pprint import pformat
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.extraction import EXTRACT_TYPES, ExtractResult
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import bodies
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


class Shown(NamedTuple):
    """A result as shown. Texts are cut at ``_SHOWN`` characters."""

    #: Heading, text, and the length of the whole text.
    texts: list[tuple[str, str, int]]
    headers: list[tuple[str, str]]
    screenshot: str
    fields: list[tuple[str, Any, str]]


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
    elif body.get("markdown") and (source := form.get("extractFrom")):
        body["extractFrom"] = source
    if more := (form.get("more") or "").strip():
        value = bodies.value(more.encode(), "more")
        if not isinstance(value, dict):
            raise refused("more", "must be a JSON object", 'Write {"geolocation": "DE"}.')
        body |= value
    return body


def as_curl(body: Mapping[str, Any], server: str) -> str:
    """Return the request as a shell command, with the key from the environment."""
    data = shlex.quote(msgspec.json.encode(body).decode())
    return (
        f'curl --user "$EXTRACT_API_KEY:" --header "Content-Type: application/json" \\\n'
        f"  --data {data} \\\n  {shlex.quote(f'{server}/v1/extract')}"
    )


def as_request(body: Mapping[str, Any]) -> str:
    """Return the request as a Scrapy request that sends exactly these fields."""
    fields = pformat({name: value for name, value in body.items() if name != "url"}, width=90, sort_dicts=False)
    indented = fields.replace("\n", "\n" + " " * 24)
    return (
        f"scrapy.Request(\n    {body.get('url', '')!r},\n    meta={{\n"
        f'        "extract_api": {indented},\n        "extract_api_automap": False,\n    }},\n)'
    )


def shown(result: ExtractResult) -> Shown:
    """Return a result as its page shows it."""
    builtins = msgspec.to_builtins(result)
    item = next((builtins[kind] for kind in EXTRACT_TYPES if builtins.get(kind) is not None), None)
    sources = result.field_sources or {}
    rows = (
        [] if item is None else [(name, value, sources.get(name.partition(".")[0], "")) for name, value in _flat(item)]
    )
    if result.custom_attributes:
        rows += [
            (name, value, "customAttributes") for name, value in _flat(result.custom_attributes.get("values") or {})
        ]
    body = _text(result.http_response_body) if result.http_response_body else ""
    texts = (
        ("Markdown", result.markdown or ""),
        ("HTML of the browser", result.browser_html or ""),
        ("Response body", body),
    )
    return Shown(
        [(title, text[:_SHOWN], len(text)) for title, text in texts if text],
        [(header.name, header.value) for header in result.http_response_headers or ()],
        _picture(result.screenshot or ""),
        rows[:_MOST_FIELDS],
    )


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
