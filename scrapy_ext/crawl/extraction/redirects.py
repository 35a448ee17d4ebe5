"""Redirects of routed requests, handled by Scrapy's settings and meta keys.

An HTTP request asks the service for the redirect itself (``followRedirect``), and Scrapy's own middlewares do the rest,
as for direct requests: ``dont_redirect``, ``handle_httpstatus_list``, REDIRECT_ENABLED, REDIRECT_MAX_TIMES, cookies,
the offsite filter. Each hop is a request to the service.

A browser follows redirects by itself, as does a service without that field, or for a request without response headers,
which Scrapy needs to follow. The request of the response then has the known redirects in its meta, as after a redirect
of Scrapy's. A redirect that must not be followed is an error: the page at its end is not returned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext.api.extraction import Redirect
from scrapy_ext.api.extraction.forms import REDIRECTS, is_private_header
from scrapy_ext.client.extraction.budget import kind_of
from scrapy_ext.client.extraction.errors import RedirectFollowedError
from scrapy_ext.client.http import is_same_page
from scrapy_ext.crawl.session.scrapy_engine import share_values

FIELD: Final = "followRedirect"
_HEADERS: Final = "customHttpRequestHeaders"
#: Reason in ``redirect_reasons`` for a redirect whose status the service does not report.
_UNKNOWN: Final = "extract-api"


class Redirects:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._enabled = crawler.settings.getbool("REDIRECT_ENABLED")
        self._most = crawler.settings.getint("REDIRECT_MAX_TIMES")
        self._priority = crawler.settings.getint("REDIRECT_PRIORITY_ADJUST")
        #: Fields that the service accepts besides those of the contract.
        self.extensions: Collection[str] = ()

    def to_send(self, request: Request, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a request, with ``followRedirect`` where Scrapy should follow. A value of the user's
        stays."""
        if FIELD not in self.extensions or FIELD in fields or request.meta.get("extract_api_automap") is False:
            return fields
        if fields.get("serp") or kind_of(fields) == "browser":
            return fields
        if not fields.get("httpResponseHeaders") and not self.kept_by(request):
            return fields
        return {**fields, FIELD: False}

    def is_to_be_repeated(
        self, request: Request, response: Response, sent: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bool:
        """Return true if the service has followed redirects that Scrapy should follow. This happens to the first
        requests of a crawl, before an answer has shown that the service has the field."""
        result: Mapping[str, Any] = getattr(response, "extract_result", None) or {}
        return bool(result.get("redirects")) and FIELD not in sent and FIELD in self.to_send(request, fields)

    def finish(self, request: Request, response: Response) -> Response:
        """Return the response, with the request of the page at the end of the redirects.

        Raises :class:`RedirectFollowedError` if the service followed a redirect that must not be followed, and
        ``IgnoreRequest`` where Scrapy would not have followed it: past REDIRECT_MAX_TIMES, or offsite.
        """
        followed = self._followed(request, response)
        if not followed:
            return response
        kept_by = self.kept_by(request)
        if kept_by:
            raise RedirectFollowedError(kept_by, response.url, sent={"url": request.url})
        redirected = self._redirected(request, response, followed)
        offsite = self._crawler.get_downloader_middleware(OffsiteMiddleware)
        if offsite is not None:
            offsite.process_request(redirected)
        # Middlewares have the first request; the callback must see their changes in the other one.
        request.meta.update(redirected.meta)
        share_values(request, redirected)
        response.request = redirected
        return response

    @staticmethod
    def keep_private(request: Request, result: object) -> None:
        """Remove headers with credentials, in meta ``extract_api``, from a redirect to another origin."""
        if not isinstance(result, Request) or result is request:
            return
        asked = result.meta.get("extract_api")
        if not isinstance(asked, dict) or asked != request.meta.get("extract_api") or _is_of_origin(request, result):
            return
        headers = asked.get(_HEADERS)
        if isinstance(headers, list):
            kept = [header for header in headers if not is_private_header(str(header.get("name")))]
            others = {name: value for name, value in asked.items() if name != _HEADERS}
            result.meta["extract_api"] = {**others, _HEADERS: kept} if kept else others or True

    def _followed(self, request: Request, response: Response) -> list[Redirect]:
        result: Mapping[str, Any] = getattr(response, "extract_result", None) or {}
        if FIELD in self.extensions or "redirects" in result:
            try:
                return msgspec.convert(result.get("redirects") or [], list[Redirect])
            except msgspec.ValidationError:
                return []
        return [] if is_same_page(request.url, response.url) else [Redirect(request.url, 0)]

    def kept_by(self, request: Request) -> str:
        """Return the meta key, attribute or setting that forbids to follow redirects, empty if none does."""
        meta, spider = request.meta, self._crawler.spider
        for name in ("dont_redirect", "handle_httpstatus_all"):
            if meta.get(name):
                return f"meta key {name}"
        # Some of Scrapy's own lists only support the operator in.
        for place, listed in (
            ("meta key handle_httpstatus_list", meta.get("handle_httpstatus_list")),
            ("attribute handle_httpstatus_list of the spider", getattr(spider, "handle_httpstatus_list", None)),
        ):
            if listed is not None and any(status in listed for status in REDIRECTS):
                return place
        return "" if self._enabled else "setting REDIRECT_ENABLED"

    def _redirected(self, request: Request, response: Response, followed: list[Redirect]) -> Request:
        meta = dict(request.meta)
        times = meta.get("redirect_times", 0) + len(followed)
        if times > self._most or meta.get("redirect_ttl", self._most) < len(followed):
            raise IgnoreRequest("max redirections reached")
        meta["redirect_times"] = times
        meta["redirect_ttl"] = meta.get("redirect_ttl", self._most) - len(followed)
        meta["redirect_urls"] = [*meta.get("redirect_urls", []), request.url, *(hop.url for hop in followed[1:])]
        reasons = [hop.status_code or _UNKNOWN for hop in followed]
        meta["redirect_reasons"] = [*meta.get("redirect_reasons", []), *reasons]
        changes: dict[str, Any] = {"method": "GET", "body": b""} if _becomes_get(request.method, followed) else {}
        redirected: Request = request.replace(
            url=response.url,
            meta=meta,
            priority=request.priority + self._priority * len(followed),
            cookies=None,
            **changes,
        )
        return redirected


def _is_of_origin(request: Request, other: Request) -> bool:
    before, after = urlparse_cached(request), urlparse_cached(other)
    return (before.scheme, before.netloc) == (after.scheme, after.netloc)


def is_left_to_scrapy(response: Response) -> bool:
    """Return true for a redirect that Scrapy's middleware handles."""
    return response.status in REDIRECTS and b"Location" in response.headers


def _becomes_get(method: str, followed: list[Redirect]) -> bool:
    return any(
        (hop.status_code in (301, 302) and method == "POST")
        or (hop.status_code == 303 and method not in ("GET", "HEAD"))
        for hop in followed
    )
