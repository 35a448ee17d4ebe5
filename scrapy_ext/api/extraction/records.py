"""Typed records of the extraction service (extraction-api.md, Resources and their fields), and of its proxies.

The success of a server's proxies is reported by the platform's API. Numbers are those of one server process since its
start.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scrapy_ext.api.extraction.fields import EXTRACT_TYPES, OPTIONS


class Header(msgspec.Struct, frozen=True):
    """An HTTP header. A result lists repeated headers repeatedly."""

    name: str
    value: str


class Redirect(msgspec.Struct, frozen=True, rename="camel"):
    """A redirect that the service followed: its URL and status."""

    url: str
    status_code: int


class ExtractRequest(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A valid extraction request, made by :func:`~scrapy_ext.api.extraction.parse`."""

    url: str
    request_headers: dict[str, Any] = {}
    tags: dict[str, str | None] | None = None
    ip_type: str | None = None
    http_request_method: str = "GET"
    http_request_body: str | None = None
    http_request_text: str | None = None
    custom_http_request_headers: list[Header] = []
    omit_http_request_headers: list[str] = []
    follow_redirect: bool = True
    http_response_body: bool = False
    http_response_headers: bool = False
    browser_html: bool = False
    screenshot: bool = False
    screenshot_options: dict[str, Any] = {}
    echo_data: Any = msgspec.UNSET
    job_id: str | None = None
    actions: list[dict[str, Any]] = []
    geolocation: str | None = None
    extract_from: str | None = None
    custom_attributes: dict[str, Any] = {}
    field_sources: bool = False
    extract_rules: dict[str, dict[str, Any]] = {}
    min_probability: float | None = None
    include_iframes: bool = False
    include_shadow_roots: bool = False
    request_cookies: list[dict[str, Any]] = []
    response_cookies: bool = False
    viewport: dict[str, Any] = {}
    session: dict[str, str] = {}
    session_context: list[dict[str, str]] = []
    session_context_parameters: dict[str, Any] = {}
    network_capture: list[dict[str, Any]] = []
    javascript: bool | None = None
    device: str = "desktop"
    experimental: dict[str, Any] = {}
    markdown: bool = False
    markdown_options: dict[str, Any] = {}
    article: bool = False
    article_list: bool = False
    article_navigation: bool = False
    forum_thread: bool = False
    job_posting: bool = False
    job_posting_navigation: bool = False
    page_content: bool = False
    product: bool = False
    product_list: bool = False
    product_navigation: bool = False
    serp: bool = False
    article_options: dict[str, Any] = {}
    article_list_options: dict[str, Any] = {}
    article_navigation_options: dict[str, Any] = {}
    forum_thread_options: dict[str, Any] = {}
    job_posting_options: dict[str, Any] = {}
    job_posting_navigation_options: dict[str, Any] = {}
    page_content_options: dict[str, Any] = {}
    product_options: dict[str, Any] = {}
    product_list_options: dict[str, Any] = {}
    product_navigation_options: dict[str, Any] = {}
    serp_options: dict[str, Any] = {}

    @property
    def extract_type(self) -> str | None:
        """The requested kind of automatic extraction (``"productList"``), if any."""
        return next((name for name in EXTRACT_TYPES if getattr(self, _ATTRIBUTES[name])), None)

    @property
    def wants_browser(self) -> bool:
        """Return true when a browser must load the page (rules 2 and 3)."""
        if self.browser_html or self.screenshot:
            return True
        if self.http_response_body or not self.makes_something:
            return False
        return self.source == "browserHtml" if self.serp else self.source != "httpResponseBody"

    @property
    def makes_something(self) -> bool:
        """Return true when something is made of the page: automatic extraction, or Markdown."""
        return self.markdown or self.extract_type is not None

    @property
    def source(self) -> str | None:
        """The effective ``extractFrom`` (rule 2)."""
        kind = self.extract_type
        chosen: str | None = self.options_of(kind).get("extractFrom") if kind is not None else None
        if kind == "serp":
            return chosen
        beside = self.markdown_options.get("extractFrom") if self.markdown else None
        return chosen or beside or self.extract_from

    def options_of(self, kind: str) -> dict[str, Any]:
        """Return the options of a kind of automatic extraction."""
        options: dict[str, Any] = getattr(self, _ATTRIBUTES[OPTIONS[kind]])
        return options


class SourceCandidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value of a rule after the one that a field is from: one of ``fieldSources.….others``."""

    #: In the form of the field; texts are cut at 500 characters, lists at 20 entries.
    value: Any
    #: The rule, in words, or the place in structured data: ``json-ld Product.offers.price``.
    rule: str
    #: Absolute XPath of the element that shows the value, in the page as extracted.
    xpath: str | None = None
    #: The first 200 characters of its text.
    text: str | None = None
    #: Its rectangle in the screenshot: x, y, width, height, in CSS pixels.
    box: tuple[int, int, int, int] | None = None


class FieldSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """Source of the value of a field: one of ``fieldSources``. Members as in :class:`SourceCandidate`."""

    rule: str
    xpath: str | None = None
    text: str | None = None
    box: tuple[int, int, int, int] | None = None
    #: The next other values in the order of the rules, at most three.
    others: list[SourceCandidate] = []


class LeftOut(msgspec.Struct, frozen=True):
    """Items or entries that are left out of a result: their number, and the highest of their probabilities."""

    count: int
    probability: float


class ExtractResult(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """The body of a 200 answer.

    The contract names ``browserHtml``, ``httpResponseBody``, ``httpResponseHeaders``, ``echoData`` and ``jobId``;
    clients of such services also expect ``url`` (final) and ``statusCode``. ``http_response_body`` and ``screenshot``
    are Base64. Automatic extraction is an object in the schema of zyte-common-items under the name of its kind.
    ``custom_attributes`` has ``values`` and ``metadata``; ``field_sources`` maps fields of the item to their source in
    the page (:class:`FieldSource`), and ``extract_rules`` to what the rule of each did. ``left_out`` maps the kind, or
    the lists of its item, to what ``minProbability`` leaves out of them. ``markdown`` is the page as Markdown.
    ``redirects`` lists the redirects from the requested URL to the page. ``network_capture`` lists responses as
    ``{url, statusCode, headers, httpResponseBody}``; ``experimental`` has ``responseCookies`` if they were requested
    there.
    """

    url: str | None = None
    status_code: int | None = None
    redirects: list[Redirect] | None = None
    http_response_body: str | None = None
    http_response_headers: list[Header] | None = None
    browser_html: str | None = None
    screenshot: str | None = None
    response_cookies: list[dict[str, Any]] | None = None
    network_capture: list[dict[str, Any]] | None = None
    experimental: dict[str, Any] | None = None
    echo_data: Any = msgspec.UNSET
    job_id: str | None = None
    actions: list[dict[str, Any]] | None = None
    custom_attributes: dict[str, Any] | None = None
    field_sources: dict[str, FieldSource] | None = None
    extract_rules: dict[str, dict[str, Any]] | None = None
    left_out: dict[str, LeftOut] | None = None
    markdown: str | None = None
    article: dict[str, Any] | None = None
    article_list: dict[str, Any] | None = None
    article_navigation: dict[str, Any] | None = None
    forum_thread: dict[str, Any] | None = None
    job_posting: dict[str, Any] | None = None
    job_posting_navigation: dict[str, Any] | None = None
    page_content: dict[str, Any] | None = None
    product: dict[str, Any] | None = None
    product_list: dict[str, Any] | None = None
    product_navigation: dict[str, Any] | None = None
    serp: dict[str, Any] | None = None


_ATTRIBUTES = {field.encode_name: field.name for field in msgspec.structs.fields(ExtractRequest)}


class ProxyFigures(msgspec.Struct, frozen=True):
    """Requests by one proxy, to a site or (``site`` null) to all. ``proxy`` is ``direct`` for no proxy.

    ``site`` is a host, with its port unless that is the usual one; ``by`` is ``http`` or ``browser``, null as ``site``.
    """

    proxy: str
    #: Scheme, host and port, without credentials; empty for no proxy.
    address: str
    site: str | None
    by: str | None
    #: Requests by result: the page, a ban, a failure of the proxy.
    passed: int
    banned: int
    failed: int
    #: Recent success, from 0 to 1.
    success: float
    #: Seconds that its cool-down still takes; 0: none.
    cooling: int


class Proxies(msgspec.Struct, frozen=True):
    """The proxies of a server, and each of them at the sites that were requested last."""

    proxies: list[ProxyFigures]
    sites: list[ProxyFigures]
