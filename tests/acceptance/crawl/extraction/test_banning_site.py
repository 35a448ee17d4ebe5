"""A crawl of a site that bans, by way of its own service and three proxies of which the site has banned two."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.crawls import Project
from tests.support.refusing_site import RefusingSite
from tests.support.upstream_proxy import Upstream

SPIDER = """
import scrapy


class Pages(scrapy.Spider):
    name = "pages"

    def __init__(self, site, **arguments):
        super().__init__(**arguments)
        self.start_urls = [site]

    def parse(self, response):
        yield {"page": response.css("h1::text").get()}
        yield from response.follow_all(css="a")
"""
SOURCES = ("127.0.0.31", "127.0.0.32", "127.0.0.33")


@pytest.mark.long
def test_every_page_arrives_and_the_banned_proxies_are_left_alone(tmp_path: Path) -> None:
    with ExitStack() as stack:
        site = stack.enter_context(RefusingSite(pages=30, banned=SOURCES[:2]))
        kinds = ("http", "socks5", "http")
        proxies = [
            stack.enter_context(Upstream(source=source, scheme=kind))
            for source, kind in zip(SOURCES, kinds, strict=True)
        ]
        project = Project(tmp_path, SPIDER, f"SERVER_ALLOW_HOSTS = [{site.host!r}]\n")
        environment = {"SERVER_PROXIES": " ".join(f"*:*={proxy.address}" for proxy in proxies)}
        crawl = project.crawl("pages", "-a", f"site={site.url}/", environment=environment)
        items = project.items("1/1/1")
    assert (crawl.returncode, crawl.errors) == (0, [])
    assert {item["page"] for item in items} == {"Page /", *(f"Page /page/{number}" for number in range(30))}
    # Requests that were under way together may meet the same ban; none comes after it.
    assert all(site.calls[source] <= 16 for source in SOURCES[:2])
    assert site.calls[SOURCES[2]] == 31
    assert site.calls["127.0.0.1"] == 0
    assert "pass@word" not in crawl.log
    assert "pass%40word" not in crawl.log
