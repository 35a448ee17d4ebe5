"""Fingerprint of a routed request: it distinguishes requests for different content.

A request for the plain page (body and headers over HTTP) has the fingerprint that Scrapy gives it, routed or not. Any
other fingerprint depends on the fields that change the content. Headers and cookies do not count, as in Scrapy; neither
do tags, echoData, jobId and ipType, which leave the content unchanged, nor the choice of who follows redirects, nor the
session of a request, which a retry may change; a ``sessionContext`` does, since it stands for other content.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import fingerprint as scrapy_fingerprint
from w3lib.url import canonicalize_url

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import MADE_OF_PAGE
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.api.extraction.fields import PAGE_OPTIONS, source_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.extraction.content import content_fields, is_routed
from scrapy_ext.crawl.extraction.rule_files import SiteRules, UsedRules

#: Fields that do not change the content.
IGNORED: Final = frozenset(
    {"tags", "echoData", "jobId", "ipType", "requestHeaders", "customHttpRequestHeaders", "requestCookies"}
    | {"omitHttpRequestHeaders", "followRedirect", "responseCookies", "experimental"}
    | {"session", "sessionContextParameters"}
)

#: Fields that a request for the plain page can have.
_PLAIN: Final = frozenset({"httpResponseBody", "httpRequestMethod", "httpRequestBody"})


class ExtractRequestFingerprinter:
    """Scrapy's request fingerprinter for crawls through the extraction service (REQUEST_FINGERPRINTER_CLASS).

    ``transparent`` and ``params`` are EXTRACT_API_TRANSPARENT_MODE and EXTRACT_API_PARAMS; ``rules`` are those of
    sites, which change the content as a field of the request does.
    """

    def __init__(self, *, transparent: bool, params: Mapping[str, Any], rules: SiteRules | None = None) -> None:
        self._rules = rules or SiteRules()
        self._transparent = transparent
        self._params = params
        self._known: WeakKeyDictionary[Request, tuple[Any, bytes]] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(
            transparent=names.EXTRACT_API_TRANSPARENT_MODE.read(crawler.settings),
            params=names.EXTRACT_API_PARAMS.read(crawler.settings),
            rules=SiteRules.of(crawler.settings),
        )

    @property
    def is_plain(self) -> bool:
        """Return true if each request without ``extract_api`` fields of its own has the fingerprint of Scrapy's."""
        return not self._params

    def fingerprint(self, request: Request) -> bytes:
        if not self._may_differ(request):
            return scrapy_fingerprint(request)
        # Middlewares may change the meta after the scheduler has computed the fingerprint.
        asked = (request.meta.get("extract_api"), request.meta.get("extract_api_automap"))
        known = self._known.get(request)
        if known is None or known[0] != asked:
            known = self._known[request] = (asked, self._computed(request))
        return known[1]

    def _may_differ(self, request: Request) -> bool:
        """Return false for a request that can only be for the plain page, as most are: it needs no more work."""
        has_fields = bool(self._params) or isinstance(request.meta.get("extract_api"), Mapping)
        return has_fields and is_routed(request, transparent=self._transparent)

    def _computed(self, request: Request) -> bytes:
        try:
            fields = content_fields(request, self._params)
            used = self._rules_for(request, fields)
            return fingerprint(request, {**fields, EXTRACT_RULES: used.rules} if used is not None else fields)
        except (ContractError, TypeError, ValueError):
            # Unreadable fields are reported when the request is sent; the scheduler must not fail because of them.
            return scrapy_fingerprint(request)

    def _rules_for(self, request: Request, fields: Mapping[str, Any]) -> UsedRules | None:
        """Return the rules of the request's site; None for one that has rules of its own, or None for them."""
        asked = request.meta.get("extract_api")
        has_own = EXTRACT_RULES in self._params or (isinstance(asked, Mapping) and EXTRACT_RULES in asked)
        return None if has_own else self._rules.for_request(request.url, fields)


def fingerprint(request: Request, fields: Mapping[str, Any] | None) -> bytes:
    """Return the fingerprint of a request with these fields, None if it is not routed. 20 bytes, as Scrapy's."""
    if fields is None:
        return scrapy_fingerprint(request)
    content = _content(fields)
    if content.keys() <= _PLAIN and content.get("httpResponseBody"):
        return scrapy_fingerprint(_plain_request(request, content))
    url = str(fields.get("url", request.url))
    if not request.meta.get("verbatim_url"):
        url = canonicalize_url(url, keep_fragments=_may_use_browser(fields))
    # The hash is an identity, not a protection.
    return hashlib.sha1(msgspec.json.encode([url, content], order="deterministic"), usedforsecurity=False).digest()


def _content(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that count, in one form where the API has two."""
    content = {
        name: value
        for name, value in fields.items()
        if name not in IGNORED and name != "url" and value not in (None, False, [], {})
    }
    if content.get("httpRequestMethod") == "GET":
        del content["httpRequestMethod"]
    content.pop("javascript", None)
    if fields.get("javascript") is False:
        # The one field whose false changes the content.
        content["javascript"] = False
    text = content.pop("httpRequestText", None)
    if isinstance(text, str):
        content["httpRequestBody"] = base64.b64encode(text.encode()).decode()
    if content.get("httpResponseBody"):
        content.pop("httpResponseHeaders", None)
    for kind, name in PAGE_OPTIONS.items():
        if name in content and kind != "serp":
            _unfold(content, kind, content.pop(name))
    return content


def _unfold(content: dict[str, Any], kind: str, options: object) -> None:
    """Write ``extractFrom`` beside the data type. Options of a type that is not requested do not count."""
    if content.get(kind) and isinstance(options, Mapping):
        members = dict(options)
        source = members.pop("extractFrom", None)
        content.update({"extractFrom": source} if source else {})
        content.update({PAGE_OPTIONS[kind]: members} if members else {})


def _plain_request(request: Request, content: Mapping[str, Any]) -> Request:
    """Return the request that Scrapy would send for the same page: the fields may contain method and body."""
    method = content.get("httpRequestMethod", "GET")
    body = base64.b64decode(content.get("httpRequestBody", ""))
    if (method, body) == (request.method, request.body):
        return request
    return request.replace(method=method, body=body)


def _may_use_browser(fields: Mapping[str, Any]) -> bool:
    """Return true if the fragment of the URL may change the content."""
    if fields.get("httpResponseBody") or source_of(fields) == "httpResponseBody":
        return False
    return any(fields.get(name) for name in ("browserHtml", "screenshot", *MADE_OF_PAGE))
