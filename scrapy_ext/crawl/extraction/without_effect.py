"""Settings of Scrapy that have no effect on requests through the extraction service, since the service connects to
sites by itself.

A crawl warns of those that are set, once each; the page "Add scrapy-ext to an existing project" has the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from scrapy_ext import settings as names


class WithoutEffect(NamedTuple):
    """Settings without effect for one reason, and what to do instead, empty if there is nothing."""

    settings: tuple[str, ...]
    reason: str
    instead: str = ""


_PLACE: Final = 'EXTRACT_API_PARAMS = {"geolocation": "DE"} sends from an address of a country'

WITHOUT_EFFECT: Final = (
    WithoutEffect(
        (
            *("DNS_RESOLVER", "DNS_TIMEOUT", "DNSCACHE_ENABLED", "DNSCACHE_SIZE", "TWISTED_DNS_RESOLVER"),
            "REACTOR_THREADPOOL_MAXSIZE",
        ),
        "The service looks up the names of sites",
    ),
    WithoutEffect(("DOWNLOAD_BIND_ADDRESS",), "The service chooses the address to send from", _PLACE),
    WithoutEffect(
        (
            *("DOWNLOADER_CLIENTCONTEXTFACTORY", "DOWNLOADER_CLIENT_TLS_CIPHERS", "DOWNLOADER_CLIENT_TLS_METHOD"),
            *("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING", "DOWNLOADER_HTTPCLIENTFACTORY", "DOWNLOAD_TLS_MAX_VERSION"),
            *("DOWNLOAD_TLS_MIN_VERSION", "DOWNLOAD_VERIFY_CERTIFICATES"),
        ),
        "The service makes the encrypted connections to sites",
    ),
    WithoutEffect(("HTTP2_MAX_FRAME_SIZE", "HTTPX_HTTP2_ENABLED"), "The service chooses the version of HTTP"),
    WithoutEffect(
        ("HTTPPROXY_AUTH_ENCODING", "HTTPPROXY_ENABLED"),
        "The service connects to sites without the proxies of the crawl",
        f"{_PLACE}; your own service has SERVER_PROXIES",
    ),
    WithoutEffect(
        ("COMPRESSION_ENABLED",),
        "The service decompresses bodies",
        'the header "Accept-Encoding: identity" in a request asks its site for the body as it is',
    ),
    WithoutEffect(("DOWNLOAD_FAIL_ON_DATALOSS",), "The service returns an error for an incomplete body"),
    WithoutEffect(
        ("CONCURRENT_REQUESTS_PER_IP",),
        "The addresses of sites are not known here, so the limit and the delay count by domain",
        "CONCURRENT_REQUESTS_PER_DOMAIN",
    ),
)

#: Priority of the values that Scrapy's commands set.
_OF_COMMANDS: Final = SETTINGS_PRIORITIES["command"]
_OF_ADDONS: Final = SETTINGS_PRIORITIES["addon"]


def warnings_of(settings: BaseSettings) -> Iterator[str]:
    """Yield a warning for each reason for which settings have no effect in a crawl whose requests are routed by
    default."""
    if not names.EXTRACT_API_TRANSPARENT_MODE.read(settings):
        return
    yield from _handlers(settings)
    for row in WITHOUT_EFFECT:
        given = [name for name in row.settings if _is_given(settings, name)]
        if given:
            verb = "has" if len(given) == 1 else "have"
            yield (
                f"{', '.join(given)} {verb} no effect on requests through the extraction service: {row.reason}."
                + (f" Instead: {row.instead}." if row.instead else "")
                + " Requests with the meta key extract_api False go to the site directly"
            )


def _handlers(settings: BaseSettings) -> Iterator[str]:
    """Yield a warning for a download handler that an add-on has set after this package's add-on, which routes requests
    only where it finds none."""
    if (settings.getpriority("EXTRACT_API_TRANSPARENT_MODE") or 0) > _OF_ADDONS:
        return
    for scheme in ("http", "https"):
        handler = settings.getdict("DOWNLOAD_HANDLERS").get(scheme)
        path = handler if isinstance(handler, str) else f"{getattr(handler, '__module__', 'scrapy')}."
        if handler is not None and not path.startswith("scrapy."):
            name = handler if isinstance(handler, str) else getattr(handler, "__qualname__", handler)
            yield (
                f"DOWNLOAD_HANDLERS names {name} for {scheme}, which an add-on has set after that of scrapy-ext: "
                "requests that go to sites directly, such as those for robots.txt, use it. Remove that add-on from "
                "ADDONS, or set EXTRACT_API_TRANSPARENT_MODE to say which requests are routed"
            )
            return


def _is_given(settings: BaseSettings, name: str) -> bool:
    """Return true for a setting of the user whose value is not Scrapy's default."""
    # Not by ``get``, which warns of deprecated names: Scrapy has done so.
    own, default = settings.attributes.get(name), vars(default_settings).get(name)
    if own is None or own.priority <= _OF_COMMANDS or own.value == default:
        return False
    return default is not None or bool(own.value)
