"""Properties of the example site that spiders and their tests rely on."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urljoin

import extruct
import pytest
import requests
from parsel import Selector

from example_project.site import images, news, shop
from example_project.site.app import SEARCH_TOKEN
from tests.support.eventually import TIMEOUT

ROOT = Path(__file__).parents[3]
NOT_THERE = ["/p/901-gone", "/nothing", "/c/nothing", "/c/tents?page=99", "/news/nothing/", "/images/1-9"]


def page(site: str, path: str) -> Selector:
    response = requests.get(site + path, timeout=60)
    assert response.status_code == 200, path
    return Selector(response.text)


def test_there_are_three_hundred_products_and_a_hundred_and_twenty_articles() -> None:
    assert len(shop.PRODUCTS) == 300
    assert len(news.ARTICLES) == 120
    assert len({product.sku for product in shop.PRODUCTS}) == 300
    assert len({article.path for article in news.ARTICLES}) == 120


def test_half_of_the_products_speak_json_ld_half_microdata_and_a_few_neither() -> None:
    kinds = Counter(product.markup for product in shop.PRODUCTS)
    assert kinds == {"microdata": 150, "jsonld": 135, "none": 15}


def test_the_site_is_the_same_at_every_start() -> None:
    code = (
        "from example_project.site import news, shop\n"
        "for product in shop.PRODUCTS:\n"
        "    print(product.path, product.price, product.gtin13, product.description, product.reviews)\n"
        "print(news.ARTICLES)"
    )
    command = [sys.executable, "-c", code]
    printed = [subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout for _ in range(2)]
    assert printed[0]
    assert printed[0] == printed[1]


def test_listings_lead_to_every_product_once_in_the_order_of_the_shop(site: str) -> None:
    links: list[str] = []
    for category in shop.CATEGORIES:
        for number in range(1, category.pages + 1):
            query = f"?page={number}&sort=listed" if number > 1 else ""
            links += page(site, f"/c/{category.slug}{query}").css(".card h3 a::attr(href)").getall()
    assert [link for link in links if "last-season" not in link] == [product.link for product in shop.PRODUCTS]
    assert len([link for link in links if "last-season" in link]) == len(shop.DISCONTINUED)


def test_listings_link_to_one_page_in_several_ways(site: str) -> None:
    first = page(site, f"/c/{shop.CATEGORIES[0].slug}")
    pagers = [set(pager.css("a::attr(href)").getall()) for pager in first.css(".pager")]
    assert len(pagers) == 2
    assert not pagers[0] & pagers[1]
    assert {frozenset(link.partition("?")[2].split("&")) for link in pagers[0]} == {
        frozenset(link.partition("?")[2].split("&")) for link in pagers[1]
    }
    links = first.css(".card a::attr(href)").getall()
    assert any(f"{link}#reviews" in links for link in links)


def test_a_product_page_says_what_the_shop_knows(site: str) -> None:
    for markup, syntax in (("jsonld", "json-ld"), ("microdata", "microdata")):
        product = next(product for product in shop.PRODUCTS if product.markup == markup and product.rating)
        text = requests.get(site + product.path, timeout=60).text
        found = extruct.extract(text, base_url=site, syntaxes=["json-ld", "microdata"], uniform=True)
        described = next(entry for entry in found[syntax] if entry["@type"] == "Product")
        assert described["name"] == product.name
        assert described["sku"] == product.sku
        assert described["offers"]["price"] == product.price
        assert described["offers"]["priceCurrency"] == product.category.currency
        assert described["offers"]["availability"].rpartition("/")[2] == product.availability
        assert str(described["aggregateRating"]["ratingValue"]) == product.rating
        crumbs = next(entry for entry in found[syntax] if entry["@type"] == "BreadcrumbList")
        assert len(crumbs["itemListElement"]) == 3


def test_a_few_product_pages_have_no_markup_for_machines(site: str) -> None:
    product = next(product for product in shop.PRODUCTS if product.markup == "none")
    text = requests.get(site + product.path, timeout=60).text
    assert "schema.org" not in text
    assert product.name in text
    assert product.sku in text


def test_some_products_have_moved_and_redirect_once_or_twice(site: str) -> None:
    hops = Counter(product.moved for product in shop.PRODUCTS)
    assert hops == {0: 282, 1: 12, 2: 6}
    for moved, statuses in ((1, [301]), (2, [302, 302])):
        product = next(product for product in shop.PRODUCTS if product.moved == moved)
        response = requests.get(site + product.link, timeout=60)
        assert [hop.status_code for hop in response.history] == statuses
        assert response.url == site + product.path


@pytest.mark.parametrize("path", NOT_THERE)
def test_what_is_not_there_is_a_404(site: str, path: str) -> None:
    assert requests.get(site + path, timeout=60).status_code == 404


def test_reviews_are_not_in_the_page_but_in_what_its_script_fetches(site: str) -> None:
    product = shop.best_rated()[0]
    selector = page(site, product.path)
    assert not selector.css(".reviews")
    source = selector.css("#reviews::attr(data-source)").get()
    assert source is not None
    assert product.reviews[0].text not in selector.get()
    found = requests.get(site + source, timeout=60).json()
    assert [review["id"] for review in found] == [review.id for review in product.reviews]


def test_a_search_is_answered_with_json_page_by_page(site: str) -> None:
    expected = [product.sku for product in shop.search("folding")]
    assert len(expected) > shop.SEARCH_PAGE_SIZE
    as_form = requests.post(f"{site}/search", data={"q": "folding", "token": SEARCH_TOKEN}, timeout=60).json()
    as_json = requests.post(
        f"{site}/search", json={"q": "folding", "token": SEARCH_TOKEN, "page": as_form["next"]}, timeout=60
    ).json()
    assert [row["sku"] for row in as_form["results"] + as_json["results"]] == expected
    assert as_json["next"] is None


def test_a_search_without_the_forms_token_is_refused(site: str) -> None:
    assert requests.post(f"{site}/search", data={"q": "lamp"}, timeout=60).status_code == 403
    assert requests.post(f"{site}/search", data=b"\xff", timeout=60).status_code == 400


def test_headers_are_echoed(site: str) -> None:
    echoed = requests.put(f"{site}/echo/headers", headers={"X-Shop-Client": "test"}, timeout=60).json()
    assert echoed["method"] == "PUT"
    assert echoed["headers"]["x-shop-client"] == "test"


def test_robots_are_kept_from_the_echo_only(site: str) -> None:
    text = requests.get(f"{site}/robots.txt", timeout=60).text
    assert "Disallow: /echo/" in text
    assert f"Sitemap: {site}/sitemap.xml" in text


def test_the_site_map_names_every_product_and_article(site: str) -> None:
    text = requests.get(f"{site}/sitemap.xml", timeout=60).text
    for thing in (*shop.PRODUCTS, *news.ARTICLES):
        assert f"<loc>{site}{thing.path}</loc>" in text


def test_sections_lead_to_every_article(site: str) -> None:
    found = []
    for section in news.SECTIONS:
        for number in (1, 2, 3):
            selector = page(site, f"/news/{section}/?page={number}&sort=listed")
            found += selector.css("a.headline::attr(href)").getall()
    assert sorted(found) == sorted(article.path for article in news.ARTICLES)


def test_articles_describe_themselves_by_json_ld_or_open_graph(site: str) -> None:
    for markup in ("jsonld", "opengraph"):
        article = next(article for article in news.ARTICLES if article.markup == markup)
        selector = page(site, article.path)
        if markup == "jsonld":
            described = json.loads(selector.css('script[type="application/ld+json"]::text').get() or "")
            assert described["headline"] == article.headline
            assert described["author"]["name"] == article.author
        else:
            assert selector.css('meta[property="og:title"]::attr(content)').get() == article.headline
        assert selector.css("article p.lead::text").get() == article.lead


def test_images_are_distinct_and_of_the_type_they_say(site: str) -> None:
    drawings = {
        images.product_svg(product.category.shape, product.colour, product.number, view)
        for product in shop.PRODUCTS
        for view in range(1, product.images + 1)
    }
    assert len(drawings) == sum(product.images for product in shop.PRODUCTS)
    assert requests.get(f"{site}/images/1-1", timeout=60).headers["content-type"] == "image/svg+xml"
    picture = requests.get(f"{site}/news/images/1.png", timeout=60)
    assert picture.headers["content-type"] == "image/png"
    assert picture.content.startswith(b"\x89PNG")


def test_every_link_of_the_first_pages_leads_somewhere(site: str) -> None:
    for path in ("/", "/best", "/news/", "/c/tents", shop.PRODUCTS[0].path, news.ARTICLES[0].path):
        for link in {urljoin(site + path, link) for link in page(site, path).css("a::attr(href)").getall()}:
            expected = 404 if "last-season" in link else 200
            assert requests.get(link, timeout=60).status_code == expected, link


def test_a_port_in_use_is_reported_in_one_line(site: str) -> None:
    port = site.rpartition(":")[2]
    command = [sys.executable, "-m", "example_project.site", "--port", port]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"127.0.0.1:{port}" in done.stderr


def test_sigterm_ends_the_site() -> None:
    command = [sys.executable, "-m", "example_project.site", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=TIMEOUT)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
