"""Escalation: a page by HTTP first, and by browser only if HTTP did not return it.

Values of a request's ``meta["extract_api_escalate"]``:

===================  ================================================================================================
``True``             the browser is needed if the page answers 403, 429 or 503, or is empty
a CSS selector       if nothing in the page matches it
a dict               of ``css`` and ``xpath`` (a selector or a list of them: the browser is needed if one of them
                     matches nothing), ``status`` (a status or a list of them), ``check`` (a function, or the name of
                     a method of the spider, that takes the response and returns True if the browser is needed)
                     and ``to`` (fields of the browser request; None removes one). Without the first four, as
                     ``True``
===================  ================================================================================================

403, 429 and 503 are the statuses with which sites block clients other than browsers; 401 requires a login, which a
browser lacks as well. Selectors do not apply to redirects and missing pages (404, 410). If the site banned the service
(problem 520), a page with the meta key needs the browser, whatever conditions the meta names. Without the meta key a
ban is an error of the request.
"""

from __future__ import annotations

import contextlib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from cssselect import SelectorError
from parsel import Selector
from scrapy import Request
from scrapy.exceptions import NotSupported
from scrapy.http import Response, TextResponse

from scrapy_ext.api.extraction import MADE_OF_PAGE, check
from scrapy_ext.api.extraction.fields import PAGE_OPTIONS
from scrapy_ext.api.extraction.rules import BODY_ONLY
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.crawl.extraction.content import warn_once
from scrapy_ext.crawl.extraction.cookies import for_browser
from scrapy_ext.crawl.extraction.headers import BROWSER_HEADERS

#: Statuses with which sites block clients other than browsers.
WALLS: Final = frozenset({403, 429, 503})
#: Statuses of missing pages, for which a browser does not help.
_NOT_THERE: Final = frozenset({404, 410})
_META: Final = 'meta["extract_api_escalate"]'
_RULES: Final = ("css", "xpath", "status", "check")
_EXAMPLE: Final = 'Write True, a CSS selector such as "h1.title", or {"css": "h1.title", "status": [403]}.'

Check = Callable[[Response], Any]


class Escalation(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions under which a page needs the browser, and the fields to send then."""

    css: tuple[str, ...] = ()
    xpath: tuple[str, ...] = ()
    statuses: frozenset[int] = frozenset()
    empty: bool = False
    check: str | Check | None = None
    to: Mapping[str, Any] = {}

    @classmethod
    def of(cls, request: Request, spider: object = None) -> Escalation | None:
        """Read a request's meta; see :meth:`parse`."""
        return cls.parse(request.meta.get("extract_api_escalate"), spider)

    @classmethod
    def parse(cls, value: object, spider: object = None) -> Escalation | None:
        """Return None for None and False. Raises :class:`ContractError` with every fault, including unreadable
        selectors and methods that ``spider`` does not have."""
        if value is None or value is False:
            return None
        if value is True:
            return _DEFAULT
        if isinstance(value, str):
            value = {"css": value}
        if not isinstance(value, Mapping):
            rule = f"must be True, a CSS selector or a dict, got {type(value).__name__}"
            raise ContractError([Violation(_META, rule, _EXAMPLE)])
        reader = _Reader(value, spider)
        if reader.faults:
            raise ContractError(reader.faults)
        return reader.escalation

    def browser_fields(self, fields: Mapping[str, Any], *, extra_fields: Collection[str] = ()) -> dict[str, Any]:
        """Return the fields of the browser request for those of an HTTP request. Call it before that is sent: raises
        :class:`ContractError` for fields that no browser request can have."""
        if (self.css or self.xpath) and not fields.get("httpResponseBody"):
            remedy = 'Add "httpResponseBody": True to meta["extract_api"], or use "status" or "check".'
            raise ContractError([Violation(_META, "has a selector, and the page is not asked for", remedy, 422)])
        by_browser = as_browser_fields(fields)
        if not self.to:
            return by_browser
        by_browser.update(self.to)
        escalated = {name: value for name, value in by_browser.items() if value is not None}
        faults = check(escalated, extra_fields=extra_fields)
        if faults:
            place = f'{_META}["to"]: '
            raise ContractError([msgspec.structs.replace(fault, field=place + fault.field) for fault in faults])
        return escalated

    def reason(self, response: Response, spider: object = None) -> str | None:
        """Return the reason why the page needs the browser after this response to the HTTP request: ``"status"``,
        ``"empty"``, ``"selector"``, ``"check"`` or None. Errors of the check are raised."""
        if response.status in self.statuses:
            return "status"
        if self.empty and _is_empty(response):
            return "empty"
        if self._misses(response):
            return "selector"
        # A redirect is followed first: the check is for the page at its end.
        is_page = not 300 <= response.status < 400
        if self.check is not None and is_page and _checker(self.check, spider)(response):
            return "check"
        return None

    def _misses(self, response: Response) -> bool:
        if not (self.css or self.xpath) or response.status in _NOT_THERE or 300 <= response.status < 400:
            return False
        if not isinstance(response, TextResponse):
            return True
        with contextlib.suppress(ValueError, NotSupported):  # JSON and others have no elements to select.
            found = [response.css(selector) for selector in self.css]
            found += [response.xpath(selector) for selector in self.xpath]
            return not all(any(_is_match(match.root) for match in matches) for matches in found)
        return True


_DEFAULT: Final = Escalation(statuses=WALLS, empty=True)


class _Reader:
    """Reader of the dict of a meta, which collects its faults."""

    def __init__(self, value: Mapping[str, Any], spider: object) -> None:
        self.faults: list[Violation] = []
        self._spider = spider
        for name in value:
            if name not in (*_RULES, "to"):
                self._fault(name, "is not known", f"Use {', '.join(_RULES)} and to.")
        to = value.get("to")
        if to is not None and not (isinstance(to, Mapping) and all(isinstance(name, str) for name in to)):
            self._fault("to", "must be a dict of fields", 'Write {"screenshot": True}, for example.')
            to = None
        asked = {name: value[name] for name in _RULES if value.get(name) is not None and [*_listed(value[name])]}
        escalation = Escalation(
            css=self._selectors("css", asked.get("css", ())),
            xpath=self._selectors("xpath", asked.get("xpath", ())),
            statuses=self._statuses(asked.get("status", ())),
            check=self._check(asked.get("check")),
            to=to or {},
        )
        if not asked:
            escalation = msgspec.structs.replace(escalation, statuses=WALLS, empty=True)
        self.escalation = escalation

    def _fault(self, name: object, rule: str, remedy: str) -> None:
        self.faults.append(Violation(f"{_META}[{name!r}]", rule, remedy))

    def _selectors(self, kind: str, value: object) -> tuple[str, ...]:
        selectors = tuple(_listed(value))
        for selector in selectors:
            if not isinstance(selector, str):
                self._fault(kind, "must be a selector or a list of selectors", 'Write "h1", or ["h1", ".price"].')
                continue
            try:
                _try_out(kind, selector)
            except (SelectorError, ValueError) as error:
                self._fault(
                    kind, f"has the selector {selector!r}, which cannot be read: {error}", 'Write one such as "h1".'
                )
        return selectors

    def _statuses(self, value: Any) -> frozenset[int]:
        statuses = [*_listed(value)]
        if not all(type(status) is int and 100 <= status <= 999 for status in statuses):
            self._fault("status", "must be a status or a list of statuses, from 100 to 999", "Write [403, 503].")
            return frozenset()
        return frozenset(statuses)

    def _check(self, value: str | Check | None) -> str | Check | None:
        if value is None or (isinstance(value, str) and self._spider is None):
            return value
        try:
            _checker(value, self._spider)
        except ContractError as error:
            self.faults += error.violations
        return value


def as_browser_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the browser request for the same content as an HTTP request.

    ``httpResponseBody`` becomes ``browserHtml``; extraction uses the browser, which is the default; of
    ``customHttpRequestHeaders`` those remain that ``requestHeaders`` has. Raises :class:`ContractError` for a request
    with a body or a method other than GET, which browsers do not send.
    """
    faults = [
        Violation(_META, f"asks for the browser, which cannot send {part}", "Leave it out for this request.", 422)
        for name, part in (
            ("httpRequestMethod", f"a {fields.get('httpRequestMethod')} request"),
            ("httpRequestBody", "a request body (httpRequestBody)"),
            ("httpRequestText", "a request body (httpRequestText)"),
        )
        if fields.get(name) and fields.get(name) != "GET"
    ]
    if faults:
        raise ContractError(faults)
    dropped = {*BODY_ONLY, "httpResponseBody", "extractFrom", "followRedirect"}
    escalated = {name: value for name, value in fields.items() if name not in dropped}
    for kind, name in PAGE_OPTIONS.items():
        options = _object(fields.get(name))
        if fields.get(kind) and (kind == "serp" or "extractFrom" in options):
            escalated[name] = {**options, "extractFrom": "browserHtml"}
    if not fields.get("serp"):
        if fields.get("httpResponseBody") or not any(fields.get(name) for name in MADE_OF_PAGE):
            escalated["browserHtml"] = True
        headers = {**_browser_headers(fields.get("customHttpRequestHeaders")), **_object(fields.get("requestHeaders"))}
        if headers:
            escalated["requestHeaders"] = headers
    if isinstance(fields.get("requestCookies"), list):
        escalated["requestCookies"] = for_browser(fields["requestCookies"])
    return escalated


class _Host(msgspec.Struct):
    """``left``: requests that go to the browser before the next attempt by HTTP. ``wait``: their number at first."""

    wait: int
    left: int


class BrowserHosts:
    """Hosts that needed the browser recently.

    The next :data:`FIRST_TRY` requests to such a host go to the browser directly, then one is tried by HTTP, then
    another after twice as many, up to one in :data:`LAST_TRY`. The host is forgotten as soon as one succeeds.
    """

    FIRST_TRY: Final = 10
    LAST_TRY: Final = 1000
    #: Limit of the remembered hosts; the least recently used are forgotten.
    HOSTS: Final = 10_000

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hosts)

    def prefers_browser(self, host: str) -> bool:
        """Return true if the next request to a host should go to the browser directly, and count that request."""
        known = self._hosts.get(host)
        if known is None:
            return False
        self._hosts.move_to_end(host)
        if known.left:
            known.left -= 1
            return True
        # Other requests use the browser during this attempt.
        known.left = known.wait = min(2 * known.wait, self.LAST_TRY)
        return False

    def learn(self, host: str, *, escalated: bool) -> None:
        """Record the outcome of an HTTP request to a host."""
        if not escalated:
            self._hosts.pop(host, None)
        elif host not in self._hosts:
            self._hosts[host] = _Host(self.FIRST_TRY, self.FIRST_TRY)
            if len(self._hosts) > self.HOSTS:
                self._hosts.popitem(last=False)


def _listed(value: object) -> Iterable[Any]:
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)


@lru_cache(maxsize=1024)
def _try_out(kind: str, selector: str) -> None:
    """Raise the error of an unreadable selector. Cached, since most requests have the same ones."""
    page = Selector(text="<html></html>", type="html")
    page.css(selector) if kind == "css" else page.xpath(selector)


def _is_match(found: object) -> bool:
    """Return true for every match of an expression but false, 0 and empty text."""
    return bool(found) if isinstance(found, bool | float | str) else True


def _is_empty(response: Response) -> bool:
    """Return true if a requested page came without content."""
    result = getattr(response, "extract_result", None) or {}
    return "httpResponseBody" in result and response.status in (200, 202) and not response.body.strip()


def _checker(check: str | Check, spider: object) -> Check:
    place = f"{_META}['check']"
    found = getattr(spider, check, None) if isinstance(check, str) else check
    if not callable(found):
        rule = f"names {check!r}, which is no method of the spider" if isinstance(check, str) else "cannot be called"
        raise ContractError([Violation(place, rule, "Give a function, or the name of a method of the spider.")])
    if inspect.iscoroutinefunction(found):
        raise ContractError([Violation(place, "is a coroutine function", "Write it with def: it must not wait.")])
    checker: Check = found
    return checker


def _object(value: object) -> Mapping[str, Any]:
    """Return a mapping, empty for any other value, which the rules refuse."""
    return value if isinstance(value, Mapping) else {}


def _browser_headers(headers: object) -> dict[str, str]:
    named: dict[str, str] = {}
    for header in map(_object, headers if isinstance(headers, list) else ()):
        name = str(header.get("name", "")).title()
        known = BROWSER_HEADERS.get(name.encode("utf-8", "replace"))
        if known is None:
            warn_once("The header %s is not sent when a request goes to the browser", name)
        else:
            named[known] = header.get("value", "")
    return named
