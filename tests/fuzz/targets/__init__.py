"""The targets, by the part of the package that they belong to."""

from tests.fuzz.targets import archives, browser, client, crawl, monitors, pages, platform, queries, sites, snapshots

__all__ = ["archives", "browser", "client", "crawl", "monitors", "pages", "platform", "queries", "sites", "snapshots"]
