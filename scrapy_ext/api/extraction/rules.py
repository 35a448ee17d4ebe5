"""The rules of ``POST /extract`` (extraction-api.md, Rules that hold for a request; Limits).

Both sides call :func:`check`: the client before it sends, the server before it works, so that nothing is
sent which must fail, and all that is wrong is told at once. Malformed input has status 400, a well-formed
request whose fields do not go together 422.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from scrapy_ext.api.extraction import limits
from scrapy_ext.api.extraction.attributes import faults_of
from scrapy_ext.api.extraction.decoding import decode, echo_data
from scrapy_ext.api.extraction.fields import EXTRACT_FROM, EXTRACT_TYPES, FIELDS, OUTPUTS, Field, JsonType
from scrapy_ext.api.extraction.problems import Problem
from scrapy_ext.api.extraction.records import ExtractRequest
from scrapy_ext.api.violations import ContractError, Violation

#: Fields that only an HTTP request for the body understands (rule 9).
BODY_ONLY: Final = ("httpRequestMethod", "httpRequestBody", "httpRequestText", "customHttpRequestHeaders")
#: Fields that need a browser, so that ``httpResponseBody`` excludes them (rule 7).
BROWSER_ONLY: Final = ("browserHtml", "screenshot", "screenshotOptions", "actions", "includeIframes", "viewport")

#: Broken rules that an answer tells of.
TOLD: Final = 20
#: Broken rules that are looked for in one field, and unknown fields: a body has room for a million of each.
MOST: Final = 100
_LONGEST_NAME: Final = max(map(len, FIELDS))

_JSON_TYPES: Final[dict[JsonType, tuple[type, str]]] = {
    JsonType.STRING: (str, "a string"),
    JsonType.BOOLEAN: (bool, "true or false"),
    JsonType.OBJECT: (dict, "an object"),
    JsonType.ARRAY: (list, "an array"),
}
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
#: What no value of a header may have (RFC 9110, 5.5).
CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_COUNTRY: Final = re.compile(r"[A-Z]{2}")
_ADDRESS_PART: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)


def check(body: Mapping[str, Any], *, extra_fields: Collection[str] = ()) -> list[Violation]:
    """Every rule that a decoded request body breaks; an empty list when it breaks none.

    ``extra_fields`` admits fields which the service learned after this version of the contract; they are
    passed on unchecked.
    """
    switches = frozenset(name for name, value in body.items() if value is True and name != "url")
    if len(switches) == len(body) - 1 and "url" in body and switches <= FIELDS.keys():
        # Most requests are a URL and a few switches, the same ones each time.
        return [*_form(FIELDS["url"], body["url"]), *_faults_of(switches)]
    return _check(body, extra_fields)


@lru_cache(maxsize=1024)
def _faults_of(switches: frozenset[str]) -> tuple[Violation, ...]:
    """What is wrong with these fields, all of them true, beside a URL."""
    return tuple(_check({"url": "https://example.com/", **dict.fromkeys(sorted(switches), True)}, ()))


def _check(body: Mapping[str, Any], extra_fields: Collection[str]) -> list[Violation]:
    violations = list(_unknown_fields(body, extra_fields))
    well_formed: dict[str, Any] = {}
    for name, value in body.items():
        field = FIELDS.get(name)
        if field is None:
            continue
        faults = list(islice(_form(field, value), MOST))
        violations.extend(faults)
        if not faults:
            well_formed[name] = value
    if "url" not in body:
        violations.append(Violation("url", "is required", "Give the absolute URL of the page."))
    violations.extend(_some_output(body))
    for rule in _COMBINATIONS:
        violations.extend(rule(well_formed))
    return violations


def parse(body: bytes, *, extra_fields: Collection[str] = ()) -> ExtractRequest:
    """Decode and check a request body.

    ``echo_data`` is the text that was sent, as ``msgspec.Raw``, so that its numbers keep their digits. Raises
    :class:`~scrapy_ext.api.extraction.decoding.InvalidJsonError` for a body that is not JSON, and
    :class:`~scrapy_ext.api.violations.ContractError` with every broken rule otherwise.
    """
    if len(body) > limits.MAX_BODY_BYTES:
        raise ContractError([body_too_large(len(body))])
    decoded = decode(body)
    if not isinstance(decoded, dict):
        raise ContractError([Violation("request body", "must be a JSON object", 'Send {"url": ..., ...}.')])
    violations = check(decoded, extra_fields=extra_fields)
    if violations:
        raise ContractError(violations)
    request = msgspec.convert({k: v for k, v in decoded.items() if v is not None}, ExtractRequest)
    if "echoData" in decoded:
        request.echo_data = echo_data(body)
    return request


def body_too_large(size: int) -> Violation:
    """The violation of rule 12 for an encoded body of ``size`` bytes."""
    return Violation(
        "request body",
        f"must be at most {limits.MAX_BODY_BYTES} bytes (5 MiB), got {size}",
        "Send less in httpRequestBody, echoData or tags.",
        413,
    )


def problem_of(error: ContractError) -> Problem:
    """The problem that answers a request with these violations: malformed input before incompatible, and of more
    than :data:`TOLD` the first ones."""
    kind = {413: "/request/too-large", 422: "/request/unprocessable"}.get(error.status, "/request/invalid")
    return Problem.of(kind, error.told(TOLD))


def _unknown_fields(body: Mapping[str, Any], extra_fields: Collection[str]) -> Iterator[Violation]:
    unknown = [name for name in body if name not in FIELDS and name not in extra_fields]
    for name in unknown[:MOST]:
        # Looking for a near name takes its time.
        looked_for = len(name) < 2 * _LONGEST_NAME
        close = difflib.get_close_matches(name, FIELDS, n=1, cutoff=0.6) if looked_for else []
        remedy = f"Did you mean {close[0]}?" if close else "Remove it, or see the list of fields."
        if name.removesuffix("Options") in EXTRACT_TYPES:
            remedy = "Write extractFrom beside the kind instead."
        yield Violation(_shown(name), "is not a field of an extraction request", remedy)


# ── the form of one field ──


def check_url(url: str, place: str) -> Iterator[Violation]:
    """What is wrong with a URL that is to be loaded and stands at ``place``: what would be wrong with ``url``."""
    for fault in _form_of_url(url):
        yield Violation(place, fault.rule, fault.remedy)


def _form(field: Field, value: Any) -> Iterator[Violation]:
    if value is None:
        if not field.nullable:
            yield Violation(field.name, "must not be null", "Leave the field out instead.")
        return
    if field.type is not JsonType.ANY:
        expected, words = _JSON_TYPES[field.type]
        if not isinstance(value, expected):
            yield Violation(field.name, f"must be {words}, got {_json_type(value)}", "Change its type.")
            return
    if field.choices and value not in field.choices:
        yield Violation(
            field.name,
            f"must be one of {', '.join(field.choices)}, got {_shown(value)}",
            "Use one of these values.",
        )
    further = _FORMS.get(field.name)
    if further is not None:
        yield from further(value)


def _form_of_url(url: str) -> Iterator[Violation]:
    if len(url) > limits.MAX_URL_LENGTH:
        yield Violation(
            "url",
            f"must be at most {limits.MAX_URL_LENGTH} characters, got {len(url)}",
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
        # What browsers read as a slash; there would be two readings of which host is meant.
        yield Violation("url", "must not have a backslash in its host", "Write a slash after the host.")
    elif is_address(host):
        yield Violation("url", "must name a domain, not an IP address", "Use the host's domain name.")


def is_address(host: str) -> bool:
    """Whether a URL's host is an IP address in any form that clients take for one.

    Beside dotted IPv4 and IPv6 these are ``127.1``, ``0x7f000001`` and ``2130706433``: the WHATWG rule, by
    which a host whose last label is a number is an IPv4 address. So are those that become one when percent signs are
    decoded and compatible characters (full-width digits, ideographic stops) are replaced by what they stand for.
    """
    if "%" in host or not host.isascii():
        host = unicodedata.normalize("NFKC", unquote(host)).replace("\u3002", ".")
    last_label = host.rstrip(".").rpartition(".")[2]
    return ":" in host or _ADDRESS_PART.fullmatch(last_label) is not None


def _form_of_tags(tags: dict[str, Any]) -> Iterator[Violation]:
    for key, value in tags.items():
        if value is not None and not isinstance(value, str):
            yield Violation(
                f"tags.{_shown(key)}",
                f"must be a string or null, got {_json_type(value)}",
                "Convert the value to a string.",
            )


def _form_of_request_body(data: str) -> Iterator[Violation]:
    if len(data) > limits.MAX_HTTP_REQUEST_BODY_LENGTH:
        yield Violation(
            "httpRequestBody",
            f"must be at most {limits.MAX_HTTP_REQUEST_BODY_LENGTH} characters of Base64, got {len(data)}",
            "Send a smaller body.",
        )
        return
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        yield Violation("httpRequestBody", "must be Base64", "Encode the bytes of the body as Base64.")


def _form_of_request_text(text: str) -> Iterator[Violation]:
    if not limits.MIN_HTTP_REQUEST_TEXT_LENGTH <= len(text) <= limits.MAX_HTTP_REQUEST_TEXT_LENGTH:
        yield Violation(
            "httpRequestText",
            f"must be 1 to {limits.MAX_HTTP_REQUEST_TEXT_LENGTH} characters, got {len(text)}",
            "Leave it out for an empty body." if not text else "Send a smaller body.",
        )


def _form_of_headers(headers: list[Any]) -> Iterator[Violation]:
    if len(headers) > limits.MAX_CUSTOM_HEADERS:
        yield Violation(
            "customHttpRequestHeaders",
            f"must have at most {limits.MAX_CUSTOM_HEADERS} items, got {len(headers)}",
            "Send fewer headers.",
        )
        return
    for index, header in enumerate(headers):
        yield from _form_of_header(f"customHttpRequestHeaders[{index}]", header)


def _form_of_header(place: str, header: Any) -> Iterator[Violation]:
    if not isinstance(header, dict) or set(header) != {"name", "value"}:
        yield Violation(place, "must be an object of name and value", 'Write {"name": "X-Name", "value": "text"}.')
        return
    name, value = header["name"], header["value"]
    if not isinstance(name, str) or not isinstance(value, str):
        yield Violation(place, "must have strings as name and value", "Convert both to strings.")
    elif len(name) < limits.MIN_HEADER_NAME_LENGTH:
        yield Violation(f"{place}.name", "must be at least 1 character", "Name the header.")
    elif not _TOKEN.fullmatch(name):
        yield Violation(f"{place}.name", "has a character that no header name may have", "Use letters, digits and -.")
    elif name.lower() == "cookie":
        yield Violation(f"{place}.name", "the Cookie header cannot be set", "Send cookies in requestCookies.")
    elif CONTROL.search(value):
        yield Violation(f"{place}.value", "must be one line", "Remove line breaks and control characters.")


def _form_of_screenshot_options(options: dict[str, Any]) -> Iterator[Violation]:
    if not isinstance(options.get("fullPage", False), bool):
        yield Violation("screenshotOptions.fullPage", "must be true or false", "Change its type.")
    if not isinstance(options.get("format", ""), str):
        yield Violation("screenshotOptions.format", "must be a string", 'Write "png" or "jpeg".')


def _form_of_serp_options(options: dict[str, Any]) -> Iterator[Violation]:
    value = options.get("extractFrom", EXTRACT_FROM[0])
    if value not in EXTRACT_FROM:
        yield Violation(
            "serpOptions.extractFrom",
            f"must be one of {', '.join(EXTRACT_FROM)}, got {_shown(value)}",
            "Use one of these values.",
        )


def _form_of_objects(name: str) -> Callable[[list[Any]], Iterator[Violation]]:
    def form(values: list[Any]) -> Iterator[Violation]:
        for index, value in enumerate(values):
            if not isinstance(value, dict):
                yield Violation(f"{name}[{index}]", f"must be an object, got {_json_type(value)}", "Change its type.")

    return form


def _form_of_geolocation(country: str) -> Iterator[Violation]:
    if not _COUNTRY.fullmatch(country):
        yield Violation(
            "geolocation", f"must be a country code, got {_shown(country)}", "Use two upper-case letters, such as US."
        )


_FORMS: Final[dict[str, Callable[[Any], Iterator[Violation]]]] = {
    "url": _form_of_url,
    "tags": _form_of_tags,
    "httpRequestBody": _form_of_request_body,
    "httpRequestText": _form_of_request_text,
    "customHttpRequestHeaders": _form_of_headers,
    "screenshotOptions": _form_of_screenshot_options,
    "serpOptions": _form_of_serp_options,
    "actions": _form_of_objects("actions"),
    "requestCookies": _form_of_objects("requestCookies"),
    "geolocation": _form_of_geolocation,
    "customAttributes": faults_of,
}


# ── what goes together ──

_Fields = Mapping[str, Any]


def _some_output(body: _Fields) -> Iterator[Violation]:
    """Rule 1. An output of the wrong type was asked for too; its type is told by itself."""
    if not any(body.get(name) for name in OUTPUTS):
        yield _incompatible(
            "request", f"must ask for at least one output: {', '.join(OUTPUTS)}", "Set one of them to true."
        )


def _serp_alone(fields: _Fields) -> Iterator[Violation]:
    """Rule 5, and the part of rule 8 about ``serp``."""
    if fields.get("serp"):
        for name in fields:
            if name not in ("url", "serp", "serpOptions") and _is_set(fields, name):
                yield _incompatible(name, "cannot be combined with serp", "Send serp with url and serpOptions only.")


def _one_extract_type(fields: _Fields) -> Iterator[Violation]:
    """Rule 6."""
    asked = [name for name in EXTRACT_TYPES if fields.get(name)]
    for name in asked[1:]:
        yield _incompatible(
            name, f"cannot be combined with {asked[0]}", "Ask for one kind of automatic extraction a request."
        )


def _body_or_browser(fields: _Fields) -> Iterator[Violation]:
    """Rules 3, 4 and 7."""
    if fields.get("serp"):
        return
    extract_type = next((name for name in EXTRACT_TYPES if fields.get(name)), None)
    by_http = fields.get("extractFrom") == "httpResponseBody"
    if fields.get("httpResponseBody"):
        for name in (*BROWSER_ONLY, "requestHeaders"):
            if _is_set(fields, name):
                remedy = (
                    "Use customHttpRequestHeaders." if name == "requestHeaders" else "Send two requests, or drop one."
                )
                yield _incompatible(name, "cannot be combined with httpResponseBody", remedy)
        if extract_type is not None and not by_http:
            yield _incompatible(
                extract_type,
                "is extracted from a browser request, which httpResponseBody cannot be combined with",
                'Add "extractFrom": "httpResponseBody".',
            )
    elif extract_type is not None and by_http:
        for name in BROWSER_ONLY:
            if _is_set(fields, name):
                yield _incompatible(
                    name, "needs a browser request, and extractFrom chooses an HTTP request", "Leave out extractFrom."
                )


def _body_only(fields: _Fields) -> Iterator[Violation]:
    """Rule 9."""
    if not fields.get("httpResponseBody") and not fields.get("serp"):
        for name in BODY_ONLY:
            if _is_set(fields, name):
                yield _incompatible(
                    name, "is valid only together with httpResponseBody", "Ask for httpResponseBody, or leave it out."
                )


def _one_request_body(fields: _Fields) -> Iterator[Violation]:
    """Rule 10."""
    if _is_set(fields, "httpRequestBody") and _is_set(fields, "httpRequestText"):
        yield _incompatible("httpRequestText", "cannot be combined with httpRequestBody", "Send one of the two.")


def _with_something_extracted(fields: _Fields) -> Iterator[Violation]:
    """``customAttributes`` is used with automatic extraction (the table of fields), and so is ``fieldSources``."""
    for name in ("customAttributes", "fieldSources"):
        if _is_set(fields, name) and not any(fields.get(kind) for kind in EXTRACT_TYPES):
            yield _incompatible(
                name, "needs a kind of automatic extraction", f"Ask for one of {', '.join(EXTRACT_TYPES)}."
            )


_COMBINATIONS: Final = (
    _serp_alone,
    _one_extract_type,
    _body_or_browser,
    _body_only,
    _one_request_body,
    _with_something_extracted,
)


def _incompatible(field: str, rule: str, remedy: str) -> Violation:
    return Violation(field, rule, remedy, 422)


def _is_set(fields: _Fields, name: str) -> bool:
    """Whether a field asks for something: ``false``, an empty array and an empty object ask for nothing."""
    return fields.get(name) not in (None, False, [], {})


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if value is None:
        return "null"
    names = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def _shown(value: Any) -> str:
    """A value in an error message, cut to a readable length."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
