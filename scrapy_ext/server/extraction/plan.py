"""Plan of an extraction request: the one HTTP fetch or browser page that it needs.

This module does no I/O: every fault of a request is found here, before anything is loaded. Members that the contract
leaves open (of actions, cookies, screenshot options) are read here, and members that this server does not support are
refused here, by name, instead of being ignored.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.extraction import EXTRACT_TYPES, ExtractRequest, Header
from scrapy_ext.api.extraction.fields import OPTIONS
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.extraction.actions.action import Action, malformed
from scrapy_ext.server.extraction.auto import KINDS, KINDS_BY_STYLES
from scrapy_ext.server.extraction.outgoing import (
    LANGUAGE,
    Cookie,
    language_of,
    read_cookies,
    read_request_headers,
    timezone_of,
)
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.net.pool import ProxyPool, Tiers
from scrapy_ext.server.net.upstream import Upstream


class ScreenshotOptions(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """``screenshotOptions``: a JPEG of the window by default."""

    full_page: bool = False
    format: str = "jpeg"


class CaptureFilter(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One of ``networkCapture``: the responses to return, and whether with their bodies."""

    filter_type: str
    value: str
    match_type: str = "exact"
    http_response_body: bool = False

    def matches(self, url: str, resource_type: str) -> bool:
        text = url if self.filter_type == "url" else resource_type
        match self.match_type:
            case "contains":
                return self.value in text
            case "startsWith":
                return text.startswith(self.value)
            case "endsWith":
                return text.endswith(self.value)
        return text == self.value


class Viewport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``viewport``: the size of the window, in pixels."""

    width: int = 1280
    height: int = 720


#: Window of a phone.
_MOBILE_VIEWPORT: Final = Viewport(412, 915)
_LEAST_SIDE: Final = 100
_LONGEST_SIDE: Final = 4096


class RequestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Members that an HTTP request and a page of the browser have in common."""

    url: str
    headers: list[Header] = []
    cookies: list[Cookie] = []
    response_cookies: bool = False
    #: Name and state of the session.
    session: str | None = None
    state: SessionState | None = None
    device: str = "desktop"
    language: str = LANGUAGE
    #: The proxies for the request, and the one that is used for a try.
    proxies: Tiers = ((None,),)
    upstream: Upstream | None = None


class HttpPlan(RequestPlan, frozen=True, kw_only=True):
    """An HTTP request to make. Without ``wants_body`` the answer ends at its headers."""

    method: str = "GET"
    body: bytes | None = None
    omitted_headers: list[str] = []
    follows_redirects: bool = True
    wants_body: bool = True


class PagePlan(RequestPlan, frozen=True, kw_only=True):
    """A page to load in the browser, and the data to take from it."""

    actions: list[Action] = []
    html: bool = True
    #: The HTML is read for signs of a ban only: one that is too large is left out.
    html_is_optional: bool = False
    iframes: bool = False
    shadow_roots: bool = False
    #: The HTML for automatic extraction, with its shadow roots and displays.
    styles: bool = False
    #: The same with computed styles.
    looks: bool = False
    #: The same with the rectangles of elements in the screenshot.
    boxes: bool = False
    response_headers: bool = False
    screenshot: ScreenshotOptions | None = None
    viewport: Viewport = Viewport()
    captures: list[CaptureFilter] = []
    javascript: bool = True
    timezone: str | None = None
    #: The body of the page's own document, as it was received.
    document: bool = False
    #: Share of ``limits.challenge`` to wait for the page behind a challenge that scripts pass.
    challenge: float = 0.0


#: URLs without characters to escape: most of them.
_SAFE: Final = re.compile(r"https?://[a-z0-9.\-]+(:[0-9]+)?/[A-Za-z0-9/._~\-?&=+,;:@]*")


def plan(request: ExtractRequest, pool: ProxyPool) -> HttpPlan | PagePlan:
    """Return the plan of a request and its proxies; raises :class:`ContractError` with all violations."""
    violations = list(_unsupported(request))
    headers, faults = read_request_headers(request.request_headers)
    violations += faults
    cookies, faults = _read_cookies(request)
    violations += faults
    actions, faults = _read_actions(request.actions)
    violations += faults
    screenshot, faults = _read_screenshot(request)
    violations += faults
    viewport, faults = _read_viewport(request)
    violations += faults
    proxies, faults = pool.tiers(request.geolocation, request.ip_type)
    violations += faults
    url = request.url if _SAFE.fullmatch(request.url) else _safe(request.url)
    language = language_of(request.geolocation)
    wants_cookies = request.response_cookies or bool(request.experimental.get("responseCookies"))
    if violations:
        raise ContractError(violations)
    if request.wants_browser:
        return PagePlan(
            url=url,
            headers=headers,
            cookies=cookies,
            actions=actions,
            html=request.browser_html,
            iframes=request.include_iframes,
            shadow_roots=request.include_shadow_roots,
            styles=request.makes_something,
            looks=request.extract_type in KINDS_BY_STYLES,
            boxes=request.field_sources and request.screenshot,
            response_headers=request.http_response_headers,
            response_cookies=wants_cookies,
            screenshot=screenshot,
            viewport=viewport,
            captures=msgspec.convert(request.network_capture, list[CaptureFilter]),
            javascript=request.javascript is not False,
            device=request.device,
            language=language,
            timezone=timezone_of(request.geolocation),
            proxies=proxies,
        )
    return HttpPlan(
        url=url,
        method=request.http_request_method,
        headers=[*headers, *request.custom_http_request_headers],
        body=_body(request),
        cookies=cookies,
        omitted_headers=request.omit_http_request_headers,
        follows_redirects=request.follow_redirect,
        wants_body=request.http_response_body or request.makes_something,
        response_cookies=wants_cookies,
        device=request.device,
        language=language,
        proxies=proxies,
    )


def first_page(request: ExtractRequest, todo: HttpPlan | PagePlan) -> PagePlan | None:
    """Return the page that begins a session of the service, with the actions of ``sessionContextParameters``; None
    without any. Raises :class:`ContractError` with all violations."""
    actions, violations = _read_actions(
        request.session_context_parameters.get("actions", []), "sessionContextParameters.actions"
    )
    if violations:
        raise ContractError(violations)
    if not actions:
        return None
    return PagePlan(
        url=todo.url,
        actions=actions,
        html=False,
        viewport=todo.viewport if isinstance(todo, PagePlan) else _viewport_of(todo.device),
        device=todo.device,
        language=todo.language,
        timezone=timezone_of(request.geolocation),
        proxies=todo.proxies,
    )


def _body(request: ExtractRequest) -> bytes | None:
    if request.http_request_body is not None:
        return base64.b64decode(request.http_request_body)
    return None if request.http_request_text is None else request.http_request_text.encode()


def _unsupported(request: ExtractRequest) -> Iterator[Violation]:
    for each, name in OPTIONS.items():
        unknown = next((member for member in request.options_of(each) if member != "extractFrom"), None)
        if unknown is not None:
            yield Violation(f"{name}.{unknown[:60]}", f"is not a member of {name}", "It has extractFrom only.")
    kind = request.extract_type
    if kind is not None and kind not in KINDS:
        yield Violation(
            kind,
            "is a kind of automatic extraction that this server does not have",
            f"It has {', '.join(name for name in EXTRACT_TYPES if name in KINDS)}.",
            422,
        )


def _safe(url: str) -> str:
    from w3lib.url import safe_url_string  # rarely needed

    return safe_url_string(url)


def _read_cookies(request: ExtractRequest) -> tuple[list[Cookie], list[Violation]]:
    """Read the cookies to send. One whose domain is the host of the URL is for that host alone, as those of browsers
    are that have no dot before their domain."""
    host = urlsplit(request.url).hostname
    cookies, faults = read_cookies(request.request_cookies)
    older, older_faults = read_cookies(request.experimental.get("requestCookies", []), "experimental.requestCookies")
    alone = [
        msgspec.structs.replace(cookie, domain=None) if (cookie.domain or "").lower() in ("", host) else cookie
        for cookie in (*cookies, *older)
    ]
    return alone, [*faults, *older_faults]


def _read_actions(actions: list[dict[str, Any]], place: str = "actions") -> tuple[list[Action], list[Violation]]:
    if not actions:
        return [], []
    # It imports the browser's driver, which few requests need.
    from scrapy_ext.server.extraction.actions.reading import read_actions

    return read_actions(actions, place)


def _read_screenshot(request: ExtractRequest) -> tuple[ScreenshotOptions | None, list[Violation]]:
    try:
        options = msgspec.convert(request.screenshot_options, ScreenshotOptions)
    except msgspec.ValidationError as error:
        return None, [malformed("screenshotOptions", str(error), "Its members are fullPage, format.")]
    if options.format not in ("jpeg", "png"):
        rule = f"must be jpeg or png, got {options.format[:20]!r}"
        return None, [Violation("screenshotOptions.format", rule, "Use one of these values.")]
    return (options if request.screenshot else None), []


def _viewport_of(device: str) -> Viewport:
    return _MOBILE_VIEWPORT if device == "mobile" else Viewport()


def _read_viewport(request: ExtractRequest) -> tuple[Viewport, list[Violation]]:
    default = _viewport_of(request.device)
    try:
        viewport = msgspec.convert({**msgspec.structs.asdict(default), **request.viewport}, Viewport)
    except msgspec.ValidationError as error:
        return Viewport(), [malformed("viewport", str(error), "Its members are width, height.")]
    rule = f"must be {_LEAST_SIDE} to {_LONGEST_SIDE} pixels"
    sides = (("width", viewport.width), ("height", viewport.height))
    return viewport, [
        Violation(f"viewport.{name}", f"{rule}, got {side}", "Use a value in this range.")
        for name, side in sides
        if not _LEAST_SIDE <= side <= _LONGEST_SIDE
    ]
