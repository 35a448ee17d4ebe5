"""The measure of each field: halves of the sites, confidence, comparison of values, and truth from markup."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# A folder of programs, not a package.
sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "quality"))

from field_values import file_key, outcome_of
from halves import half_of, site_name
from intervals import Outcome, bootstrap, f1_of, wilson
from markup_truth import article_truth, plain, product_truth

PAGE = """<html><head><meta property="og:title" content="Oak Table"><meta name="description" content="hidden">
<script type="application/ld+json">{"@type": "Product"}</script></head><body itemscope>
<h1>Oak Table</h1> <p>by Nordlys</p> <p>SKU: OT-100</p> <p>EAN 4006381333931</p> <p>1.299,00 €</p>
<p>Published 3 May 2024</p><img src="/img/oak-table_600x600.jpg">
<p>A table of oiled oak for eight people, made by hand in a small town in Denmark.</p>
</body></html>"""
PRODUCT = {
    "@type": "Product",
    "name": "Oak Table",
    "sku": "OT-100",
    "mpn": "OT-100",
    "gtin13": "4006381333931",
    "brand": {"name": "Nordlys"},
    "image": ["https://cdn.example.com/oak-table.jpg", "https://cdn.example.com/unseen.jpg"],
    "description": "A table of oiled oak for eight people, made by hand in a small town in Denmark.",
    "offers": {"@type": "Offer", "price": "1299.00", "availability": "http://schema.org/InStock"},
}


def test_a_site_is_in_the_same_half_in_every_country() -> None:
    urls = ["https://www.zalando.fi/a", "https://zalando.ie/b", "https://en.zalando.co.uk/c"]
    assert {site_name(url) for url in urls} == {"zalando"}
    assert len({half_of(url) for url in urls}) == 1
    assert {half_of(f"https://shop{number}.example{number}.com") for number in range(20)} == {"tuned", "held out"}


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    assert wilson(0.8, 50) == pytest.approx((0.670, 0.888), abs=0.001)
    assert wilson(1.0, 10) == pytest.approx((0.722, 1.0), abs=0.001)
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_the_interval_of_an_f1_is_wider_when_the_same_pages_are_of_few_sites() -> None:
    many = [Outcome(str(page), float(page % 5 > 0), float(page % 5 > 0)) for page in range(100)]
    few = [outcome._replace(site=str(int(outcome.site) % 5)) for outcome in many]
    assert f1_of(many) == f1_of(few) == pytest.approx(0.8)
    low, high = bootstrap(many)
    assert low < 0.8 < high
    assert bootstrap(few)[1] - bootstrap(few)[0] > high - low


@pytest.mark.parametrize(
    ("field", "true", "item", "precision", "recall"),
    [
        ("brand", ["CALVIN KLEIN"], {"brand": {"name": "Calvin Klein"}}, 1.0, 1.0),
        ("brand", [], {"brand": {"name": "Calvin Klein"}}, 0.0, None),
        ("brand", ["Origins"], {}, None, 0.0),
        ("price", ["20"], {"price": "20.00"}, 1.0, 1.0),
        ("gtin", ["0012345678905"], {"gtin": [{"value": "12345678905"}]}, 1.0, 1.0),
        ("date", ["2024-05-03"], {"datePublished": "2024-05-03T10:00:00Z"}, 1.0, 1.0),
        ("authors", ["Moses Kim and Kate Ash"], {"authors": [{"name": "Moses Kim"}, {"name": "Kate Ash"}]}, 1.0, 1.0),
        ("authors", ["Moses Kim", "Kate Ash"], {"authors": [{"name": "Kate Ash"}]}, 1.0, 0.5),
        ("images", ["/a.jpg", "/b.jpg"], {"images": [{"url": "https://x.com/a_60x60.webp"}]}, 1.0, 0.5),
        ("images", ["/a.jpg"], {"images": [{"url": "/a.jpg"}, {"url": "/b.jpg"}]}, None, 1.0),
    ],
)
def test_values_are_compared_by_what_they_mean(
    field: str, true: list[str], item: dict[str, object], precision: float | None, recall: float | None
) -> None:
    assert outcome_of(field, "site", true, item) == Outcome("site", precision, recall)


def test_images_are_the_same_whatever_their_size_and_place() -> None:
    same = ["/lamp.jpg", "https://cdn.com/w/lamp_600x600.webp?v=2", "/_next/image?url=%2Fimg%2Flamp-1024x.png&w=3"]
    assert {file_key(url) for url in same} == {"lamp"}
    assert file_key("/a/1.jpg") != file_key("/b/1.jpg")


def test_markup_is_the_truth_where_the_page_shows_it_and_is_taken_off() -> None:
    bare = plain(PAGE)
    assert "ld+json" not in bare.html
    assert "itemscope" not in bare.html
    assert "hidden" not in bare.html
    assert "og:title" in bare.html
    truth = product_truth({"json-ld": [PRODUCT]}, bare)
    assert truth == {
        "price": ["1299.00"],
        "availability": ["InStock"],
        "sku": ["OT-100"],
        "gtin": ["4006381333931"],
        "brand": ["Nordlys"],
        "description": [PRODUCT["description"]],
        "mainImage": ["https://cdn.example.com/oak-table.jpg"],
        "images": ["https://cdn.example.com/oak-table.jpg"],
    }


def test_a_page_of_several_products_is_no_truth() -> None:
    assert product_truth({"json-ld": [PRODUCT, {**PRODUCT, "name": "Ash Table"}]}, plain(PAGE)) == {}


def test_days_of_articles_count_where_they_are_written_as_people_do() -> None:
    article = {"@type": "NewsArticle", "headline": "Oak Table", "datePublished": "2024-05-03T08:00:00Z"}
    assert article_truth({"json-ld": [article]}, plain(PAGE)) == {
        "headline": ["Oak Table"],
        "date": ["2024-05-03T08:00:00Z"],
    }
    later = {**article, "datePublished": "2024-06-03"}
    assert article_truth({"json-ld": [later]}, plain(PAGE)) == {"headline": ["Oak Table"]}
