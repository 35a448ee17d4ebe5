"""The plan of a routed request: from Request and settings to an :class:`Exchange`.

Nothing is sent or changed here. A table of requests and their exchanges is a test of everything that a user can say in
settings and meta (tests/unit/crawl/extraction). The attributes of a request become fields by the kind of output:

================  ==========================================  ================================================
of the request    with ``httpResponseBody``                   else
================  ==========================================  ================================================
method, body      ``httpRequestMethod``, ``httpRequestBody``  the same, which the rules refuse (rule 9)
headers           ``customHttpRequestHeaders``                ``requestHeaders``: ``referer``, ``userAgent`` and
                                                              ``acceptLanguage``; others are left out, with a
                                                              warning
headers of None   ``omitHttpRequestHeaders``                  left out, with a warning
cookies           ``requestCookies``                          ``requestCookies``
================  ==========================================  ================================================

``requestCookies`` are ``{name, value, domain}`` objects; the Cookie header is never sent. The document defines
neither their form nor the names of ``requestHeaders``: these are choices made here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.misc import load_object

from scrapy_ext import settings as names
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.api.extraction.fields import MIN_PROBABILITY, RequestKind, kind_of
from scrapy_ext.api.extraction.forms import REDIRECTS
from scrapy_ext.client.extraction import Bounds
from scrapy_ext.client.extraction.retry_policy import RetryPolicy
from scrapy_ext.crawl.extraction.content import Body, content_fields, content_of
from scrapy_ext.crawl.extraction.cookies import (
    REQUEST_COOKIES,
    RESPONSE_COOKIES,
    CrawlCookies,
    Places,
    cookie_field,
    for_service,
)
from scrapy_ext.crawl.extraction.doubtful import for_service as doubts_for_service
from scrapy_ext.crawl.extraction.escalation import Escalation
from scrapy_ext.crawl.extraction.from_settings import RequestPolicies, params_of, policy_of
from scrapy_ext.crawl.extraction.headers import (
    OMITTED_HEADERS,
    header_field,
    left_out,
    omitted_field,
    omitted_headers,
    scrapy_default_headers,
)
from scrapy_ext.crawl.extraction.rule_files import SiteRules, UsedRules
from scrapy_ext.crawl.extraction.site_rules import with_rules
from scrapy_ext.crawl.frontier.marks import DefaultHeaders

BROWSER: Final = RequestKind.BROWSER.value
#: Field that asks the service to follow redirects, or not to.
FOLLOW_REDIRECT: Final = "followRedirect"
_SAFE_METHODS: Final = ("GET", "HEAD")


class BodyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of every request of a crawl.

    ``params``: fields of EXTRACT_API_PARAMS.
    ``default_headers``: headers that are left out if a request has them with exactly these values
    (:func:`scrapy_default_headers`).
    ``job_id``: the running job.
    ``cookies``: whether cookies are sent (COOKIES_ENABLED).
    ``own_cookies``: whether those of a request without a Cookie header are, as without CookiesMiddleware.
    ``omitted_headers``: headers that are not sent with a request that does not set them (:func:`omitted_headers`).
    ``cookie_places``: returns the domains and paths of a request's cookies, by name and value.
    """

    params: Mapping[str, Any] = {}
    default_headers: DefaultHeaders = frozenset()
    job_id: str | None = None
    cookies: bool = True
    own_cookies: bool = True
    omitted_headers: Collection[str] = ()
    cookie_places: Places | None = None


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the service, with all that is decided without asking the service.

    :meth:`fields_for` adds what the service is known to accept; the client checks the fields by the contract.
    """

    request: Request
    #: Host, or ``download_slot``, that the limits of a site refer to.
    host: str
    body: Body
    #: True if Scrapy keeps the cookies of the response.
    keeps_cookies: bool
    #: Meta key, attribute or setting that forbids to follow redirects; empty if none does.
    redirects_kept_by: str
    bounds: Bounds
    #: Bytes of a body from which on a warning is logged; 0: none.
    warn_size: int
    policy: RetryPolicy
    #: Conditions under which the page needs the browser, none by default, and the exchange for that page by browser;
    #: None where it comes from one, or never does.
    escalation: Escalation = Escalation()
    by_browser: Exchange | None = None
    #: Rules for the kind of item that it requests; None: none.
    rules: UsedRules | None = None
    #: False if it gets an answer of its own even while an identical one is under way.
    may_share: bool = True

    @property
    def kind(self) -> str:
        """``"http"`` or ``"browser"``."""
        return self.body.kind

    @property
    def fields(self) -> Mapping[str, Any]:
        """Fields that any service accepts."""
        return self.body.fields

    @property
    def is_safe(self) -> bool:
        """True if sending it twice has no effect on the site."""
        return self.request.method in _SAFE_METHODS

    @property
    def depends_on_service(self) -> bool:
        """True if it must not be sent before it is known which fields the service accepts.

        A foreign service is asked only for these. A request that must not be sent twice is one, since the service may
        follow redirects; so is one by browser, whose cookies may log in.
        """
        asks_for_cookies = self.keeps_cookies and self.kind == BROWSER and RESPONSE_COOKIES not in self.fields
        has_parts = bool(self.body.omitted_headers) or self.rules is not None or MIN_PROBABILITY in self.fields
        return not self.is_safe or bool(self.redirects_kept_by) or has_parts or asks_for_cookies

    @property
    def identity(self) -> Mapping[str, Any]:
        """Fields that distinguish it from exchanges with other results."""
        return self.fields if self.rules is None else {**self.fields, EXTRACT_RULES: self.rules.rules}

    def fields_for(self, accepted: Collection[str]) -> Mapping[str, Any]:
        """Return the fields to send to a service that accepts these besides those of the contract: with the fields by
        which Scrapy follows redirects, keeps cookies and leaves out headers. Values of the user stay.

        Raises :class:`ContractError` for a field that is not sent, but applied here, and breaks a rule.
        """
        fields, is_by_browser = dict(self.fields), self.kind == BROWSER
        if self.body.has_scrapy_cookies and REQUEST_COOKIES in fields:
            cookies = for_service(fields.pop(REQUEST_COOKIES), accepted)
            fields.update({REQUEST_COOKIES: cookies} if cookies else {})
        fields |= omitted_field(self.body.omitted_headers, accepted, by_http=bool(fields.get("httpResponseBody")))
        with_headers = fields.get("httpResponseHeaders")
        # Scrapy follows redirects by the headers of each.
        is_followed = not (self.body.is_whole or is_by_browser) and bool(with_headers or self.redirects_kept_by)
        if is_followed and FOLLOW_REDIRECT in accepted:
            fields.setdefault(FOLLOW_REDIRECT, False)
        # Scrapy reads cookies from the headers, if it has those of each redirect.
        are_read = not is_by_browser and with_headers and fields.get(FOLLOW_REDIRECT) is False
        if self.keeps_cookies and not are_read and RESPONSE_COOKIES in accepted:
            fields.setdefault(RESPONSE_COOKIES, True)
        # They are of the site: they count, too, where the user names all fields (meta extract_api_automap False).
        return doubts_for_service(with_rules(fields, self.rules, accepted), accepted)


class Plan:
    """Plans of one crawl. Raises :class:`SettingError`."""

    def __init__(self, crawler: Crawler, cookies: CrawlCookies) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._cookies = cookies
        self._extra_fields: list[str] = names.EXTRACT_API_EXTRA_FIELDS.read(settings)
        self._policies = RequestPolicies(policy_of(settings))
        self._bounds = Bounds(settings.getfloat("DOWNLOAD_TIMEOUT"), settings.getint("DOWNLOAD_MAXSIZE"))
        self._warn_size = settings.getint("DOWNLOAD_WARNSIZE")
        self._follows_redirects = settings.getbool("REDIRECT_ENABLED")
        # Without a filter, each request is meant: a page may have changed.
        self._filters = load_object(settings["DUPEFILTER_CLASS"]) is not BaseDupeFilter
        self._rules = SiteRules.of(settings).require_selectors()
        self._options = BodyOptions(
            params=params_of(settings),
            default_headers=scrapy_default_headers(settings),
            cookies=settings.getbool("COOKIES_ENABLED"),
            # CookiesMiddleware has removed cookies that do not belong to the request.
            own_cookies=False,
            omitted_headers=omitted_headers(settings),
            cookie_places=cookies.places,
        )

    def content_fields_of(self, request: Request) -> dict[str, Any]:
        """Return the fields of the content that a request is for; raises :class:`ContractError` for unreadable meta."""
        return content_fields(request, self._options.params, needed=True)

    def exchange(self, request: Request, host: str, job_id: str | None) -> Exchange:
        """Return the exchange of a request, and with it the one by browser of a page that may need one.

        Raises :class:`ContractError` for unreadable meta, and for fields that no browser request can have.
        """
        kept_by, bounds = self._redirects_kept_by(request), self._bounds_of(request)
        body = to_body(request, self._options_for(job_id))
        planned = partial(
            Exchange,
            request=request,
            host=host,
            keeps_cookies=not body.is_whole and self._cookies.are_kept(request),
            redirects_kept_by=kept_by,
            bounds=bounds,
            warn_size=request.meta.get("download_warnsize", self._warn_size) or 0,
            policy=self._policies.of(request),
            may_share=self._filters,
        )
        escalation = Escalation.of(request, self._crawler.spider)
        if escalation is None or body.kind == BROWSER:
            return planned(body=body, rules=self._rules_for(request, body))
        fields = escalation.browser_fields(body.fields, extra_fields=self._extra_fields)
        # Fields of the user may make it an HTTP request, such as one from another country.
        kind = kind_of(fields) if escalation.to else BROWSER
        has_scrapy_cookies = body.has_scrapy_cookies and REQUEST_COOKIES not in escalation.to
        escalated = Body(fields, kind, body.given, body.is_whole, has_scrapy_cookies=has_scrapy_cookies)
        by_browser = planned(body=escalated, rules=self._rules_for(request, escalated))
        return planned(body=body, escalation=escalation, by_browser=by_browser, rules=self._rules_for(request, body))

    def _rules_for(self, request: Request, body: Body) -> UsedRules | None:
        """Return the rules of the request's site; None for one that has rules of its own, or None for them."""
        has_own = EXTRACT_RULES in body.given or EXTRACT_RULES in body.fields
        return None if has_own else self._rules.for_request(request.url, body.fields)

    def _redirects_kept_by(self, request: Request) -> str:
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
        return "" if self._follows_redirects else "setting REDIRECT_ENABLED"

    def _options_for(self, job_id: str | None) -> BodyOptions:
        if job_id != self._options.job_id:
            self._options = msgspec.structs.replace(self._options, job_id=job_id)
        return self._options

    def _bounds_of(self, request: Request) -> Bounds:
        timeout = request.meta.get("download_timeout", self._bounds.timeout)
        max_size = request.meta.get("download_maxsize", self._bounds.max_size)
        if (timeout, max_size) == (self._bounds.timeout, self._bounds.max_size):
            return self._bounds
        return Bounds(float(timeout or 0), int(max_size))


def to_body(request: Request, options: BodyOptions) -> Body:
    """Return the body for a request; raises :class:`ContractError` for unreadable meta."""
    body = content_of(request, options.params)
    if body.is_whole:
        return body
    given, by_http = body.given, bool(body.fields.get("httpResponseBody"))
    automatic = header_field(request, options.default_headers, by_http=by_http)
    omitted = left_out(request, options.omitted_headers) if OMITTED_HEADERS not in given else ()
    automatic |= cookie_field(
        request,
        own=options.cookies,
        own_alone=options.own_cookies,
        known=options.cookie_places,
        by_browser=body.kind == BROWSER,
    )
    if options.job_id is not None:
        automatic["jobId"] = options.job_id
    fields = body.fields | {name: value for name, value in automatic.items() if name not in given}
    return Body(fields, body.kind, given, False, omitted, REQUEST_COOKIES not in given)
