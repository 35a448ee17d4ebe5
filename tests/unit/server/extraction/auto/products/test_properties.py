"""Properties of products in lines and rows, and lines of other things on their pages."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/oak-table-4711"
FRAME = """<html lang=en><title>Oak table Harrow | Marlow</title><header><a href=/>Marlow</a></header><main>
<h1>Oak table Harrow</h1><p class=price>£249.00</p><button>Add to basket</button>
<div class=description><p>A table of solid oak for six people, made in our workshop in Leeds.</p></div>{}</main>
<footer><p>Phone: 0113 496 0000</p></footer>"""
OAK = "<ul><li>Material: oak</li><li>Width: 120 cm</li><li>Height: 74 cm</li></ul>"


def product(more: str) -> dict[str, Any]:
    return extract("product", FRAME.format(more), URL)


@pytest.mark.parametrize("heading", ["<h2>Specifications</h2>", "<h3>Description</h3>", ""])
def test_lines_below_the_heading_of_properties_or_of_the_product_are_properties(heading: str) -> None:
    found = product(f"<div>{heading}{OAK}</div>")["additionalProperties"]
    assert [(each["name"], each["value"]) for each in found] == [
        ("Material", "oak"),
        ("Width", "120 cm"),
        ("Height", "74 cm"),
    ]


@pytest.mark.parametrize(
    "part",
    [
        "<h3>Need help?</h3><ul><li>Phone: 0113 496 0000</li><li>Email: hi@x.example</li><li>Chat: 9 to 5</li></ul>",
        "<h2>What customers say</h2><p>Pros: strong</p><p>Cons: heavy box</p><p>Bought for: my mother</p>",
        "<h2>Shipping</h2><ul><li>UK mainland: 3 days</li><li>Ireland: 7 days</li><li>Germany: 9 days</li></ul>",
        "<h2>Privacy</h2><ul><li>Name: _ga</li><li>Provider: Google</li><li>Expiry: 2 years</li></ul>",
        "<h2>How it works</h2><ol><li>Step 1: size</li><li>Step 2: colour</li><li>Step 3: basket</li></ol>",
        "<h2>Sold by</h2><p>Seller: Holz</p><p>Member since: 2019</p><p>Country: Germany</p>",
        "<h2>Made by</h2><p>Firm: Holz GmbH<br>Street: Waldweg 3<br>City: Leipzig</p>",
        f"<h2>More tables</h2><div class=tile><a href=/p/b>Beech table</a>{OAK}<b>£199.00</b></div>",
    ],
)
def test_lines_below_the_heading_of_another_thing_are_no_properties(part: str) -> None:
    item = product(f"<div>{part}</div>")
    assert "additionalProperties" not in item
    assert "color" not in item


def test_rows_in_a_part_of_properties_below_another_heading_are_no_properties() -> None:
    rows = "".join(
        f"<li><p>{label}</p><p>{value}</p></li>"
        for label, value in (("UK", "3 days"), ("Ireland", "week"), ("EU", "month"))
    )
    assert "additionalProperties" not in product(f"<div class=product-details><h2>Delivery</h2><ul>{rows}</ul></div>")
    assert "additionalProperties" in product(f"<div class=product-details><ul>{rows}</ul></div>")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("<span class=rating>4.9 (22 reviews)</span>", 4.9),
        ("Rated <span class=rating>4.9 (22 reviews)</span>", 4.9),
        ("Sold by <a href=/s/holz>Holz</a> <span class=seller-rating>4.9 (1,234 ratings)</span>", None),
        ("<span>Trusted shops</span> <span class=rating>4.7 stars, 345 reviews</span>", None),
    ],
)
def test_a_rating_without_a_scale_behind_a_name_is_of_that(line: str, value: float | None) -> None:
    assert product(f"<p>{line}</p>").get("aggregateRating", {}).get("ratingValue") == value


def test_terms_that_fold_a_part_in_and_out_are_no_properties() -> None:
    table = "<table><tr><th>Power</th><td>2200 W</td></tr><tr><th>Weight</th><td>1.2 kg</td></tr></table>"
    parts = {"Care": "<p>Wipe it with a cloth.</p>", "Technical data": table, "Guarantee": "<p>Two years</p>"}
    terms = "".join(f"<dt><button><span>{term}</span></button></dt><dd>{part}</dd>" for term, part in parts.items())
    for part in (f"<dl>{terms}</dl>", f"<dl><dt>Power <button>?</button></dt><dd>2200 W</dd></dl>{table}"):
        found = product(part)["additionalProperties"]
        assert sorted({(each["name"], each["value"]) for each in found}) == [("Power", "2200 W"), ("Weight", "1.2 kg")]


def table(*rows: tuple[str, str]) -> str:
    return "<table>" + "".join(f"<tr><td>{label}</td><td>{value}</td></tr>" for label, value in rows) + "</table>"


TIMES = table(("UK", "3 days"), ("Ireland", "5-7 days"))


@pytest.mark.parametrize(
    "part",
    [
        TIMES,
        f"<h2>Delivery</h2>{TIMES}",
        f"<p>Delivery times</p>{table(('London', 'one day'), ('Leeds', 'a week'))}",
        f"<details><summary>Delivery</summary>{table(('London', 'one day'), ('Leeds', 'a week'))}</details>",
        "<table><caption>Shipping</caption><tr><td>London</td><td>one day</td></tr></table>",
        "<table><tr><th>Country</th><th>Delivery time</th></tr><tr><td>UK</td><td>one day</td></tr></table>",
        "<h3>Shipping</h3><dl><dt>Standard</dt><dd>3-5 days</dd><dt>Express</dt><dd>1 day</dd></dl>",
        f"<h2>Delivery details</h2>{table(('Standard', '£3.99 (3-5 days)'), ('Over £50', 'free'))}",
        table(("Standard delivery", "3-5 working days"), ("Express", "next working day"), ("Collection", "free")),
        table(("Mon–Fri", "9:00–18:00"), ("Sat", "10:00–16:00"), ("Sun", "closed")),
        table(("Mo–Fr", "9–18 Uhr"), ("Sa", "10–16 Uhr"), ("So", "geschlossen")),
        f"<h2>Returns</h2>{table(('Return period', '30 days'), ('Condition', 'unused'))}",
        table(("Unopened returns", "30 days"), ("Exchange", "60 days")),
        table(("Returns", "14 days"), ("Guarantee", "30 days")),
        f"<p>Delivery</p>{table(('Method', 'Parcels'), ('Zone', 'EU'))}",
        f"<h3>Versand</h3>{table(('Deutschland', '2–3 Werktage'), ('Schweiz', 'auf Anfrage'))}",
        f"<h2>Livraison</h2>{table(('À domicile', '2 à 3 jours'), ('Point relais', 'selon stock'))}",
        f"<h3>Koszty dostawy</h3>{table(('Kurier', '1-2 dni'), ('Paczkomat', 'jutro'))}",
        f"<h3>Доставка</h3>{table(('Москва', '1 день'), ('Регионы', 'по запросу'))}",
    ],
)
def test_tables_of_delivery_returns_and_hours_are_no_properties(part: str) -> None:
    assert "additionalProperties" not in product(f"<div>{part}</div>")


@pytest.mark.parametrize(
    ("before", "rows"),
    [
        ("", (("Material", "Oak"), ("Delivery scope", "chair, screws"))),
        ("", (("Shipping weight", "5 kg"), ("Material", "Oak"))),
        ("", (("Charging time", "3 days"), ("Standby", "5-7 days"), ("Weight", "40 g"))),
        ("", (("Gluten", "free"), ("Lactose", "free"))),
        ("", (("Battery life", "10 hours"), ("Warranty", "2 years"))),
        ("<h2>Details</h2>", (("Material", "Oak"), ("Delivery time", "3 days"))),
        ("<h2>Specifications</h2>", (("Shelf life", "30 days"), ("After opening", "5 days"))),
        ("", (("Shelf life", "30 days"), ("After opening", "5 days"))),
        ("", (("Haltbarkeit", "30 Tage"), ("Reifezeit", "12 Wochen"))),
        ("", (("Maduración", "30 días"), ("Caducidad", "90 días"))),
        ("<p>Lieferzeit: 3 Tage</p>", (("Nennweite", "DN 25"), ("Druck", "16 bar"))),
        ("<p>Free delivery</p>", (("Bore", "DN 25"), ("Pressure", "16 bar"))),
        ("<p>Free shipping over £50</p>", (("Bore", "DN 25"), ("Pressure", "16 bar"))),
        ("<p>Kostenloser Versand</p>", (("Bore", "DN 25"), ("Pressure", "16 bar"))),
        ("<h3>Lieferumfang</h3>", (("Tisch", "1 Stück"), ("Schrauben", "8 Stück"))),
        ("<h2>Delivery</h2><p>We deliver.</p><h2>Technical data</h2>", (("Material", "Oak"), ("Height", "82 cm"))),
        ("<ul><li><h3>Data</h3><li><h3>Shipping</h3></ul>", (("Material", "Oak"), ("Height", "82 cm"))),
    ],
)
def test_properties_beside_words_for_a_sale_stay(before: str, rows: tuple[tuple[str, str], ...]) -> None:
    found = product(f"<div>{before}{table(*rows)}</div>")["additionalProperties"]
    assert [(each["name"], each["value"]) for each in found] == list(rows)


POWER = "<ul><li>Power: 2200 W</li><li>Capacity: 1.7 l</li></ul>"
DELIVERY = "<ul><li>Method: Parcels</li><li>Zone: EU</li><li>Label: printed</li></ul>"
TABS = "<button role=tab id=t1 aria-controls=p1>{}</button><button role=tab id=t2 aria-controls=p2>{}</button>"


@pytest.mark.parametrize(
    "parts",
    [
        f"<details><summary>Specifications</summary>{POWER}</details>"
        f"<details><summary>Delivery</summary>{DELIVERY}</details>",
        f"<details><summary><h2>Specifikationer</h2></summary>{POWER}</details>"
        f"<details><summary><h2>Leverans</h2></summary>{DELIVERY}</details>",
        "<details><summary>Características</summary><div><p>Power: 2200 W</p><p>Capacity: 1.7 l</p></div></details>",
        TABS.format("Details", "Shipping") + f"<div id=p1>{POWER}</div><div id=p2>{DELIVERY}</div>",
        TABS.format("Technische Daten", "Versand")
        + f"<div aria-labelledby=t1>{POWER}</div><div aria-labelledby=t2>{DELIVERY}</div>",
        TABS.format("Specs", "Reviews (3)")
        + "<table id=p1><tr><td>Power</td><td>2200 W</td></tr><tr><td>Capacity</td><td>1.7 l</td></tr></table>"
        + "<div id=p2 aria-labelledby=t2><ul><li>Ann: great</li><li>Bob: loud</li><li>Cy: okay</li></ul></div>",
        "<ul><li><a href='#a'>Specifications</a><li><a href='#b'>Returns</a></ul>"
        f"<div id=a>{POWER}</div><div id=b><table><tr><td>Method</td><td>post</td></tr></table></div>",
        f"<div><button aria-controls=a>Specifications</button></div><div id=a>{POWER}</div>"
        f"<div><button aria-controls=b>Returns</button></div><div id=b>{DELIVERY}</div>",
    ],
)
def test_the_label_of_a_part_that_opens_is_its_heading(parts: str) -> None:
    found = product(f"<div>{parts}</div>")["additionalProperties"]
    assert [(each["name"], each["value"]) for each in found] == [("Power", "2200 W"), ("Capacity", "1.7 l")]


@pytest.mark.parametrize("link", ["Skip to content", "Shipping", "Details"])
def test_a_link_to_the_content_of_the_page_is_no_heading(link: str) -> None:
    html = FRAME.format(f"<div>{OAK}</div>").replace("<main>", f"<a href='#main'>{link}</a><main id=main>")
    assert len(extract("product", html, URL)["additionalProperties"]) == 3


def test_questions_that_open_have_no_properties() -> None:
    part = f"<details><summary>Does it boil milk?</summary>{POWER}</details>"
    assert "additionalProperties" not in product(f"<div>{part}</div>")
