"""Prices for the holders of a card, the members of a club or the users of an app."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/coffee"
FRAME = "<html lang=en><title>Coffee – Works</title><main><h1>Coffee</h1>{}<button>Add to cart</button></main>"
BELOW = "<p>{}</p><p class=price>€ 4.50</p><p class=price>€ 6.00</p>"
BOXES = """<div><div>{}</div><div class=price>€ 4.50</div><div>€ 9.00/kg</div></div>
<div><div class=price>€ 6.00</div></div>"""


def price(more: str) -> str | None:
    found: str | None = extract("product", FRAME.format(more), URL).get("price")
    return found


@pytest.mark.parametrize("form", [BELOW, BOXES])
@pytest.mark.parametrize(
    "label",
    [
        "With the club card",
        "Nectar price",
        "Clubcard Price",
        "Members only",
        "App price",
        "Mit PAYBACK Karte",
        "Mit Ihrer Kundenkarte:",
        "Payback-Preis",
        "Avec la carte de fidélité",
        "Prix carte fidélité",
        "Con carta fedeltà",
        "Precio socio",
        "Com o seu cartão fidelidade",
        "Met klantenkaart",
        "Medlemspris",
        "Z kartą Moja Kawa",
        "S kartou klubu",
        "Klubár",
        "По карте",
        "会員価格",
    ],
)
def test_a_price_below_the_label_of_terms_is_not_that_of_all(label: str, form: str) -> None:
    assert price(form.format(label)) == "6.00"
    assert price(f"<p class=price>€ 6.00</p><p>{label}</p><p class=price>€ 4.50</p>") == "6.00"
    # Where there is no other, it is the price.
    assert price(f"<p>{label}</p><p class=price>€ 4.50</p>") == "4.50"


@pytest.mark.parametrize("text", ["€ 4.50 Clubcard Price", "Nectar price € 4.50", "€ 4.50 with Nectar card"])
def test_a_label_in_the_text_of_a_price_is_about_it(text: str) -> None:
    assert price(f"<p class=price>{text}</p><p class=price>€ 6.00</p>") == "6.00"


def test_a_label_between_two_prices_is_about_the_second() -> None:
    assert price("<p class=price>€ 6.00 Clubcard Price € 4.50</p>") == "6.00"
    line = "<p><span class=price>€ 6.00</span> <span>Clubcard Price</span> <span class=price>€ 4.50</span></p>"
    assert price(line) == "6.00"


@pytest.mark.parametrize(
    "label",
    [
        "Our price",
        "Web price",
        "Sale price",
        "Pay safely with your card",
        "With credit card",
        "Mit Kreditkarte",
        "Con tarjeta de crédito",
        "Avec la carte bancaire",
        "Today",
    ],
)
def test_other_labels_above_a_price_are_no_terms(label: str) -> None:
    assert price(f"<p>{label}</p><p class=price>€ 4.50</p><p>In the shop € 6.00</p>") == "4.50"


@pytest.mark.parametrize(
    ("more", "right"),
    [
        ("<p>With gift card € 4.50</p><p>€ 6.00</p>", "6.00"),
        ("<p>With gift card</p><p class=price>€ 4.50</p><p class=price>€ 6.00</p>", "6.00"),
        ("<p>With SD card € 9.00</p><p>Without € 6.00</p>", "6.00"),
        ("<p>With SD card</p><p class=price>€ 9.00</p><p>Without</p><p class=price>€ 6.00</p>", "6.00"),
        ("<p>With case € 4.50</p><p>€ 6.00</p>", "6.00"),
        ("<p class=price>€ 4.50 with trade-in</p><p class=price>€ 6.00</p>", "6.00"),
        ("<p>Mit Gravur 9,00 €</p><p>Ohne Gravur 6,00 €</p>", "6.00"),
        ("<p>Avec gravure : 9,00 €</p><p>Sans gravure : 6,00 €</p>", "6.00"),
        ("<p>Z grawerem 9,00 €</p><p>Bez grawera 6,00 €</p>", "6.00"),
        ("<p>With case € 4.50</p>", "4.50"),
        ("<p>With VAT € 6.00</p><p>Without VAT € 5.00</p>", "6.00"),
        ("<p>With oak lid</p><p class=price>€ 4.50</p><p>€ 6.00 for two</p>", "4.50"),
    ],
)
def test_a_price_with_something_else_is_not_that_of_the_product_alone(more: str, right: str) -> None:
    assert price(more) == right


@pytest.mark.parametrize("label", ["Postcard price", "SD card price", "Graphics card price", "Gift card price"])
def test_the_price_of_a_card_that_is_sold_is_no_price_on_terms(label: str) -> None:
    assert price(f"<p>{label}</p><p class=price>€ 4.50</p><p class=price>€ 6.00 with frame</p>") == "4.50"
    assert price(f"<p class=price>{label} € 4.50</p><p>€ 6.00 bracket</p>") == "4.50"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Normal", "Ermäßigt"), ("Adults", "Children"), ("Plein tarif", "Tarif réduit"), ("Normalny", "Ulgowy")],
)
def test_a_price_for_some_visitors_is_not_that_of_all(one: str, other: str) -> None:
    rows = f"<tr><td>{one}</td><td>€ 6.00</td></tr><tr><td>{other}</td><td>€ 4.50</td></tr>"
    assert price(f"<table>{rows}</table>") == "6.00"


@pytest.mark.parametrize("text", ["Buy 10 for {} each", "Kaufen Sie 10 zum Preis von je {}", "Achetez-en 10 à {}"])
def test_a_price_for_several_pieces_in_a_sentence_is_not_that_of_one(text: str) -> None:
    tiers = "".join(f"<li>{text.format(f'<span class=price>€ {amount}</span>')}</li>" for amount in ("4.50", "4.00"))
    assert price(f"<span class=price>€ 6.00</span><ul>{tiers}</ul>") == "6.00"
