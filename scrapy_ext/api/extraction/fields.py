"""Table of all fields of an extraction request (extraction-api.md, Extraction request).

:mod:`~scrapy_ext.api.extraction.rules`, the documentation, the client and the server use it. Values that the contract
does not define (``requestHeaders``, ``actions`` beyond two kinds, …) are not typed further.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec

# ── limits of ``POST /extract`` (extraction-api.md, Limits), in characters unless stated ──

#: Request body in bytes (rule 12).
MAX_BODY_BYTES: Final = 5 * 1024 * 1024
MAX_URL_LENGTH: Final = 8192
#: ``httpRequestBody`` in Base64 characters, as sent.
MAX_HTTP_REQUEST_BODY_LENGTH: Final = 400_000
MIN_HTTP_REQUEST_TEXT_LENGTH: Final = 1
MAX_HTTP_REQUEST_TEXT_LENGTH: Final = 400_000
MAX_CUSTOM_HEADERS: Final = 200
MIN_HEADER_NAME_LENGTH: Final = 1
#: ``requestCookies`` of this package's service and client: more bytes than sites accept in a header.
MAX_COOKIES: Final = 3000
#: Members of ``sessionContext``, and characters of their names and values.
MAX_SESSION_CONTEXT: Final = 50
MAX_SESSION_CONTEXT_LENGTH: Final = 1000
#: ``networkCapture``: filters of a request, and characters of the text that a filter searches.
MAX_CAPTURE_FILTERS: Final = 10
MAX_CAPTURE_LENGTH: Final = 1000


class JsonType(str, Enum):
    STRING = "string"
    BOOLEAN = "boolean"
    NUMBER = "number"
    OBJECT = "object"
    ARRAY = "array"
    ANY = "any JSON value"


class RequestKind(str, Enum):
    ANY = "any"
    HTTP = "http"
    BROWSER = "browser"


class Field(msgspec.Struct, frozen=True):
    """A field: its JSON type, its request kind, and its meaning in a line.

    ``extension``: a field of this package's service only (:data:`EXTENSIONS_HEADER`).
    """

    name: str
    type: JsonType
    meaning: str
    kind: RequestKind = RequestKind.ANY
    nullable: bool = False
    choices: tuple[str, ...] = ()
    extension: bool = False


#: Kinds of automatic extraction, in the order of the contract. A request has at most one.
EXTRACT_TYPES: Final = (
    "article",
    "articleList",
    "articleNavigation",
    "forumThread",
    "jobPosting",
    "jobPostingNavigation",
    "pageContent",
    "product",
    "productList",
    "productNavigation",
    "serp",
)

#: The options field of each kind.
OPTIONS: Final = {kind: f"{kind}Options" for kind in EXTRACT_TYPES}

#: Field with the least probability of items and entries, and the member of results that has what is left out.
MIN_PROBABILITY: Final = "minProbability"
LEFT_OUT: Final = "leftOut"
#: Fields that a request without a kind must not have.
OF_KIND: Final = ("customAttributes", "fieldSources", "extractRules", MIN_PROBABILITY)

#: Output of a page as Markdown, with its options: of this package's service alone.
MARKDOWN: Final = "markdown"
MARKDOWN_OPTIONS: Final = "markdownOptions"
#: Values of ``markdownOptions.content``: the main content of the page, or all that it shows.
MARKDOWN_CONTENT: Final = ("main", "all")

#: Outputs that the service makes of a page, and the options field of each. They share ``extractFrom``.
MADE_OF_PAGE: Final = (*EXTRACT_TYPES, MARKDOWN)
PAGE_OPTIONS: Final = {**OPTIONS, MARKDOWN: MARKDOWN_OPTIONS}

#: Those that the contract does not define. They are no extensions in :data:`EXTENSIONS_HEADER`: hosted services have
#: them as well.
UNDEFINED_OPTIONS: Final = tuple(name for name in OPTIONS.values() if name != "serpOptions")

#: Outputs of which at least one must be true (rule 1).
OUTPUTS: Final = (
    "browserHtml",
    "httpResponseBody",
    "httpResponseHeaders",
    "screenshot",
    *MADE_OF_PAGE,
)

METHODS: Final = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "HEAD")
IP_TYPES: Final = ("datacenter", "residential")
#: Values of ``extractFrom``, also in the options of a kind. The contract shows only the first; the second names its
#: alternative, a browser request.
EXTRACT_FROM: Final = ("httpResponseBody", "browserHtml")
DEVICES: Final = ("desktop", "mobile")
#: Values of ``networkCapture[].filterType`` and ``matchType``: the part of a response that a filter examines, and how.
CAPTURE_TYPES: Final = ("url", "resourceType")
#: Types of resources, as Chromium has them.
CAPTURE_RESOURCES: Final = (
    *("document", "stylesheet", "image", "media", "font", "script", "texttrack", "xhr", "fetch", "eventsource"),
    *("websocket", "manifest", "beacon", "ping", "cspreport", "cspviolationreport", "preflight", "prefetch", "other"),
)
CAPTURE_MATCHES: Final = ("exact", "contains", "startsWith", "endsWith")

_STRING, _BOOLEAN, _NUMBER, _OBJECT, _ARRAY, _ANY = JsonType
_HTTP, _BROWSER = RequestKind.HTTP, RequestKind.BROWSER

FIELDS: Final[dict[str, Field]] = {
    field.name: field
    for field in (
        Field("url", _STRING, "Absolute URL of the page; its host is a domain name."),
        Field("requestHeaders", _OBJECT, "Headers to send when the output is not httpResponseBody."),
        Field("tags", _OBJECT, "Key-value pairs to find the request by.", nullable=True),
        Field("ipType", _STRING, "Kind of address to send from.", choices=IP_TYPES),
        Field("httpRequestMethod", _STRING, "Method.", _HTTP, choices=METHODS),
        Field("httpRequestBody", _STRING, "Request body as Base64.", _HTTP),
        Field("httpRequestText", _STRING, "Request body as text, sent as UTF-8.", _HTTP),
        Field("customHttpRequestHeaders", _ARRAY, "Headers as {name, value} objects.", _HTTP),
        Field(
            "omitHttpRequestHeaders",
            _ARRAY,
            "Names of the service's own headers not to send.",
            _HTTP,
            extension=True,
        ),
        Field(
            "followRedirect",
            _BOOLEAN,
            "false: return a redirect (3xx) itself instead of the page it leads to.",
            _HTTP,
            extension=True,
        ),
        Field("httpResponseBody", _BOOLEAN, "Return the response body, as Base64.", _HTTP),
        Field("httpResponseHeaders", _BOOLEAN, "Return the response headers."),
        Field("browserHtml", _BOOLEAN, "Return the HTML of the browser's DOM.", _BROWSER),
        Field("screenshot", _BOOLEAN, "Return a screenshot, as Base64.", _BROWSER),
        Field("screenshotOptions", _OBJECT, "fullPage, format.", _BROWSER),
        Field("echoData", _ANY, "Returned unchanged.", nullable=True),
        Field("jobId", _STRING, "Returned unchanged."),
        Field("actions", _ARRAY, "Browser actions, run before the HTML is taken.", _BROWSER),
        Field("geolocation", _STRING, "Country to send from, two upper-case letters."),
        Field("extractFrom", _STRING, "Request kind for automatic extraction.", choices=EXTRACT_FROM),
        Field("customAttributes", _OBJECT, "Attributes to extract: name to {type, description, enum}."),
        Field("fieldSources", _BOOLEAN, "Return the rule, element and other values of each field.", extension=True),
        Field("extractRules", _OBJECT, "Rules by field that correct the kind on this page.", extension=True),
        Field(MIN_PROBABILITY, _NUMBER, "Leave out items and entries of a lower probability, 0 to 1.", extension=True),
        Field("includeIframes", _BOOLEAN, "Fill iframes in browserHtml.", _BROWSER),
        Field("includeShadowRoots", _BOOLEAN, "Write open shadow roots into browserHtml.", _BROWSER, extension=True),
        Field("requestCookies", _ARRAY, "Cookies to send: {name, value, domain} objects."),
        Field("responseCookies", _BOOLEAN, "Return the cookies after the last response.", extension=True),
        Field("viewport", _OBJECT, "Size of the browser window in pixels: width, height.", _BROWSER, extension=True),
        Field("session", _OBJECT, "Session to send the request in: id, a UUID of the caller's choice.", extension=True),
        Field("sessionContext", _ARRAY, "Session of the service for {name, value} objects.", extension=True),
        Field("sessionContextParameters", _OBJECT, "actions that begin such a session.", extension=True),
        Field("networkCapture", _ARRAY, "Responses to return of what the page loads.", _BROWSER, extension=True),
        Field("javascript", _BOOLEAN, "false: do not run the scripts of the page.", _BROWSER, extension=True),
        Field("device", _STRING, "Kind of device to appear as.", choices=DEVICES, extension=True),
        Field(MARKDOWN, _BOOLEAN, "Return the page as Markdown.", extension=True),
        Field(MARKDOWN_OPTIONS, _OBJECT, "content, links, images, hidden, extractFrom.", extension=True),
        Field("experimental", _OBJECT, "requestCookies and responseCookies under an older name.", extension=True),
        *(Field(name, _BOOLEAN, f"Return automatic extraction of {name}.") for name in EXTRACT_TYPES),
        # The contract defines serpOptions only; clients of such services send the same member in the others.
        *(Field(name, _OBJECT, f"extractFrom, for {kind}.") for kind, name in OPTIONS.items()),
    )
}

#: Header of every answer below ``/v1``: fields that the service supports beyond the contract.
EXTENSIONS_HEADER: Final = "Extract-Extensions"
EXTENSIONS: Final = tuple(name for name, field in FIELDS.items() if field.extension)


def source_of(fields: Mapping[str, Any]) -> Any:
    """Return the effective ``extractFrom``: that of the options of a requested output, else of the field, else None.

    For ``serp`` only its options count (rule 2).
    """
    if fields.get("serp"):
        return sources_in_options(fields).get("serp")
    return next(iter(sources_in_options(fields).values()), fields.get("extractFrom"))


def sources_in_options(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``extractFrom`` of the options of each requested output that has it, by output."""
    found = {}
    for name in MADE_OF_PAGE:
        options = fields.get(PAGE_OPTIONS[name]) if fields.get(name) else None
        if isinstance(options, Mapping) and options.get("extractFrom") is not None:
            found[name] = options["extractFrom"]
    return found


def kind_of(fields: Mapping[str, Any]) -> str:
    """Return the kind of request that the service makes for these fields, ``"http"`` or ``"browser"`` (rules 2 and
    3)."""
    if fields.get("browserHtml") or fields.get("screenshot"):
        return RequestKind.BROWSER.value
    if fields.get("httpResponseBody"):
        return RequestKind.HTTP.value
    if fields.get("serp"):
        return RequestKind.BROWSER.value if source_of(fields) == "browserHtml" else RequestKind.HTTP.value
    if any(fields.get(name) for name in MADE_OF_PAGE) and source_of(fields) != "httpResponseBody":
        return RequestKind.BROWSER.value
    return RequestKind.HTTP.value
