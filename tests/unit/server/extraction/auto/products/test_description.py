"""Descriptions of products in paragraphs that nothing names."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/oak-chair"
FRAME = """<html><title>Oak chair – Works</title><header><a href=/>Works</a></header><main>
<h1>Oak chair</h1><div class=price>€ 89,00</div>{}<button>Add to cart</button></main>"""
OWN = "A chair of solid oak for the kitchen."


def description(*paragraphs: str) -> str | None:
    more = "".join(f"<p>{text}</p>" for text in paragraphs)
    found: str | None = extract("product", FRAME.format(more), URL).get("description")
    return found


@pytest.mark.parametrize(
    "text",
    [
        "Available in three colours, the chair suits every room.",
        "A chair for every day. It is available with or without arms, and can be stacked.",
        "The seat is made of webbing, the back of bent oak. Matching tables are available.",
        "Der Stuhl aus Eiche ist in vier Farben lieferbar und passt an jeden Tisch.",
        "Cette chaise en chêne, disponible en quatre coloris, convient à toutes les pièces.",
        "Silla de roble disponible en cuatro colores, hecha a mano en nuestro taller.",
        "Sedia in rovere disponibile in quattro colori, fatta a mano nel nostro laboratorio.",
        "Krzesło dębowe dostępne w czterech kolorach, wykonane ręcznie w naszym warsztacie.",
        "無垢のオーク材を使った、台所にも食卓にも合う椅子です。",
        "这把椅子由实心橡木制成，适合厨房和餐厅使用，可以叠放。",
        "เก้าอี้ไม้โอ๊คแท้เหมาะสำหรับห้องครัวและห้องอาหาร",
    ],
)
def test_prose_with_a_word_for_what_is_available_is_a_description(text: str) -> None:
    assert description(text) == text
    assert description(OWN, text) == f"{OWN}\n{text}"


@pytest.mark.parametrize(
    "text",
    [
        "In stock, ready to ship today.",
        "In stock: usually dispatched within 2 working days from our warehouse in Leeds.",
        "Currently unavailable. We don't know when this item will be back in stock.",
        "This product is currently out of stock and will be restocked in May of this year.",
        "This item is currently unavailable in the colours you have chosen, please pick another one.",
        "All sizes in stock and ready to go out to you today.",
        "Pickup available at Leeds store, usually ready in 24 hours.",
        "In allen Farben auf Lager und sofort lieferbar, Versand heute noch bei Bestellung bis zwölf.",
        "Dieser Artikel ist sofort lieferbar und wird noch heute von uns verschickt.",
        "Cet article est disponible et sera expédié sous deux jours ouvrés depuis notre dépôt.",
        "inkl. MwSt. zzgl. Versandkosten",
        "Free delivery on all UK mainland orders.",
        "30 day returns, no questions asked.",
        "Envío gratis a toda la península.",
        "Voor 22.00 uur besteld, morgen in huis.",
        "送料無料でお届けします。通常2〜3日以内に発送します。",
        "在庫あり。通常2〜3日以内に当社の倉庫から発送いたします。",
    ],
)
def test_notices_about_stock_delivery_and_tax_are_none(text: str) -> None:
    assert description(text) is None
    assert description(OWN, text) == OWN


@pytest.mark.parametrize(
    "heading",
    [
        "Description",
        "Product description",
        "Produktbeschreibung",
        "Description du produit",
        "Descripción",
        "Descrizione",
        "Productomschrijving",
        "Opis produktu",
        "Popis",
        "Описание товара",
        "Περιγραφή",
        "商品説明",
        "产品描述",
        "상품 설명",
        "الوصف",
    ],
)
@pytest.mark.parametrize("form", ["<h2>{}</h2><p>{}</p>", "<b>{}:</b> {}", "{}<br>{}", "<p>{}: {}</p>"])
def test_the_heading_of_a_description_is_no_part_of_it(heading: str, form: str) -> None:
    page = FRAME.format(f"<div class=product-description>{form.format(heading, OWN)}</div>")
    found = extract("product", page, URL)
    assert found["description"] == OWN
    assert heading not in found["descriptionHtml"]


def test_a_word_like_the_heading_in_a_sentence_stays() -> None:
    text = "Description of the chair by its maker: solid oak, oiled twice."
    page = FRAME.format(f"<div class=product-description><p>{text}</p></div>")
    assert extract("product", page, URL)["description"] == text


@pytest.mark.parametrize(
    "fact",
    ["Instant download (PDF, 2.4 MB)", "Samstag, 12. Juni 2027, 19:30 Uhr", "Minimum order quantity: 100 pieces"],
)
def test_a_short_line_of_facts_beside_a_description_is_no_part_of_it(fact: str) -> None:
    assert description(fact, OWN) == OWN
