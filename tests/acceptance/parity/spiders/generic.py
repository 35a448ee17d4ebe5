"""Scrapy's own kinds of spiders."""

from __future__ import annotations

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider, XMLFeedSpider

from tests.acceptance.parity.local import LocalSpider


class Rules(LocalSpider, CrawlSpider):
    name = "crawl-spider"
    parse = CrawlSpider.parse
    rules = (
        Rule(LinkExtractor(allow=r"/page/[1-3]$"), callback="page", follow=True, errback="failed"),
        Rule(LinkExtractor(allow=r"/page/"), callback="other", process_request="mark", cb_kwargs={"by": "rule"}),
    )

    def mark(self, request, response):
        request.meta["marked"] = response.url
        return None if request.url.endswith("/5") else request

    def parse_start_url(self, response):
        yield {"start": response.url}

    def page(self, response):
        yield {"page": response.url, "link": response.meta["link_text"]}

    def other(self, response, by):
        yield {"other": response.url, "by": by, "marked": bool(response.meta["marked"])}


class RulesYieldText(LocalSpider, CrawlSpider):
    """Callbacks of rules yield what is not an item."""

    name = "rules-yield-text"
    parse = CrawlSpider.parse
    rules = (Rule(LinkExtractor(allow=r"/page/[1-3]$"), callback="page", follow=False),)

    def page(self, response):
        return [response.url, {"page": response.url}, 7]


class XmlFeed(LocalSpider, XMLFeedSpider):
    name = "xml-feed-spider"
    paths = ["/catalogue.xml"]
    itertag = "product"
    parse = XMLFeedSpider._parse

    def parse_node(self, response, node):
        return {"name": node.xpath("name/text()").get(), "price": node.xpath("price/text()").get()}


class CsvFeed(LocalSpider, CSVFeedSpider):
    name = "csv-feed-spider"
    paths = ["/catalogue.csv"]
    parse = CSVFeedSpider._parse

    def parse_row(self, response, row):
        return dict(row)


class Sitemap(LocalSpider, SitemapSpider):
    name = "sitemap-spider"
    sitemap_rules = [("/page/[12]", "page"), ("/page/", "other")]

    def __init__(self, site, **arguments):
        super().__init__(site, **arguments)
        self.sitemap_urls = [self.url("/robots.txt")]

    start = SitemapSpider.start

    def page(self, response):
        yield {"page": response.url}

    def other(self, response):
        yield {"other": response.url}
