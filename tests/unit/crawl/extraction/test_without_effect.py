"""Settings of Scrapy without effect on routed requests."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from scrapy.settings import Settings, default_settings

from scrapy_ext.crawl.extraction.without_effect import WITHOUT_EFFECT, warnings_of

NAMES = [name for row in WITHOUT_EFFECT for name in row.settings]


def other_than(value: Any) -> Any:
    """A value of a setting that is not its default."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else "own"


def settings_of(given: dict[str, Any], *, transparent: bool = True) -> Settings:
    settings = Settings({"EXTRACT_API_TRANSPARENT_MODE": transparent})
    settings.update(given, priority="project")
    return settings


@pytest.mark.parametrize("name", NAMES)
def test_a_crawl_warns_of_a_setting_without_effect(name):
    [warning] = warnings_of(settings_of({name: other_than(vars(default_settings).get(name))}))
    assert warning.startswith(f"{name} has no effect on requests through the extraction service: ")


def test_settings_without_effect_for_one_reason_are_one_warning():
    [warning] = warnings_of(settings_of({"DNS_TIMEOUT": 1, "DNSCACHE_SIZE": 2}))
    assert warning.startswith("DNS_TIMEOUT, DNSCACHE_SIZE have no effect")


@pytest.mark.parametrize("name", NAMES)
def test_defaults_give_no_warning(name):
    assert list(warnings_of(settings_of({name: vars(default_settings).get(name)}))) == []


def test_crawls_whose_requests_are_not_routed_give_no_warning():
    assert list(warnings_of(settings_of({"DNS_TIMEOUT": 1}, transparent=False))) == []


def test_a_handler_of_an_add_on_after_this_packages_is_named():
    settings = Settings()
    settings.set("EXTRACT_API_TRANSPARENT_MODE", value=True, priority="addon")
    assert list(warnings_of(settings)) == []
    handler = "scrapy_zyte_api.handler.ScrapyZyteAPIHTTPSDownloadHandler"
    settings.set("DOWNLOAD_HANDLERS", {"https": handler}, priority="addon")
    [warning] = warnings_of(settings)
    assert warning.startswith(f"DOWNLOAD_HANDLERS names {handler} for https, which an add-on has set after")
    settings.set("EXTRACT_API_TRANSPARENT_MODE", value=True, priority="project")
    assert list(warnings_of(settings)) == []


#: Beginnings of the names of all other settings of Scrapy, each of which works with routed requests, does not concern
#: requests, or is reported otherwise (docs/reference/plain-scrapy.rst).
EXAMINED = (
    *("ADDONS", "AJAXCRAWL_", "ASYNCIO_", "AUTOTHROTTLE_", "AWS_", "BOT_NAME", "CLOSESPIDER_", "COMMANDS_MODULE"),
    *("CONCURRENT_ITEMS", "CONCURRENT_REQUESTS", "COOKIES_", "CRAWLSPIDER_", "DEFAULT_", "DEPTH_", "DOWNLOADER"),
    *("DOWNLOAD_DELAY", "DOWNLOAD_HANDLERS", "DOWNLOAD_MAXSIZE", "DOWNLOAD_SLOTS", "DOWNLOAD_TIMEOUT"),
    *("DOWNLOAD_WARNSIZE", "DUPEFILTER_", "EDITOR", "EXTENSIONS", "FEED", "FILES_", "FORCE_", "FTP_", "GCS_"),
    *("HTTPAUTH_", "HTTPCACHE_", "HTTPERROR_", "IMAGES_", "ITEM_", "JOBDIR", "LOG", "MAIL_", "MEM", "METAREFRESH_"),
    *("NEWSPIDER_", "PERIODIC_", "RANDOMIZE_DOWNLOAD_DELAY", "REDIRECT_", "REFERER_", "REFERRER_", "REMOTE_CONTROL_"),
    *("REQUEST_FINGERPRINTER_", "RETRY_", "ROBOTSTXT_", "SCHEDULER", "SCRAPER_", "SPIDER_", "STATS", "TELNETCONSOLE_"),
    *("TEMPLATES_DIR", "TWISTED_REACTOR", "URLLENGTH_LIMIT", "USER_AGENT", "WARN_ON_"),
)


def test_each_setting_of_scrapy_was_examined():
    names = [name for name in vars(default_settings) if name.isupper() and name not in NAMES]
    assert [name for name in names if not name.startswith(EXAMINED)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_deprecated_name_is_not_reported_once_more(name):
    settings = settings_of({name: other_than(vars(default_settings).get(name))})
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        assert len(list(warnings_of(settings))) == 1
    assert reported == []
