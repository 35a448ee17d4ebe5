"""Brands and numbers of products without structured data: the shop, its phrases, and what is left empty."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://www.nordlys.example/lamps/aurora"


def product(body: str, head: str = "", url: str = URL) -> dict[str, object]:
    return extract("product", f"<html><head>{head}</head><body>{body}</body></html>", url)


@pytest.mark.parametrize(
    "phrase",
    [
        "More products from Fjell",
        "Zeige Produkte des Herstellers Fjell",
        "Alle Artikel des Herstellers Fjell anzeigen",
        "Voir tous les produits de la marque Fjell",
        "Ver más productos de la marca Fjell",
        "Ver mais artigos da marca Fjell",
        "Vedi tutti i prodotti del marchio Fjell",
        "Visa alla produkter från Fjell",
        "Zobacz wszystkie produkty marki Fjell",
        "Все товары бренда Fjell",
    ],
)
def test_a_link_to_more_of_a_brand_names_it(phrase: str) -> None:
    heading = "<h1>Fjell Aurora Desk Lamp</h1>"
    assert product(f'{heading}<a href="/x" title="{phrase}">{phrase}</a>')["brand"] == {"name": "Fjell"}
    assert product(f'{heading}<a class="product-brand" href="/x">{phrase}</a>')["brand"] == {"name": "Fjell"}


@pytest.mark.parametrize(
    "phrase",
    [
        "View all {} products",
        "Shop all {} products",
        "See more of {}",
        "Alle {}-Produkte anzeigen",
        "Weitere Artikel von {}",
        "Bekijk alle producten van {}",
        "Voir tous les produits de {}",
        "Vedi tutti i prodotti di {}",
        "Voir tous les produits {}",
        "Vedi tutti i prodotti {}",
    ],
)
def test_a_phrase_that_links_to_categories_have_names_a_brand_at_its_page_alone(phrase: str) -> None:
    text = phrase.format("Garden")
    assert "brand" not in product(f'<h1>Garden Chair Oslo</h1><a href="/c/garden">{text}</a>')
    text = phrase.format("Fjell")
    assert product(f'<h1>Fjell Chair Oslo</h1><a href="/brands/9">{text}</a>')["brand"] == {"name": "Fjell"}
    assert product(f'<h1>Fjell Chair Oslo</h1><a class=product-brand href="/x">{text}</a>')["brand"] == {
        "name": "Fjell"
    }


@pytest.mark.parametrize(
    ("phrase", "brand"),
    [("Voir tous les produits Dagny", "Dagny"), ("Voir tous les produits d'Ekko", "Ekko")],
)
def test_a_brand_follows_a_phrase_with_and_without_of(phrase: str, brand: str) -> None:
    assert product(f'<h1>Chair Oslo</h1><a class=product-brand href="/x">{phrase}</a>')["brand"] == {"name": brand}


def test_a_link_to_more_of_a_category_names_no_brand() -> None:
    assert "brand" not in product('<h1>Aurora Desk Lamp</h1><a href="/l">More products from our range</a>')
    hostile = "all " * 20_000
    assert "brand" not in product(f'<h1>Aurora Desk Lamp</h1><a href="/l" title="{hostile}">{hostile}</a>')


@pytest.mark.parametrize("link", ["/fabricantes/todos>Todos los fabricantes", "/merke/alle>Alle merker"])
def test_a_link_to_all_brands_names_none(link: str) -> None:
    assert "brand" not in product(f"<h1>Oak lamp</h1><p class=price>5 €</p><a href={link}</a>")


def test_the_name_of_the_shop_before_that_of_the_product_is_the_brand() -> None:
    heading = "<h1>Aurora Desk Lamp</h1>"
    assert product(heading, "<title>Nordlys Aurora Desk Lamp</title>")["brand"] == {"name": "Nordlys"}
    for title in ("Nordlys: Aurora Desk Lamp", "Nordlys - Aurora Desk Lamp", "Aurora Desk Lamp | Nordlys"):
        assert "brand" not in product(heading, f"<title>{title}</title>"), title
    assert product(heading, "<title>Nordlys® Aurora Desk Lamp</title>")["brand"] == {"name": "Nordlys"}
    site = '<meta property="og:site_name" content="Nordlys">'
    assert product("<h1>Nordlys Aurora</h1>", f"<title>Nordlys Aurora</title>{site}")["brand"] == {"name": "Nordlys"}
    # A shop that is named after what it sells.
    assert "brand" not in product("<h1>Lamp Aurora</h1>", "<title>Lamp Aurora</title>", "https://lamp.example/aurora")


def test_a_vendor_with_the_name_of_the_shop_is_no_brand() -> None:
    assert "brand" not in product('<h1>Aurora Desk Lamp</h1><p class="vendor-name">Nordlys</p>')
    assert product('<h1>Aurora Desk Lamp</h1><p class="vendor-name">Fjell</p>')["brand"] == {"name": "Fjell"}


def test_a_category_that_a_script_repeats_as_brand_is_none() -> None:
    heading = "<h1>Aurora Desk Lamp</h1>"
    script = '<script>x = {"item_name": "Aurora Desk Lamp", "item_brand": "%s", "item_category": "Lamps"}</script>'
    assert "brand" not in product(heading + script % "Lamps")
    assert product(heading + script % "Fjell")["brand"] == {"name": "Fjell"}


def test_the_vendor_of_a_product_in_a_script_is_its_brand() -> None:
    script = '<script>var meta = {"product": {"vendor": "Fjell", "name": "Aurora Desk Lamp"}}</script>'
    assert product(f"<h1>Aurora Desk Lamp</h1>{script}")["brand"] == {"name": "Fjell"}


@pytest.mark.parametrize(
    "logo",
    [
        "<img src=/logos/f.png alt=Fjell>",
        "<img class=brand-image src=/f.png alt=Fjell>",
        "<a href=/brand/9><img src=/f.png alt=Fjell></a>",
    ],
)
def test_a_logo_that_the_heading_begins_with_is_the_brand(logo: str) -> None:
    heading = "<h1>Fjell Aurora Desk Lamp</h1>"
    assert product(f"{heading}<p>x</p><div>{logo}</div>")["brand"] == {"name": "Fjell"}
    if "/brand/" not in logo:
        assert "brand" not in product(f"{heading}<footer>{logo}</footer>")


@pytest.mark.parametrize("url", ["/a.jpg", "/branding-iron.jpg"])
def test_a_picture_of_the_product_is_no_logo(url: str) -> None:
    picture = f"<p>x</p><p>y</p><div><img src={url} alt='Coffee Machine'></div>"
    assert "brand" not in product(f"<h1>Coffee Machine Deluxe 2000</h1>{picture}")


def test_a_link_before_the_heading_is_the_brand_that_it_begins_with() -> None:
    body = '<a href="/s/1"><span>Fjell</span></a><h1>Fjell Aurora Desk Lamp</h1>'
    assert product(body, "<title>Buy Fjell Aurora Desk Lamp</title>")["brand"] == {"name": "Fjell"}


def test_the_number_of_the_shop_is_not_repeated_as_that_of_the_manufacturer() -> None:
    item = product(
        "<h1>Aurora Desk Lamp</h1><p>SKU: 80275887</p><table><tr><th>MPN</th><td>802.758.87</td></tr></table>"
    )
    assert item["sku"] == "80275887"
    assert "mpn" not in item


@pytest.mark.parametrize("label", ["HAN", "Herst.-Art.-Nr.", "Herstellernummer"])
def test_german_labels_of_the_number_of_the_manufacturer(label: str) -> None:
    assert product(f"<h1>Aurora Desk Lamp</h1><p>Art.Nr.: CG84194</p><p>{label}: DL-7781</p>")["mpn"] == "DL-7781"


def test_a_gtin_of_a_script_counts_beside_the_name_of_the_product() -> None:
    script = '<script>x = {"name": "%s", "ean": "4006381333931"}</script>'
    heading = "<h1>Aurora Desk Lamp</h1>"
    assert product(heading + script % "Aurora Desk Lamp")["gtin"] == [{"type": "gtin13", "value": "4006381333931"}]
    assert "gtin" not in product(heading + script % "Other lamp")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("Lampe Café 5", r"Lampe Caf\u00e9 5"),
        ("Lampe Café 5", r"Lampe Caf\xe9 5"),
        ('Lamp 5" wide', r"Lamp 5\" wide"),
        ("Salt &amp; Pepper Lamp", "Salt &amp; Pepper Lamp"),
        ("Salt &amp; Pepper Lamp", r"Salt \u0026amp; Pepper Lamp"),
    ],
)
def test_the_name_in_a_script_may_be_written_with_escapes(name: str, source: str) -> None:
    script = f'<script>x = {{"name": "{source}", "ean": "4006381333931"}}</script>'
    assert product(f"<h1>{name}</h1>{script}")["gtin"] == [{"type": "gtin13", "value": "4006381333931"}]
