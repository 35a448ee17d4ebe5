"""Spiders watched by Spidermon: monitors see the same stats, items and errors."""

from __future__ import annotations

from spidermon import Monitor, MonitorSuite, monitors
from spidermon.contrib.monitors.mixins import StatsMonitorMixin
from spidermon.contrib.scrapy.monitors import (
    ErrorCountMonitor,
    FieldCoverageMonitor,
    FinishReasonMonitor,
    ItemCountMonitor,
    ItemValidationMonitor,
    RetryCountMonitor,
    SuccessfulRequestsMonitor,
    TotalRequestsMonitor,
    UnwantedHTTPCodesMonitor,
    WarningCountMonitor,
)
from spidermon.core.actions import Action

from tests.acceptance.parity.local import LocalSpider


class Noted(Action):
    """Notes what has passed and what has not."""

    def run_action(self):
        for result in self.result.monitor_results:
            self.data.spider.note(result.monitor.full_name, result.status)


class OwnMonitor(Monitor, StatsMonitorMixin):
    @monitors.name("as many responses as requests")
    def test_responses(self):
        assert self.stats["downloader/request_count"] == self.stats["downloader/response_count"]


class AtTheEnd(MonitorSuite):
    monitors = [
        ErrorCountMonitor,
        FieldCoverageMonitor,
        FinishReasonMonitor,
        ItemCountMonitor,
        ItemValidationMonitor,
        OwnMonitor,
        RetryCountMonitor,
        SuccessfulRequestsMonitor,
        TotalRequestsMonitor,
        UnwantedHTTPCodesMonitor,
        WarningCountMonitor,
    ]
    monitors_finished_actions = [Noted]


class Monitored(LocalSpider):
    name = "spidermon"
    custom_settings = {
        "EXTENSIONS": {"spidermon.contrib.scrapy.extensions.Spidermon": 500},
        "ITEM_PIPELINES": {"spidermon.contrib.scrapy.pipelines.ItemValidationPipeline": 800},
        "STATS_CLASS": "spidermon.contrib.stats.statscollectors.local_storage.LocalStorageStatsHistoryCollector",
        "SPIDERMON_ENABLED": True,
        "SPIDERMON_SPIDER_CLOSE_MONITORS": [AtTheEnd],
        "SPIDERMON_ADD_FIELD_COVERAGE": True,
        "SPIDERMON_FIELD_COVERAGE_RULES": {"dict/title": 1, "dict/url": 1},
        "SPIDERMON_MIN_ITEMS": 6,
        "SPIDERMON_MAX_ERRORS": 0,
        "SPIDERMON_MAX_WARNINGS": 5,
        "SPIDERMON_MIN_SUCCESSFUL_REQUESTS": 6,
        "SPIDERMON_MAX_REQUESTS_ALLOWED": 7,
        "SPIDERMON_MAX_ITEM_VALIDATION_ERRORS": 0,
        "SPIDERMON_VALIDATION_SCHEMAS": [
            {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
        ],
    }

    def parse(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}
        if response.meta["depth"] == 0:
            yield from response.follow_all(css="a")


class MonitorsFail(Monitored):
    """Errors, a status that is not wanted and an item that is not valid: each is found."""

    name = "spidermon-finds-errors"

    def parse(self, response):
        yield {"url": response.url}
        yield response.follow("/status/404", self.broken)
        yield response.follow("/page/1", self.broken)

    def broken(self, response):
        raise ValueError("broken")
