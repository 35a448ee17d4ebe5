"""Names that nothing reads are reported, each once and with the name that was meant."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

from scrapy_ext.crawl.extraction import response_classes
from scrapy_ext.crawl.session.unknown_names import META_KEYS, UnknownNames
from scrapy_ext.crawl.session.zyte_api_names import META
from scrapy_ext.crawl.session.zyte_api_names import SETTINGS as THEIR_SETTINGS
from scrapy_ext.settings import SETTINGS
from tests.support.crawls import Project, collect, key
from tests.unit.docs.test_reference import described


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No variable of ours, but those that a test sets."""
    for name in os.environ:
        if name.startswith(("EXTRACT_API_", "PLATFORM_")):
            monkeypatch.delenv(name)
    return monkeypatch


def warned(caplog: pytest.LogCaptureFixture, settings: Mapping[str, Any] | None = None, *metas: Any) -> list[str]:
    """The warnings of a crawl with these settings, whose requests have these meta."""
    names = UnknownNames(Settings(dict(settings or {})))
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        names.check_settings()
        for meta in metas:
            names.check_meta(meta)
    return caplog.messages


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("EXTRACT_API_MAX_REQUEST", "EXTRACT_API_MAX_REQUESTS"),
        ("EXTRACT_API_ENABLE", "EXTRACT_API_ENABLED"),
        ("EXTRACT_API_PARAM", "EXTRACT_API_PARAMS"),
        ("EXTRAC_API_KEY", "EXTRACT_API_KEY"),
        ("PLATFORM_ULR", "PLATFORM_URL"),
        ("PLATFORM_KEY", "PLATFORM_API_KEY"),
        ("PLATFROM_URL", "PLATFORM_URL"),
        ("PLATFORM_PROJECT_", "PLATFORM_PROJECT"),
        ("FRONTIER_SLOT", "FRONTIER_SLOTS"),
        ("FRONTIER_WORKERS", "FRONTIER_WORKER"),
        ("SERVER_ALLOW_HOST", "SERVER_ALLOW_HOSTS"),
        ("DUPEFILTER_COLLECTIONS", "DUPEFILTER_COLLECTION"),
        ("PLATFORM_enabled", "PLATFORM_ENABLED"),
        ("extract_api_enabled", "EXTRACT_API_ENABLED"),
        ("Platform_Ulr", "PLATFORM_URL"),
    ],
)
def test_a_setting_with_a_typo_is_reported_with_the_name_that_was_meant(
    caplog: pytest.LogCaptureFixture, name: str, meant: str
) -> None:
    assert warned(caplog, {name: 1}) == [f"The setting {name} is not read by scrapy-ext. Did you mean {meant}?"]


def test_a_setting_that_begins_as_ours_alone_do_is_reported_even_if_none_is_like_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (warning,) = warned(caplog, {"EXTRACT_API_ZZZ": 1})
    assert warning.startswith("The setting EXTRACT_API_ZZZ is not read by scrapy-ext. Remove it")


def test_a_name_in_small_letters_in_the_settings_module_is_reported_for_scrapy_does_not_read_it(
    caplog: pytest.LogCaptureFixture, environment: pytest.MonkeyPatch
) -> None:
    module = ModuleType("project_settings")
    vars(module).update(platform_enabled=False, platform_url="x", PLATFORM_URL="x", frontier_backend="x")
    environment.setitem(sys.modules, "project_settings", module)
    environment.setenv("SCRAPY_SETTINGS_MODULE", "project_settings")
    assert warned(caplog) == ["The setting platform_enabled is not read by scrapy-ext. Did you mean PLATFORM_ENABLED?"]


def test_settings_of_scrapy_of_users_and_of_other_packages_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    others = (
        "PLATFORM_NAME",
        "PLATFORM_HOST",
        "PLATFORM_TOKEN",
        "SERVER_NAME",
        "SERVER_PORT",
        "FRONTERA_SETTINGS",
        "FRONTIER_BACKEND",
    )
    more = ("DUPEFILTER_DEBUG", "DUPEFILTER_KEY", "BACKEND", "HCF_AUTH", "EXTRACTORS", "SPIDERMON_ENABLED")
    ours = dict.fromkeys(SETTINGS)
    assert warned(caplog, dict.fromkeys((*others, *more), 1) | ours) == []


def test_environment_variables_that_are_not_read_are_reported(
    caplog: pytest.LogCaptureFixture, environment: pytest.MonkeyPatch
) -> None:
    for name in ("EXTRACT_API_KEYS", "EXTRACT_API_MAX_REQUESTS", "PLATFORM_ULR", "PLATFORM_URL", "PLATFORM_BRANCH"):
        environment.setenv(name, "x")
    assert sorted(warned(caplog)) == [
        "The environment variable EXTRACT_API_KEYS is not read by scrapy-ext. Did you mean EXTRACT_API_KEY?",
        "The environment variable EXTRACT_API_MAX_REQUESTS is not read. Set EXTRACT_API_MAX_REQUESTS in settings.py "
        "or with -s.",
        "The environment variable PLATFORM_ULR is not read by scrapy-ext. Did you mean PLATFORM_URL?",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("extract_apy", "extract_api"),
        ("extract-api", "extract_api"),
        ("extract_api_automat", "extract_api_automap"),
        ("extract_api_retry_policies", "extract_api_retry_policy"),
        ("frontier_slots", "frontier_slot"),
        ("EXTRACT_API", "extract_api"),
        ("Extract_Api", "extract_api"),
        ("api_extract", "extract_api"),
        ("not_before_frontier", "frontier_not_before"),
    ],
)
def test_a_meta_key_with_a_typo_is_reported_once(caplog: pytest.LogCaptureFixture, name: str, meant: str) -> None:
    metas = [{name: number, "depth": number} for number in range(3)]
    assert warned(caplog, {}, *metas) == [f"The meta key {name} is not read by scrapy-ext. Did you mean {meant}?"]


def test_other_meta_keys_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    keys = ("depth", "item", "extract", "extract_data", "frontier", "proxy", "hcf_slot", "cf_store", "api", 7, None, ())
    assert warned(caplog, {}, dict.fromkeys(META_KEYS), dict.fromkeys(keys), dict.fromkeys(range(20_000))) == []


def test_the_meta_keys_that_are_known_are_those_of_the_reference() -> None:
    assert set(META_KEYS) == described("reqmeta")


def test_names_of_scrapy_zyte_api_are_reported_with_their_equivalent(caplog: pytest.LogCaptureFixture) -> None:
    given = {"ZYTE_API_URL": "x", "ZYTE_API_SESSION_POOL_SIZE": 1, "ZYTE_API_NEW": 1}
    found = warned(caplog, given, {"zyte_api_automap": True}, {"zyte_api_session_enabled": True})
    ending, none = "of scrapy-zyte-api, which is not active.", "scrapy-ext has no equivalent."
    sessions = "Send the fields session or sessionContext of the included service yourself."
    assert [warning.split(" With")[0].split(" True")[0] for warning in sorted(found)] == [
        f"The meta key zyte_api_automap is {ending} Use extract_api instead.",
        f"The meta key zyte_api_session_enabled is {ending} {none} {sessions}",
        f"The setting ZYTE_API_NEW is {ending} {none}",
        f"The setting ZYTE_API_SESSION_POOL_SIZE is {ending} {none} {sessions}",
        f"The setting ZYTE_API_URL is {ending} Use EXTRACT_API_URL instead.",
    ]


class _Handler:
    pass


_Handler.__module__ = "scrapy_zyte_api.handler"


@pytest.mark.parametrize(
    ("used", "warns"),
    [
        ({"ADDONS": {"scrapy_zyte_api.Addon": 500}}, False),
        ({"ADDONS": {"scrapy_zyte_api.Addon": None}}, True),
        ({"DOWNLOAD_HANDLERS": {"https": "scrapy_zyte_api.handler.ScrapyZyteAPIHTTPSDownloadHandler"}}, False),
        ({"DOWNLOAD_HANDLERS": {"https": _Handler}}, False),
        ({"DOWNLOADER_MIDDLEWARES": {"scrapy_zyte_api.ScrapyZyteAPIDownloaderMiddleware": 1000}}, False),
        ({"DOWNLOADER_MIDDLEWARES": {"scrapy_zyte_api.ScrapyZyteAPIDownloaderMiddleware": None}}, True),
        ({}, True),
    ],
)
def test_where_scrapy_zyte_api_is_active_its_names_are_its_own(
    caplog: pytest.LogCaptureFixture, used: dict[str, Any], warns: bool
) -> None:
    found = warned(caplog, {**used, "ZYTE_API_MAX_REQUESTS": 1}, {"zyte_api_automap": True})
    assert len(found) == (2 if warns else 0)


def test_equivalents_are_names_of_ours_or_of_scrapy() -> None:
    known = {*SETTINGS, *Settings(), *META_KEYS}
    assert {row.ours for row in (*THEIR_SETTINGS.values(), *META.values()) if row.ours} <= known


def test_reading_raw_api_response_is_reported_once_with_the_equivalent(caplog: pytest.LogCaptureFixture) -> None:
    response_classes._warn_of_raw_api_response.cache_clear()
    response = response_classes.CLASSES[HtmlResponse]("http://a.example/", extract_result={})
    for _ in range(2):
        with pytest.raises(AttributeError, match=r"Use response\.extract_result instead"):
            _ = response.raw_api_response
    assert getattr(response, "raw_api_response", None) is None
    assert len(caplog.messages) == 1


SPIDER = """
import scrapy


class TypoSpider(scrapy.Spider):
    name = "typo"
    custom_settings = {"FRONTIER_SLOT": 4}

    async def start(self):
        for number in range(3):
            meta = {"extract_apy": True, "frontier_slots": number, "extract_api": False}
            yield scrapy.Request(f"http://localhost:9/{number}", errback=self.parse, meta=meta)

    def parse(self, response):
        pass
"""


def test_a_crawl_reports_names_of_the_spider_the_command_line_and_the_environment_once(tmp_path: Path) -> None:
    project = Project(tmp_path, SPIDER, "RETRY_ENABLED = False\nROBOTSTXT_OBEY = False\n")
    crawl = project.crawl("typo", "-s", "EXTRACT_API_MAX_REQUEST=3", environment={"PLATFORM_TIMEOUT": "3"})
    warnings = re.findall(r"WARNING: The (.+?) is not read", crawl.log)
    assert sorted(warnings) == [
        "environment variable PLATFORM_TIMEOUT",
        "meta key extract_apy",
        "meta key frontier_slots",
        "setting EXTRACT_API_MAX_REQUEST",
        "setting FRONTIER_SLOT",
    ]
    (job,) = re.findall(r"'platform/job': '([^']+)'", crawl.log)
    lines = project.stored(lambda client, _: collect(client.logs.iter(key(job))))
    assert sum("is not read" in line["message"] for line in lines) == 5
