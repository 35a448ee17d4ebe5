"""Settings and request meta of scrapy-zyte-api, each with its equivalent here.

The how-to "From scrapy-zyte-api" has these tables, a test runs a spider with either package for each row, and
:mod:`scrapy_ext.crawl.session.unknown_names` reports the names that remain in a project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Equivalent(NamedTuple):
    """Name in this package, empty if there is none, and a note."""

    ours: str
    note: str


#: Prefixes of the names of scrapy-zyte-api.
SETTING_PREFIX: Final = "ZYTE_API_"
META_PREFIX: Final = "zyte_api"

_NONE: Final = ""
_SESSIONS: Final = Equivalent(_NONE, "Send the fields session or sessionContext of the included service yourself.")
_COOKIE_LIMIT: Final = Equivalent(_NONE, "The service has the limits.")

SETTINGS: Final[Mapping[str, Equivalent]] = {
    "ZYTE_API_URL": Equivalent("EXTRACT_API_URL", "With or without a slash at the end."),
    "ZYTE_API_KEY": Equivalent("EXTRACT_API_KEY", "The environment variable of that name, too."),
    "ZYTE_API_ENABLED": Equivalent("EXTRACT_API_ENABLED", "False: requests go to the sites directly."),
    "ZYTE_API_TRANSPARENT_MODE": Equivalent("EXTRACT_API_TRANSPARENT_MODE", "The add-on sets it to True."),
    "ZYTE_API_AUTOMAP_PARAMS": Equivalent("EXTRACT_API_PARAMS", "Fields of every request."),
    "ZYTE_API_PROVIDER_PARAMS": Equivalent(
        "EXTRACT_API_PARAMS", "Holds for all requests, not only for those of page objects."
    ),
    "ZYTE_API_DEFAULT_PARAMS": Equivalent(
        _NONE, "Write these fields into the meta of the requests whose fields you write yourself."
    ),
    "ZYTE_API_LOG_REQUESTS": Equivalent("EXTRACT_API_LOG_REQUESTS", "At level DEBUG, shortened, without secrets."),
    "ZYTE_API_LOG_REQUESTS_TRUNCATE": Equivalent(_NONE, "Long values are always shortened."),
    "ZYTE_API_MAX_REQUESTS": Equivalent("EXTRACT_API_MAX_REQUESTS", "Counts retries, too."),
    "ZYTE_API_RETRY_POLICY": Equivalent(
        "EXTRACT_API_RETRY_POLICY", "A dict of attempts by problem type, not a class of tenacity."
    ),
    "ZYTE_API_REFERRER_POLICY": Equivalent("REFERRER_POLICY", "Scrapy's own, with its default."),
    "ZYTE_API_PRESERVE_DELAY": Equivalent(_NONE, "DOWNLOAD_DELAY always holds, by the site's domain."),
    "ZYTE_API_EXPERIMENTAL_COOKIES_ENABLED": Equivalent(
        "COOKIES_ENABLED", "Scrapy's own, True by default: cookies of requests are sent as requestCookies."
    ),
    "ZYTE_API_COOKIE_MIDDLEWARE": Equivalent(_NONE, "Cookies are those of the request, whichever middleware set them."),
    "ZYTE_API_MAX_COOKIES": _COOKIE_LIMIT,
    "ZYTE_API_MAX_COOKIE_BYTES": _COOKIE_LIMIT,
    "ZYTE_API_MAX_COOKIE_NAME_LENGTH": _COOKIE_LIMIT,
    "ZYTE_API_MAX_COOKIE_VALUE_LENGTH": _COOKIE_LIMIT,
    "ZYTE_API_FALLBACK_HTTP_HANDLER": Equivalent("DOWNLOAD_HANDLERS", "Scrapy's own; it is left as it is."),
    "ZYTE_API_FALLBACK_HTTPS_HANDLER": Equivalent("DOWNLOAD_HANDLERS", "Scrapy's own; it is left as it is."),
    "ZYTE_API_FALLBACK_REQUEST_FINGERPRINTER_CLASS": Equivalent(
        "REQUEST_FINGERPRINTER_CLASS", "Scrapy's own: one of yours stays in force."
    ),
    "ZYTE_API_SKIP_HEADERS": Equivalent(_NONE, "A header that is None is not sent."),
    "ZYTE_API_BROWSER_HEADERS": Equivalent(
        _NONE, "Referer, User-Agent and Accept-Language are sent; write others into requestHeaders."
    ),
    "ZYTE_API_WARN_ON_BAN_SENSITIVE_HEADERS": Equivalent(_NONE, "There is no such warning."),
    "ZYTE_API_AUTO_FIELD_STATS": Equivalent(_NONE, "There is no such stat."),
    "ZYTE_API_USE_ENV_PROXY": Equivalent(_NONE, "Requests to the service use no proxy."),
    "ZYTE_API_ETH_KEY": Equivalent(_NONE, "The service is used with a key."),
    "ZYTE_API_SESSION_…": _SESSIONS,
}

META: Final[Mapping[str, Equivalent]] = {
    "zyte_api_automap": Equivalent("extract_api", "True, False or a dict of fields, as there."),
    "zyte_api": Equivalent(
        "extract_api", "With extract_api_automap False beside it: exactly these fields are sent, and the URL."
    ),
    "zyte_api_provider": Equivalent("extract_api", "Fields for what page objects need are those of the request."),
    "zyte_api_retry_policy": Equivalent("extract_api_retry_policy", "A dict of attempts by problem type."),
    "zyte_api_default_params": Equivalent(_NONE, "None for a field in extract_api leaves out that of the settings."),
    "zyte_api_session_…": _SESSIONS,
}


def equivalent(name: str, table: Mapping[str, Equivalent]) -> Equivalent:
    """Return the row of a name; a name in the table that ends in an ellipsis stands for several."""
    begun = (row for begin, row in table.items() if begin.endswith("…") and name.startswith(begin[:-1]))
    return table.get(name) or next(begun, Equivalent(_NONE, ""))
