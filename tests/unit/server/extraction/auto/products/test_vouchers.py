"""Codes of vouchers beside the numbers of a product."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/oak-chair"
FRAME = """<html lang=en><title>Oak chair – Works</title><header><a href=/>Works</a></header><main>
<h1>Oak chair</h1><p class=price>€ 89,00</p><button>Add to cart</button>{}</main>"""


def sku(more: str) -> str | None:
    found: str | None = extract("product", FRAME.format(more), URL).get("sku")
    return found


@pytest.mark.parametrize(
    "more",
    [
        "<p>Kod: L10</p>",
        "<p>-10% z kodem</p><p>Kod: LATO10</p>",
        "<p>Save 10% today</p><p>Code: SAVE10</p>",
        "<p>Use code WELCOME10 at checkout</p>",
        "<p>Gutscheincode: HERBST15</p>",
        "<p>Code promo : ETE20</p>",
        "<p>15% de descuento</p><p>Código: VERANO15</p>",
        "<p>Cupom de desconto</p><p>Código: PROMO2026</p>",
        "<p>Sleva pro vás</p><p>Kód: LETO2026</p>",
        "<p>Скидка по промокоду</p><p>Код: LETO26</p>",
        "<div class=promo-bar>Kod: L10AB</div>",
        "<div class=voucher><dl><dt>Kod</dt><dd>LATO24A</dd></dl></div>",
        "<h3>Rabat 10%</h3><p>Kod: LATO26</p>",
        "<p>Extra 15% off this weekend</p><p>Ends Sunday</p><p>Code: SOFA15</p>",
        "<p>Zľava 10 % s kódom</p><p>Kód: JAR10</p>",
        "<p>20 % Rabatt bis Sonntag</p><p>Code: SOFA20</p>",
    ],
)
def test_a_code_of_a_voucher_is_no_number_of_the_product(more: str) -> None:
    assert sku(more) is None


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("<p>Kod: 545642</p>", "545642"),
        ("<p>Kod: KRZ-0012</p>", "KRZ-0012"),
        ("<p>Kod: K12</p>", "K12"),
        ("<p>Code: AB10</p>", "AB10"),
        ("<p>Kod: KB15</p>", "KB15"),
        ("<p>Код: DR650</p>", "DR650"),
        ("<dl><dt>Codice</dt><dd>LUX20</dd></dl>", "LUX20"),
        ("<table><tr><th>Kód</th><td>HX50</td></tr></table>", "HX50"),
        ("<p>You save €10.00</p><p>Code: OAK10</p>", "OAK10"),
        ("<b>-20%</b><p>Code: SF2010</p>", "SF2010"),
        ("<p>Kód: 12AB34</p>", "12AB34"),
        ("<p>Kod produktu: L10A</p>", "L10A"),
        ("<p>Sale -10%</p><p>SKU: OAK10</p>", "OAK10"),
        ("<p>Promotion -20%</p><p>Réf. : CH1020</p>", "CH1020"),
        ("<p>-20%</p><p>Kod: ABC123</p>", "ABC123"),
        ("<p>Save 20%!</p><p>Item code: AB1234</p>", "AB1234"),
        ("<p>100% cotton</p><p>Kod: ABC1234</p>", "ABC1234"),
        ("<p>Rabat 10% z kodem</p><p>Kod: LATO10</p><p>Kod produktu: 545642</p>", "545642"),
        ("<table><tr><td>Kod</td><td>AB1234</td></tr><tr><td>Rabat</td><td>10%</td></tr></table>", "AB1234"),
    ],
)
def test_a_number_of_the_product_is_none_of_a_voucher(more: str, code: str) -> None:
    assert sku(more) == code


@pytest.mark.parametrize("label", ["Code 128", "Code 39 reader", "Dress code: C100", "Code: EN"])
def test_other_words_with_code_are_no_label(label: str) -> None:
    assert sku(f"<p>{label}</p>") is None


def test_an_offer_above_the_name_of_a_product_is_about_its_price() -> None:
    html = FRAME.format("<p>Kod: HAK15</p>").replace("<h1>Oak", "<p>Promo</p><h1>Oak")
    html = html.replace("<p class=price>€ 89,00</p><button>Add to cart</button>", "")
    assert extract("product", html, URL).get("sku") == "HAK15"


@pytest.mark.parametrize(
    ("own", "code"),
    [
        ("", None),
        ("<p>Kod produktu: HS-2201</p>", "HS-2201"),
        ("<p>Kod: HS-2201</p>", "HS-2201"),
        ("<p>SKU: OAK15</p>", "OAK15"),
        ("<dl><dt>Symbol</dt><dd>HS2201</dd></dl>", "HS2201"),
    ],
)
def test_the_number_of_the_product_is_found_beside_a_voucher(own: str, code: str | None) -> None:
    offer = "<p>Rabat 5% na pierwsze zakupy</p><p>Oferta do niedzieli</p><p>Kod: HAK15</p>"
    assert sku(offer + own) == code
    assert sku(own + offer) == code
