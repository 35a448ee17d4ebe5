"""Validation of each field of ``POST /extract`` by itself (extraction-api.md, Extraction request)."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from scrapy_ext.api.extraction import fields
from scrapy_ext.api.extraction.attributes import faults_of
from scrapy_ext.api.extraction.extension_forms import EXTENSION_FORMS
from scrapy_ext.api.extraction.fields import EXTRACT_FROM, OPTIONS, Field, JsonType
from scrapy_ext.api.violations import Violation

_JSON_TYPES: Final[dict[JsonType, tuple[type | tuple[type, ...], str]]] = {
    JsonType.STRING: (str, "a string"),
    JsonType.BOOLEAN: (bool, "true or false"),
    JsonType.NUMBER: ((int, float), "a number"),
    JsonType.OBJECT: (dict, "an object"),
    JsonType.ARRAY: (list, "an array"),
}
#: Outputs whose values are Base64.
BASE64_FIELDS: Final = ("httpResponseBody", "screenshot")
#: Statuses of redirects.
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: Prefixes of cookie names, in lower case, that browsers accept over HTTPS alone.
COOKIE_PREFIXES: Final = ("__secure-", "__host-", "__http-")
TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
#: Characters forbidden in header values (RFC 9110, 5.5).
CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_COUNTRY: Final = re.compile(r"[A-Z]{2}")
_ADDRESS_PART: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)


def check_url(url: str, place: str) -> Iterator[Violation]:
    """Yield the violations of a URL to load, at ``place``, by the rules of ``url``."""
    for fault in _form_of_url(url):
        yield Violation(place, fault.rule, fault.remedy)


def form_of(field: Field, value: object) -> Iterator[Violation]:
    if value is None:
        if not field.nullable:
            yield Violation(field.name, "must not be null", "Leave the field out instead.")
        return
    if field.type is not JsonType.ANY:
        expected, words = _JSON_TYPES[field.type]
        # For Python, true and false are integers.
        is_other = isinstance(value, bool) and field.type is not JsonType.BOOLEAN
        if is_other or not isinstance(value, expected):
            yield Violation(field.name, f"must be {words}, got {_json_type(value)}", f"Write {words} in JSON.")
            return
    if field.choices and value not in field.choices:
        yield _not_a_choice(field.name, field.choices, value)
    further = _FORMS.get(field.name)
    if further is not None:
        yield from further(value)


def _not_a_choice(field: str, choices: tuple[str, ...], value: object) -> Violation:
    return Violation(field, f"must be one of {', '.join(choices)}, got {shown(value)}", "Use one of these values.")


def _form_of_url(url: str) -> Iterator[Violation]:
    if len(url) > fields.MAX_URL_LENGTH:
        yield Violation(
            "url",
            f"must be at most {fields.MAX_URL_LENGTH} characters, got {len(url)}",
            "Send what makes it long in the request body instead.",
        )
        return
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        yield Violation("url", f"is not a URL: {error}", "Give an absolute URL such as https://example.com/.")
        return
    if parts.scheme.lower() not in ("http", "https") or not host:
        yield Violation("url", "must be an absolute http or https URL", "Give one such as https://example.com/page.")
    elif "\\" in parts.netloc:
        # Browsers read a backslash as a slash, so the host would be ambiguous.
        yield Violation("url", "must not have a backslash in its host", "Write a slash after the host.")
    elif is_address(host):
        remedy = "Use the host's domain name. A request of Scrapy's can go direct: meta extract_api False."
        yield Violation("url", "must name a domain, not an IP address", remedy)


def is_address(host: str) -> bool:
    """Return true when a URL's host is an IP address in any form that clients accept.

    Besides dotted IPv4 and IPv6: ``127.1``, ``0x7f000001`` and ``2130706433`` (the WHATWG rule: a host whose last label
    is a number is an IPv4 address), also after percent-decoding and replacing compatible characters (full-width digits,
    ideographic stops).
    """
    if "%" in host or not host.isascii():
        host = unicodedata.normalize("NFKC", unquote(host)).replace("\u3002", ".")
    last_label = host.rstrip(".").rpartition(".")[2]
    return ":" in host or _ADDRESS_PART.fullmatch(last_label) is not None


def _form_of_tags(tags: dict[str, Any]) -> Iterator[Violation]:
    for key, value in tags.items():
        if value is not None and not isinstance(value, str):
            yield Violation(
                f"tags.{shown(key)}",
                f"must be a string or null, got {_json_type(value)}",
                "Convert the value to a string.",
            )


def _form_of_request_body(data: str) -> Iterator[Violation]:
    if len(data) > fields.MAX_HTTP_REQUEST_BODY_LENGTH:
        yield Violation(
            "httpRequestBody",
            f"must be at most {fields.MAX_HTTP_REQUEST_BODY_LENGTH} characters of Base64, got {len(data)}",
            "Send a smaller body.",
        )
        return
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        yield Violation("httpRequestBody", "must be Base64", "Encode the bytes of the body as Base64.")


def _form_of_request_text(text: str) -> Iterator[Violation]:
    if not fields.MIN_HTTP_REQUEST_TEXT_LENGTH <= len(text) <= fields.MAX_HTTP_REQUEST_TEXT_LENGTH:
        yield Violation(
            "httpRequestText",
            f"must be 1 to {fields.MAX_HTTP_REQUEST_TEXT_LENGTH} characters, got {len(text)}",
            "Leave it out for an empty body." if not text else "Send a smaller body.",
        )


def _form_of_headers(headers: list[Any]) -> Iterator[Violation]:
    if len(headers) > fields.MAX_CUSTOM_HEADERS:
        yield _too_many("customHttpRequestHeaders", headers)
        return
    for index, header in enumerate(headers):
        yield from _form_of_header(f"customHttpRequestHeaders[{index}]", header)


def _too_many(field: str, values: list[Any]) -> Violation:
    rule = f"must have at most {fields.MAX_CUSTOM_HEADERS} items, got {len(values)}"
    return Violation(field, rule, "Send fewer headers.")


def _form_of_header(place: str, header: object) -> Iterator[Violation]:
    if not isinstance(header, dict) or set(header) != {"name", "value"}:
        yield Violation(place, "must be an object of name and value", 'Write {"name": "X-Name", "value": "text"}.')
        return
    name, value = header["name"], header["value"]
    if not isinstance(name, str) or not isinstance(value, str):
        yield Violation(place, "must have strings as name and value", "Convert both to strings.")
    elif len(name) < fields.MIN_HEADER_NAME_LENGTH:
        yield Violation(f"{place}.name", "must be at least 1 character", "Name the header.")
    elif not TOKEN.fullmatch(name):
        yield Violation(f"{place}.name", "has a character that no header name may have", "Use letters, digits and -.")
    elif name.lower() == "cookie":
        yield Violation(f"{place}.name", "cannot be Cookie", "Send cookies in requestCookies.")
    elif CONTROL.search(value):
        yield Violation(f"{place}.value", "must be one line", "Remove line breaks and control characters.")


def _form_of_names(names: list[Any]) -> Iterator[Violation]:
    if len(names) > fields.MAX_CUSTOM_HEADERS:
        yield _too_many("omitHttpRequestHeaders", names)
        return
    for index, name in enumerate(names):
        if not isinstance(name, str) or not TOKEN.fullmatch(name):
            yield Violation(f"omitHttpRequestHeaders[{index}]", "must be the name of a header", 'Write "User-Agent".')


def _form_of_screenshot_options(options: dict[str, Any]) -> Iterator[Violation]:
    if not isinstance(options.get("fullPage", False), bool):
        yield Violation("screenshotOptions.fullPage", "must be true or false", "Write true or false, without quotes.")
    if not isinstance(options.get("format", ""), str):
        yield Violation("screenshotOptions.format", "must be a string", 'Write "png" or "jpeg".')


def _form_of_options(name: str) -> Callable[[dict[str, Any]], Iterator[Violation]]:
    def form(options: dict[str, Any]) -> Iterator[Violation]:
        value = options.get("extractFrom", EXTRACT_FROM[0])
        if value not in EXTRACT_FROM:
            yield _not_a_choice(f"{name}.extractFrom", EXTRACT_FROM, value)

    return form


def _form_of_objects(name: str) -> Callable[[list[Any]], Iterator[Violation]]:
    def form(values: list[Any]) -> Iterator[Violation]:
        for index, value in enumerate(values):
            if not isinstance(value, dict):
                yield Violation(
                    f"{name}[{index}]", f"must be an object, got {_json_type(value)}", "Write {...} with its members."
                )

    return form


def _form_of_geolocation(country: str) -> Iterator[Violation]:
    if not _COUNTRY.fullmatch(country):
        yield Violation(
            "geolocation", f"must be a country code, got {shown(country)}", "Use two upper-case letters, such as US."
        )


_FORMS: Final[dict[str, Callable[[Any], Iterator[Violation]]]] = {
    "url": _form_of_url,
    "tags": _form_of_tags,
    "httpRequestBody": _form_of_request_body,
    "httpRequestText": _form_of_request_text,
    "customHttpRequestHeaders": _form_of_headers,
    "omitHttpRequestHeaders": _form_of_names,
    "screenshotOptions": _form_of_screenshot_options,
    **{name: _form_of_options(name) for name in OPTIONS.values()},
    "actions": _form_of_objects("actions"),
    "requestCookies": _form_of_objects("requestCookies"),
    "geolocation": _form_of_geolocation,
    "customAttributes": faults_of,
    **EXTENSION_FORMS,
}


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if value is None:
        return "null"
    names = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """Return a value for an error message, cut to a readable length."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
