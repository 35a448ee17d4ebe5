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
from urllib.parse import urldefrag

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext.api.extraction import Redirect
from scrapy_ext.api.extraction.forms import REDIRECTS
from scrapy_ext.api.masking import is_private_header
from scrapy_ext.client.extraction.errors import RedirectFollowedError
from scrapy_ext.crawl.extraction.plan import FOLLOW_REDIRECT, Exchange
from scrapy_ext.crawl.session.scrapy_engine import share_values

_HEADERS: Final = "customHttpRequestHeaders"
#: Reason in ``redirect_reasons`` for a redirect whose status the service does not report.
_UNKNOWN: Final = "extract-api"


class Redirects:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._most = crawler.settings.getint("REDIRECT_MAX_TIMES")
        self._priority = crawler.settings.getint("REDIRECT_PRIORITY_ADJUST")

    def finish(self, exchange: Exchange, response: Response, accepted: Collection[str]) -> Response:
        """Return the response, with the request of the page at the end of the redirects.

        ``accepted``: fields that the service accepts besides those of the contract.
        Raises :class:`RedirectFollowedError` if the service followed a redirect that must not be followed, and
        ``IgnoreRequest`` where Scrapy would not have followed it: past REDIRECT_MAX_TIMES, or offsite.
        """
        request, kept_by = exchange.request, exchange.redirects_kept_by
        followed = _followed(request, response, accepted)
        if not followed:
            return response
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


def _followed(request: Request, response: Response, accepted: Collection[str]) -> list[Redirect]:
    result: Mapping[str, Any] = getattr(response, "extract_result", None) or {}
    if FOLLOW_REDIRECT in accepted or "redirects" in result:
        try:
            return msgspec.convert(result.get("redirects") or [], list[Redirect])
        except msgspec.ValidationError:
            return []
    return [] if response.url == urldefrag(request.url).url else [Redirect(request.url, 0)]


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
