"""Headers and cookies of requests to targets: the caller's over the service's own.

The service's own headers are those of the Chromium that it drives, so that a page looks the same by either kind of
request. A caller's header replaces them; when several share a name, the last one is sent (rule 11). Headers of one
connection, and those that the client itself must set, are left out silently, as the rule allows.

Language (a BCP 47 tag such as ``de-AT``) and time zone are those of the country of ``geolocation``. A country that is
not in the vocabulary, or none, gets :data:`LANGUAGE` and the time zone of the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction import Header
from scrapy_ext.api.extraction.fields import MAX_COOKIES, MAX_CUSTOM_HEADERS
from scrapy_ext.api.extraction.forms import CONTROL, TOKEN
from scrapy_ext.api.violations import Violation
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

LANGUAGE: Final = "en-US"
#: Content codings that ``http.bodies`` decodes.
ACCEPTED: Final = "gzip, deflate, br, zstd"


def language_of(country: str | None) -> str:
    """Return the language tag for a country: ``de-AT`` for ``AT``."""
    language = _languages().get(country or "")
    return LANGUAGE if language is None else f"{language}-{country}"


def accept_language(tag: str) -> str:
    """Return the ``Accept-Language`` header of a browser in a language."""
    return f"{tag},{tag.partition('-')[0]};q=0.9"


def timezone_of(country: str | None) -> str | None:
    """Return the time zone for a country: ``Europe/Vienna`` for ``AT``."""
    return _timezones().get(country or "")


@cache
def _languages() -> dict[str, str]:
    spoken = load_vocabulary("countries").table("languages")
    return {country: language for language, countries in spoken.items() for country in countries.split()}


@cache
def _timezones() -> dict[str, str]:
    return load_vocabulary("countries").table("timezones")


CHROMIUM_VERSION: Final = "156"


def user_agent(version: str = CHROMIUM_VERSION, device: str = "desktop") -> str:
    """Return the User-Agent of a Chromium with a window, or on a phone, with the major version only, as Chromium has
    it."""
    system, kind = ("Linux; Android 10; K", "Mobile Safari") if device == "mobile" else ("X11; Linux x86_64", "Safari")
    chrome = f"Chrome/{version.partition('.')[0]}.0.0.0"
    return f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) {chrome} {kind}/537.36"


#: The fake brand by which browsers keep sites from relying on the list of brands.
NO_BRAND: Final = ("Not:A-Brand", "8")
_IMAGES: Final = "image/jxl,image/avif,image/webp,image/apng"
#: Headers of a navigation, in the case and order in which Chromium sends them over HTTP/1.1.
_DEFAULTS: Final = (
    Header("Connection", "keep-alive"),
    Header("sec-ch-ua", f'"{NO_BRAND[0]}";v="{NO_BRAND[1]}", "Chromium";v="{CHROMIUM_VERSION}"'),
    Header("sec-ch-ua-mobile", "?0"),
    Header("sec-ch-ua-platform", '"Linux"'),
    Header("Upgrade-Insecure-Requests", "1"),
    Header("User-Agent", user_agent()),
    Header(
        "Accept",
        f"text/html,application/xhtml+xml,application/xml;q=0.9,{_IMAGES},*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
    ),
    Header("Sec-Fetch-Site", "none"),
    Header("Sec-Fetch-Mode", "navigate"),
    Header("Sec-Fetch-User", "?1"),
    Header("Sec-Fetch-Dest", "document"),
    Header("Accept-Encoding", ACCEPTED),
    Header("Accept-Language", accept_language(LANGUAGE)),
)
_OWN: Final = {header.name.lower(): header for header in _DEFAULTS}
_MOBILE: Final = {
    "user-agent": user_agent(device="mobile"),
    "sec-ch-ua-mobile": "?1",
    "sec-ch-ua-platform": '"Android"',
}
#: Headers that browsers send to https and to this machine only, and what they accept elsewhere.
_SECURE_ONLY: Final = ("sec-ch-ua", "sec-fetch-")
_ACCEPTED_PLAIN: Final = "gzip, deflate"
#: Places of headers that navigations have at times.
_ORDER: Final = {
    name: place
    for place, name in enumerate((
        "connection", "content-length", "pragma", "cache-control", "sec-ch-ua", "sec-ch-ua-mobile",
        "sec-ch-ua-platform", "origin", "content-type", "upgrade-insecure-requests", "user-agent", "accept",
        "sec-fetch-site", "sec-fetch-mode", "sec-fetch-user", "sec-fetch-dest", "referer", "accept-encoding",
        "accept-language",
    ))
}  # fmt: skip
_NOT_THE_CALLERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"}
    | {"cookie", "cookie2"}
)
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def headers_to_send(
    custom: Iterable[Header], language: str = LANGUAGE, omitted: Iterable[str] = (), device: str = "desktop"
) -> list[Header]:
    """Return the headers of an HTTP request, each once: the service's own but the omitted ones, and the caller's."""
    chosen = dict(_OWN)
    if device == "mobile":
        chosen.update((name, Header(_OWN[name].name, value)) for name, value in _MOBILE.items())
    if language != LANGUAGE:
        chosen["accept-language"] = Header("Accept-Language", accept_language(language))
    for name in omitted:
        chosen.pop(name.lower(), None)
    for header in custom:
        if not is_dropped(header.name):
            chosen[header.name.lower()] = header
    if (agent := chosen.get("user-agent")) is None or agent.value not in (user_agent(), _MOBILE["user-agent"]):
        # The hints of another browser are unknown.
        chosen = {name: each for name, each in chosen.items() if not (name.startswith("sec-ch-ua") and _is_own(each))}
    return in_order(chosen.values())


def in_order(headers: Iterable[Header]) -> list[Header]:
    """Return headers in the order of Chromium; those that it does not send by itself are the last."""
    return sorted(headers, key=lambda header: _ORDER.get(header.name.lower(), len(_ORDER)))


def without_secure_ones(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of a request over http to another machine: browsers send less of their own there."""
    kept = (each for each in headers if not (each.name.lower().startswith(_SECURE_ONLY) and _is_own(each)))
    return [Header(each.name, _ACCEPTED_PLAIN) if each == _OWN["accept-encoding"] else each for each in kept]


def _is_own(header: Header) -> bool:
    name = header.name.lower()
    return header == _OWN.get(name) or header.value == _MOBILE.get(name)


def agent_of(headers: Iterable[Header]) -> str | None:
    """Return the caller's User-Agent, the last one of several; None when the service's own is sent."""
    agents = [header.value for header in headers if header.name.lower() == "user-agent"]
    return agents[-1] if agents else None


def is_dropped(name: str) -> bool:
    """Return whether a caller's header is left out."""
    lower = name.lower()
    return lower in _NOT_THE_CALLERS or lower.startswith("proxy-")


def _header_name(name: str) -> str:
    """Return the header of a name of ``requestHeaders``: as it is written if it is written as a header."""
    if "-" in name or not name[:1].islower():
        return name
    parts = "-".join(part[:1].upper() + part[1:] for part in _CAMEL.sub("-", name).split("-"))
    own = _OWN.get(parts.lower())
    return own.name if own is not None else parts


def read_request_headers(headers: Mapping[str, Any]) -> tuple[list[Header], list[Violation]]:
    """Read ``requestHeaders``. The contract leaves their form open: here names map to values, and names may be
    written as headers (``User-Agent``) or as JSON members (``userAgent``).
    """
    if len(headers) > MAX_CUSTOM_HEADERS:
        rule = f"must have at most {MAX_CUSTOM_HEADERS} headers, got {len(headers)}"
        return [], [Violation("requestHeaders", rule, "Send fewer headers.")]
    read, violations = [], []
    for name, value in headers.items():
        place = f"requestHeaders.{name[:60]}"
        written = _header_name(name)
        if not isinstance(value, str):
            violations.append(Violation(place, "must be a string", "Write the header's value as text."))
        elif not TOKEN.fullmatch(written):
            violations.append(
                Violation(place, "has a character that no header name may have", "Use letters, digits and -.")
            )
        elif written.lower() == "cookie":
            violations.append(Violation(place, "cannot be Cookie", "Send cookies in requestCookies."))
        elif CONTROL.search(value):
            violations.append(Violation(place, "must be one line", "Remove line breaks and control characters."))
        else:
            read.append(Header(written, value))
    return read, violations


class Cookie(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A cookie to send. Without ``domain`` it is for the host of the URL alone. An empty name is not sent."""

    name: str
    value: str
    domain: str | None = None
    path: str = "/"
    expires: float | None = None
    http_only: bool = False
    secure: bool = False
    same_site: str | None = None

    @property
    def key(self) -> tuple[str, str | None, str]:
        """The identity of a cookie: a browser keeps one of those with the same."""
        return self.name, self.domain, self.path


def cookie_pair(name: str, value: str) -> str:
    """Return a cookie as it is written in a Cookie header."""
    return f"{name}={value}" if name else value


def is_of_host(domain: str, host: str) -> bool:
    """Return whether a cookie with a domain belongs to a host: to itself or a domain above it."""
    domain = domain.lstrip(".").lower()
    return host == domain or host.endswith(f".{domain}")


def cookie_received(
    name: str,
    value: str,
    domain: str,
    path: str,
    expires: float | None,
    *,
    http_only: bool,
    secure: bool,
    same_site: str,
) -> dict[str, Any]:
    """Return a cookie for results: the members of ``requestCookies`` without empty ones."""
    members: dict[str, Any] = {"name": name, "value": value, "domain": domain, "path": path}
    if expires is not None and expires >= 0:
        members["expires"] = expires
    members |= {"httpOnly": http_only, "secure": secure}
    return {**members, "sameSite": same_site} if same_site else members


_COOKIE_FORM: Final = 'Write {"name": "id", "value": "1", "domain": "example.com"}.'


def read_cookies(cookies: list[dict[str, Any]], field: str = "requestCookies") -> tuple[list[Cookie], list[Violation]]:
    """Read ``requestCookies``, or another ``field`` of the same form. The contract leaves it open: here it is that of
    browsers."""
    if len(cookies) > MAX_COOKIES:
        rule = f"must have at most {MAX_COOKIES} cookies, got {len(cookies)}"
        return [], [Violation(field, rule, "Send those that the site needs.")]
    read, violations = [], []
    for index, entry in enumerate(cookies):
        place = f"{field}[{index}]"
        try:
            cookie = msgspec.convert(entry, Cookie)
        except msgspec.ValidationError as error:
            violations.append(Violation(place, f"is not a cookie: {error}", _COOKIE_FORM))
            continue
        faults = list(_faults(cookie, place))
        violations.extend(faults)
        if not faults:
            read.append(cookie)
    return read, violations


def _faults(cookie: Cookie, place: str) -> Iterator[Violation]:
    if CONTROL.search(cookie.name) or ";" in cookie.name or "=" in cookie.name:
        yield Violation(f"{place}.name", "must not have control characters, ; or =", _COOKIE_FORM)
    if not cookie.name and not cookie.value:
        yield Violation(place, "must have a name or a value", _COOKIE_FORM)
    if CONTROL.search(cookie.value) or ";" in cookie.value:
        yield Violation(f"{place}.value", "must not have control characters or ;", "Encode the value.")
    if cookie.domain and not re.fullmatch(r"\.?[0-9A-Za-z._\-]+", cookie.domain):
        yield Violation(f"{place}.domain", "is not a domain", "Write it as example.com.")
    if not cookie.path.startswith("/") or CONTROL.search(cookie.path) or ";" in cookie.path:
        yield Violation(f"{place}.path", "must be an absolute path", "Write / for the whole site.")
    if cookie.same_site is not None and cookie.same_site not in ("Strict", "Lax", "None"):
        yield Violation(f"{place}.sameSite", "must be Strict, Lax or None", "Use one of these values.")
