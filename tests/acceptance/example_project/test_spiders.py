"""The example spiders, run as their user runs them, store exactly what the site has."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from example_project.site import news, shop
from example_project.site.news import Article
from example_project.site.shop import Product
from tests.support import forked
from tests.support.servers import ForkedServer

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
#: Variables with which the user of this machine may have chosen services.
_CHOICES = re.compile(r"(EXTRACT_API|PLATFORM|FRONTIER|DUPEFILTER|SERVER|SCRAPY|SITE)_")


@dataclass
class Project:
    """A copy of the example project, with data of its own."""

    folder: Path
    environment: dict[str, str]

    @classmethod
    def copied(cls, folder: Path, **environment: str) -> Project:
        shutil.copytree(ROOT / "example_project" / "example", folder / "example")
        shutil.copy(ROOT / "example_project" / "scrapy.cfg", folder)
        clean = {name: value for name, value in os.environ.items() if not _CHOICES.match(name)}
        return cls(folder, {**clean, **environment})

    def scrapy(self, *arguments: str) -> str:
        done = forked.run([sys.executable, "-m", "scrapy", *arguments], cwd=self.folder, env=self.environment)
        assert done.returncode == 0, done.stderr[-6000:]
        return done.stdout

    def crawl(self, spider: str, *arguments: str) -> list[dict[str, Any]]:
        """The items that a crawl has stored."""
        self.scrapy("crawl", spider, *arguments)
        return self.stored("items")

    def stored(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.scrapy("platform", *arguments).splitlines()]


@pytest.fixture(scope="module")
def project(site: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project with the embedded services."""
    return Project.copied(tmp_path_factory.mktemp("project"), SITE_URL=site)


@pytest.fixture(scope="module")
def catalogue(project: Project) -> list[dict[str, Any]]:
    """The items of the whole catalogue, crawled once."""
    return project.crawl("catalogue", "-s", "DUPEFILTER_COLLECTION=shop_seen")


def product_facts(site: str, product: Product) -> tuple[Any, ...]:
    return (
        site + product.path,
        product.name,
        product.sku,
        product.price,
        product.category.currency,
        product.availability == "OutOfStock",
        product.brand,
    )


def found_product_facts(item: dict[str, Any]) -> tuple[Any, ...]:
    return (
        item["url"],
        item.get("name"),
        item.get("sku"),
        item.get("price"),
        item.get("currency"),
        item.get("availability") == "OutOfStock",
        (item.get("brand") or {}).get("name"),
    )


def article_facts(site: str, article: Article) -> tuple[Any, ...]:
    return (site + article.path, article.headline, article.author, f"{article.published:%Y-%m-%dT%H:%M:%SZ}")


def found_article_facts(item: dict[str, Any]) -> tuple[Any, ...]:
    authors = item.get("authors") or [{}]
    return (item["url"], item.get("headline"), authors[0].get("name"), item.get("datePublished"))


def test_the_catalogue_is_stored_whole_and_each_product_once(catalogue: list[dict[str, Any]], site: str) -> None:
    assert Counter(item["url"] for item in catalogue) == Counter(site + product.path for product in shop.PRODUCTS)
    described = {site + product.path for product in shop.PRODUCTS if product.markup != "none"}
    found = {found_product_facts(item) for item in catalogue if item["url"] in described}
    assert found == {product_facts(site, product) for product in shop.PRODUCTS if product.markup != "none"}


@pytest.mark.usefixtures("catalogue")
def test_the_job_of_the_catalogue_shows_what_happened(project: Project) -> None:
    job = project.stored("jobs", "--spider", "catalogue")[-1]  # the first: another test may have run a second
    assert job["close_reason"] == "finished"
    assert job["items_scraped"] == len(shop.PRODUCTS)
    assert job["errors_count"] == 0
    pages = sum(category.pages for category in shop.CATEGORIES)
    urls = Counter(record["url"] for record in project.stored("requests", job["id"]))
    # The home page, robots.txt and every listing once; what is gone was asked for, and answered.
    assert len(urls) == sum(urls.values())
    assert sum("/c/" in url for url in urls) == pages
    assert sum("last-season" in url for url in urls) == len(shop.DISCONTINUED)
    messages = [record["message"] for record in project.stored("logs", job["id"])]
    assert any("Spider opened" in message for message in messages)
    assert any("Spider closed" in message for message in messages)


@pytest.mark.usefixtures("catalogue")
def test_the_pages_of_the_catalogue_are_in_the_dupefilters_collection(project: Project) -> None:
    records = project.stored("collections", "shop_seen")
    assert len(records) == len(shop.PRODUCTS)


@pytest.mark.usefixtures("catalogue")
def test_a_second_crawl_sees_the_first_and_skips_what_it_stored(project: Project) -> None:
    items = project.crawl(
        "catalogue", "-a", f"categories={shop.CATEGORIES[0].slug}", "-s", "DUPEFILTER_COLLECTION=shop_seen"
    )
    assert items == []
    jobs = project.stored("jobs", "--spider", "catalogue")
    assert [job["items_scraped"] for job in jobs] == [0, len(shop.PRODUCTS)]
    assert len(project.stored("items", jobs[1]["id"])) == len(shop.PRODUCTS)


def test_every_article_is_stored_once(project: Project, site: str) -> None:
    items = project.crawl("news")
    found = Counter(map(found_article_facts, items))
    assert found == Counter(article_facts(site, article) for article in news.ARTICLES)
    bodies = {item["url"]: item["articleBody"] for item in items}
    for article in news.ARTICLES:
        for paragraph in article.paragraphs:
            assert paragraph in bodies[site + article.path]


def test_reviews_that_need_a_click_are_stored_with_a_picture_of_the_page(
    project: Project, site: str, tmp_path: Path
) -> None:
    items = project.crawl("reviews", "-a", f"screenshots={tmp_path}")
    expected = {
        site + product.path: [(review.id, review.rating, review.title, review.text) for review in product.reviews]
        for product in shop.best_rated()
    }
    found = {
        item["url"]: [(review["id"], review["rating"], review["title"], review["text"]) for review in item["reviews"]]
        for item in items
    }
    assert len(items) == shop.BEST_RATED
    assert found == expected
    for item in items:
        picture = Path(item["screenshot_file"]).read_bytes()
        assert picture.startswith(b"\xff\xd8\xff")
        assert len(picture) == item["screenshot_bytes"]
        assert len(picture) > 20_000
    assert len({Path(item["screenshot_file"]).read_bytes() for item in items}) == shop.BEST_RATED


def forms_items(site: str) -> tuple[Counter[tuple[str, ...]], int]:
    """Items of the forms spider, and their number with the echoed headers."""
    rows = Counter(
        (query, product.sku, product.name, product.price, product.category.currency, product.path)
        for query in ("lantern", "folding", "ochre")
        for product in shop.search(query)
    )
    return rows, sum(rows.values()) + 1


def check_forms(items: list[dict[str, Any]], site: str) -> None:
    rows, count = forms_items(site)
    assert len(items) == count
    names = ("query", "sku", "name", "price", "currency", "url")
    assert Counter(tuple(item[name] for name in names) for item in items if "sku" in item) == rows
    (echoed,) = (item for item in items if "headers" in item)
    assert echoed["method"] == "PUT"
    assert echoed["headers"]["x-shop-client"] == "example"
    assert echoed["headers"]["accept-language"] == "en-GB"


def test_forms_are_sent_and_headers_arrive(project: Project, site: str) -> None:
    check_forms(project.crawl("forms"), site)


@pytest.mark.parametrize(
    "kind", ["article", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("product", "pageContent"))]
)
def test_one_page_of_any_site_is_extracted(project: Project, site: str, kind: str) -> None:
    thing = shop.PRODUCTS[0] if kind == "product" else news.ARTICLES[0]
    (item,) = project.crawl("page", "-a", f"url={site}{thing.path}", "-a", f"kind={kind}")
    assert (item["url"], item["kind"]) == (site + thing.path, kind)
    assert item["data"]["url"] == site + thing.path
    title = {"article": "headline", "product": "name"}.get(kind)
    if title is not None:
        assert item["data"][title] == (thing.name if isinstance(thing, Product) else thing.headline)


def test_remote_services_give_the_same_items(site: str, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with ForkedServer(tmp_path / "data", allow_hosts=[site.partition("//")[2]]) as server:
        project = Project.copied(
            tmp_path / "project",
            SITE_URL=site,
            EXTRACT_API_URL=f"{server.url}/v1",
            EXTRACT_API_KEY=server.extract_key,
            PLATFORM_URL=server.url,
            PLATFORM_API_KEY=server.platform_key,
            PLATFORM_PROJECT="42",
        )
        check_forms(project.crawl("forms"), site)
        category = shop.CATEGORIES[7]
        items = project.crawl("catalogue", "-a", f"categories={category.slug}")
        assert Counter(item["url"] for item in items) == Counter(site + product.path for product in category.products)
        assert [job["id"].partition("/")[0] for job in project.stored("jobs")] == ["42", "42"]
    # Nothing was kept here: both services are elsewhere.
    assert not (project.folder / ".scrapy" / "platform").exists()
