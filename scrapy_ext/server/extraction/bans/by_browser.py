"""An HTTP request as a page of the browser, and the page's document as an answer by HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan
from scrapy_ext.server.net.upstream import Upstream

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.browser.page_result import PageResult
    from scrapy_ext.server.extraction.http.fetch import HttpResult

#: Headers of the caller's HTTP request that a browser sets by itself.
_OF_BROWSERS: Final = ("accept", "accept-encoding", "accept-language", "upgrade-insecure-requests")


def is_for_browser(todo: HttpPlan) -> bool:
    """Return whether a browser would send the same request."""
    return todo.method == "GET" and not todo.body and todo.follows_redirects


def page_plan(todo: HttpPlan, upstream: Upstream | None, challenge: float) -> PagePlan:
    return PagePlan(
        url=todo.url,
        headers=[
            header
            for header in todo.headers
            if header.name.lower() not in _OF_BROWSERS and not header.name.lower().startswith("sec-")
        ],
        cookies=todo.cookies,
        document=True,
        response_headers=True,
        response_cookies=True,
        session=todo.session,
        state=todo.state,
        device=todo.device,
        language=todo.language,
        upstream=upstream,
        challenge=challenge,
    )


def http_result(todo: HttpPlan, page: PageResult, document: bytes) -> HttpResult:
    from scrapy_ext.server.extraction.http.fetch import HttpResult  # it imports the HTTP client

    return HttpResult(
        url=page.url,
        status=page.status or 200,
        headers=page.headers or [],
        body=document,
        cookies=page.cookies if todo.response_cookies else None,
        redirects=page.redirects or [],
        state=page.state,
    )
