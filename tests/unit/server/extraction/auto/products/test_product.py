"""Fields of extracted products."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from scrapy_ext.api.extraction.records import FieldSource
from scrapy_ext.server.extraction.auto import extract, extract_more

URL = "https://shop.example.com/lamps/aurora?ref=mail"


def product(body: str, head: str = "", url: str = URL, lang: str = "en") -> dict[str, Any]:
    return extract("product", f'<html lang="{lang}"><head>{head}</head><body>{body}</body></html>', url)


def json_ld(thing: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(thing)}</script>'


LAMP = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "Aurora Desk Lamp",
    "sku": "AUR-100",
    "mpn": "DL-7781",
    "gtin13": "4006381333931",
    "brand": {"@type": "Brand", "name": "Nordlys"},
    "color": "White",
    "description": "A lamp for long evenings, with three levels of light and a wooden foot.",
    "image": ["/img/aurora-1.jpg", "https://cdn.example.com/aurora-2.jpg"],
    "aggregateRating": {"@type": "AggregateRating", "ratingValue": "4.6", "bestRating": 5, "reviewCount": "1,208"},
    "offers": {
        "@type": "Offer",
        "price": "59.90",
        "priceCurrency": "EUR",
        "availability": "https://schema.org/InStock",
    },
}

PLAIN_PAGE = """
<nav class="main-menu"><a href="/">Home</a> <a href="/sale">Sale from $5.00</a></nav>
<div class="breadcrumbs"><a href="/">Home</a> &gt; <a href="/lamps/">Lamps</a> &gt; <span>Aurora</span></div>
<div class="product-detail">
  <h1 class="product-title">Aurora Desk Lamp</h1>
  <div class="product-gallery">
    <img src="../img/a.jpg" alt="Aurora Desk Lamp"><img data-src="/img/b.jpg" src="data:,">
  </div>
  <div class="price-box"><del class="old-price">$79.00</del> <span class="current-price">$59.90</span></div>
  <p>Brand: Nordlys</p>
  <p>SKU: AUR-100</p>
  <p class="stock-status">In stock, ships today</p>
  <button class="add-to-cart">Add to cart</button>
  <ul class="features"><li>Three levels of light</li><li>Foot of oiled oak, made in Denmark</li></ul>
  <table class="specs"><tr><th>Colour</th><td>White</td></tr><tr><th>Power</th><td>7 W</td></tr></table>
</div>
<div class="related-products"><div class="product-card"><h3>Other lamp</h3><span class="price">$12.00</span></div></div>
<footer><p>Free delivery over $30.00</p></footer>
"""


def test_json_ld_gives_every_field_that_it_has() -> None:
    item = product("<h1>Aurora Desk Lamp</h1>", json_ld(LAMP))
    assert item["name"] == "Aurora Desk Lamp"
    assert (item["price"], item["currency"]) == ("59.90", "EUR")
    assert item["availability"] == "InStock"
    assert item["brand"] == {"name": "Nordlys"}
    assert (item["sku"], item["mpn"]) == ("AUR-100", "DL-7781")
    assert item["gtin"] == [{"type": "gtin13", "value": "4006381333931"}]
    assert item["color"] == "White"
    assert item["description"].startswith("A lamp for long evenings")
    assert item["aggregateRating"] == {"ratingValue": 4.6, "bestRating": 5.0, "reviewCount": 1208}


def test_relative_images_become_absolute_and_the_main_one_comes_first() -> None:
    item = product("<h1>Aurora Desk Lamp</h1>", json_ld(LAMP))
    assert [image["url"] for image in item["images"]] == [
        "https://shop.example.com/img/aurora-1.jpg",
        "https://cdn.example.com/aurora-2.jpg",
    ]
    assert item["mainImage"] == item["images"][0]


def test_url_is_the_final_one_and_canonical_url_is_absolute() -> None:
    item = product("<h1>Lamp</h1>", '<link rel="canonical" href="/lamps/aurora">')
    assert item["url"] == URL
    assert item["canonicalUrl"] == "https://shop.example.com/lamps/aurora"


def test_metadata_has_a_time_in_utc_and_a_probability() -> None:
    metadata = product("", json_ld(LAMP))["metadata"]
    assert metadata["dateDownloaded"].endswith("Z")
    assert metadata["probability"] > 0.9


def test_a_page_of_no_product_is_hardly_one() -> None:
    item = product("<p>The weather of tomorrow</p>")
    assert item["metadata"]["probability"] < 0.2
    assert set(item) == {"url", "metadata"}


def test_microdata_is_read_like_json_ld() -> None:
    item = product(
        """
        <div itemscope itemtype="http://schema.org/Product">
          <h1 itemprop="name">Kaffeekanne</h1>
          <span itemprop="brand" itemscope itemtype="http://schema.org/Brand">
            <meta itemprop="name" content="Melitz">
          </span>
          <meta itemprop="sku" content="K-4411">
          <div itemprop="offers" itemscope itemtype="http://schema.org/Offer">
            <meta itemprop="priceCurrency" content="CHF"><span itemprop="price" content="24.50">Fr. 24.50</span>
            <link itemprop="availability" href="http://schema.org/OutOfStock">
          </div>
        </div>
        """,
        lang="de",
    )
    assert (item["name"], item["brand"], item["sku"]) == ("Kaffeekanne", {"name": "Melitz"}, "K-4411")
    assert (item["price"], item["currency"], item["availability"]) == ("24.50", "CHF", "OutOfStock")


def test_open_graph_alone_is_enough_for_name_price_and_image() -> None:
    item = product(
        "",
        """
        <meta property="og:title" content="Wool scarf"><meta property="og:image" content="/scarf.jpg">
        <meta property="product:price:amount" content="35.00"><meta property="product:price:currency" content="GBP">
        <meta property="product:availability" content="in stock"><meta property="product:brand" content="Fjell">
        """,
    )
    assert (item["name"], item["price"], item["currency"]) == ("Wool scarf", "35.00", "GBP")
    assert (item["availability"], item["brand"]) == ("InStock", {"name": "Fjell"})
    assert item["mainImage"] == {"url": "https://shop.example.com/scarf.jpg"}


def test_of_several_products_in_rdfa_none_is_that_of_a_page_with_another_heading() -> None:
    others = "".join(
        f'<div typeof="Product"><a property="url" href="/{name}"><b property="name">{name}</b></a>'
        f'<i property="offers" typeof="Offer"><b property="price">5.00</b></i></div>'
        for name in ("Shade", "Bulb")
    )
    own = "<h1>Aurora Desk Lamp</h1><p class=price>$59.90</p><button>Add to cart</button>"
    item = product(f'<main>{own}</main><div vocab="https://schema.org/">{others}</div>')
    assert (item["name"], item["price"]) == ("Aurora Desk Lamp", "59.90")


def test_a_page_without_markup_is_read_as_people_read_it() -> None:
    item = product(PLAIN_PAGE, "<title>Aurora Desk Lamp | Shop</title>")
    assert item["name"] == "Aurora Desk Lamp"
    assert (item["price"], item["regularPrice"]) == ("59.90", "79.00")
    assert (item["currency"], item["currencyRaw"]) == ("USD", "$")
    assert item["brand"] == {"name": "Nordlys"}
    assert item["sku"] == "AUR-100"
    assert item["availability"] == "InStock"
    assert item["features"] == ["Three levels of light", "Foot of oiled oak, made in Denmark"]
    assert {"name": "Power", "value": "7 W"} in item["additionalProperties"]
    assert item["color"] == "White"
    assert [image["url"] for image in item["images"]] == [
        "https://shop.example.com/img/a.jpg",
        "https://shop.example.com/img/b.jpg",
    ]


def test_a_hidden_notice_in_a_box_named_as_a_feature_is_not_the_features() -> None:
    body = """<h1>Dog seat</h1>
        <div id="club_feature_div"><label>Join the club</label><div id="clubContent" style="display: none">
          <ul><li>Free delivery of all that you order</li><li>Early access to the offers</li></ul></div></div>
        <div class="feature-bullets">
          <ul><li>Straps and buckles hold the dog</li><li>The cover can be washed by hand</li></ul></div>
        <p class="price">€66.75</p>"""
    assert product(body)["features"] == ["Straps and buckles hold the dog", "The cover can be washed by hand"]


def test_a_word_that_names_every_box_of_a_page_does_not_name_the_features() -> None:
    boxes = "".join(f'<div id="box{number}_feature_div"><p>A part</p></div>' for number in range(60))
    bullets = "<ul><li>Straps and buckles hold the dog</li><li>The cover can be washed by hand</li></ul>"
    price = '<p class="price">€66.75</p>'
    named = product(f'<h1>Dog seat</h1>{price}{boxes}<div id="featurebullets_feature_div">{bullets}</div>')
    assert named["features"] == ["Straps and buckles hold the dog", "The cover can be washed by hand"]


def test_features_that_a_page_folds_are_found_where_no_others_are() -> None:
    body = """<h1>Dog seat</h1><p class="price">€66.75</p><div class="features"><button>Show more</button>
        <div class="panel" hidden>
          <ul><li>Straps and buckles hold the dog</li><li>The cover can be washed by hand</li></ul></div></div>"""
    assert product(body)["features"] == ["Straps and buckles hold the dog", "The cover can be washed by hand"]


def test_features_in_a_hidden_tab_that_is_named_so_come_first() -> None:
    body = """<h1>Dog seat</h1><p class="price">€66.75</p>
        <div id="features" style="display:none">
          <ul><li>Straps and buckles hold the dog</li><li>The cover can be washed by hand</li></ul></div>
        <ul class="benefits"><li>Delivery on the day of the order</li><li>A month to send it back</li></ul>"""
    assert product(body)["features"] == ["Straps and buckles hold the dog", "The cover can be washed by hand"]


def test_breadcrumbs_of_the_page_have_names_and_absolute_urls() -> None:
    crumbs = product(PLAIN_PAGE, "<title>Aurora Desk Lamp</title>")["breadcrumbs"]
    assert [crumb["name"] for crumb in crumbs] == ["Home", "Lamps", "Aurora"]
    assert crumbs[1]["url"] == "https://shop.example.com/lamps/"


def test_breadcrumbs_of_markup_are_in_the_order_of_their_positions() -> None:
    trail = {
        "@type": "BreadcrumbList",
        "itemListElement": [
            {"@type": "ListItem", "position": 2, "name": "Lamps", "item": "/lamps"},
            {"@type": "ListItem", "position": 1, "item": {"@id": "https://shop.example.com/", "name": "Home"}},
        ],
    }
    assert product("", json_ld(trail))["breadcrumbs"] == [
        {"name": "Home", "url": "https://shop.example.com/"},
        {"name": "Lamps", "url": "https://shop.example.com/lamps"},
    ]


def test_broken_json_ld_gives_what_can_be_read_of_it() -> None:
    broken = """<script type="application/ld+json">
    /* shop data */
    {"@type": "Product", "name": "The "big" lamp", // a comment
     "sku": "B-1234"
     "offers": {"@type": "Offer", "price": "12.50", "priceCurrency": "EUR",},
    """
    item = product("<h1>Lamp</h1>", broken)
    assert (item["name"], item["sku"], item["price"]) == ('The "big" lamp', "B-1234", "12.50")


def test_a_broken_block_does_not_spoil_the_others() -> None:
    head = '<script type="application/ld+json">{{{"@type"</script>' + json_ld(LAMP)
    assert product("", head)["sku"] == "AUR-100"


def test_prices_of_other_countries_are_numbers_with_a_point() -> None:
    def priced(text: str, url: str = URL, lang: str = "en") -> tuple[str | None, str | None]:
        item = product(f'<h1>Lampe Aurora</h1><p class="price">{text}</p>', "<title>Lampe Aurora</title>", url, lang)
        return item.get("price"), item.get("currency")

    assert priced("1.299,00 €", lang="de") == ("1299.00", "EUR")
    assert priced("£1,299.00") == ("1299.00", "GBP")
    assert priced("44 890 ₽", lang="ru") == ("44890", "RUB")
    assert priced("1 599 kr", "https://butik.example.se/lampa", "sv") == ("1599", "SEK")
    assert priced("1 599 kr", "https://butikk.example.no/lampe", "nb") == ("1599", "NOK")
    assert priced("$24.50", "https://shop.example.ca/lamp") == ("24.50", "CAD")
    assert priced("CHF 12.50") == ("12.50", "CHF")
    assert priced("¥1,980", "https://shop.example.jp/lamp", "ja") == ("1980", "JPY")


def test_a_shared_sign_of_a_country_without_it_stays_raw() -> None:
    item = product('<h1>Lamp</h1><p class="price">$12.50</p>', "<title>Lamp</title>", "https://shop.example.fr/lamp")
    assert item["currencyRaw"] == "$"
    assert "currency" not in item


def test_a_price_whose_parts_are_elements_of_their_own_is_put_together() -> None:
    html = '<h1>Lamp</h1><div class="price"><span>€</span><span>12</span><sup>99</sup></div>'
    assert product(html, "<title>Lamp</title>")["price"] == "12.99"


def test_the_former_price_alone_is_not_taken_for_the_price() -> None:
    html = '<h1>Lamp</h1><p class="price"><s>$80.00</s></p><p>Prices on request</p>'
    item = product(html, "<title>Lamp</title>")
    assert "price" not in item
    assert "regularPrice" not in item


@pytest.mark.parametrize(
    ("club", "label", "right"),
    [
        ("Clubcard Price", "Price", "10.00"),
        ("Member price", "Regular price", "10.00"),
        ("Klub cena", "Běžná cena", "10.00"),
        ("Klubová cena", "Cena", "10.00"),
        ("Sale price", "Regular price", "8.00"),
        ("Akční cena", "Běžná cena", "8.00"),
    ],
)
def test_the_price_that_all_pay_counts_before_that_of_a_club(club: str, label: str, right: str) -> None:
    prices = f"""<div><span>{club}</span> <strong class="price">8.00 €</strong></div>
    <div><span>{label}</span> <strong class="price">10.00 €</strong></div>"""
    assert product(f"<h1>Lamp</h1>{prices}", "<title>Lamp</title>")["price"] == right
    names = ("Oak lamp", "Ash lamp", "Elm lamp", "Yew lamp")
    entries = "".join(f'<li><a href="/p/{at}"><h3>{name}</h3></a>{prices}</li>' for at, name in enumerate(names))
    listed = extract("productList", f"<h1>Lamps</h1><ul>{entries}</ul>", "https://shop.example.com/lamps")
    assert [each["price"] for each in listed["products"]] == [right] * 4


def test_a_regular_price_of_another_product_is_not_that_of_one_on_terms() -> None:
    html = """<h1>Lamp</h1><div><span>Member price</span> <strong class="price">8.00 €</strong></div>
    <div class="related-products"><h3>Torch</h3><span>Regular price</span> <b class="price">30.00 €</b></div>"""
    assert product(html, "<title>Lamp</title>")["price"] == "8.00"


def test_prices_of_other_products_and_of_delivery_are_not_the_price() -> None:
    html = """
    <h1>Lamp</h1><p>Ask for an offer.</p>
    <p class="shipping-note">Delivery $4.90</p>
    <div class="related-products"><div class="product-card"><span class="price">$12.00</span></div></div>
    """
    assert "price" not in product(html, "<title>Lamp</title>")


def test_an_offer_in_a_list_of_variants_in_stock_makes_the_product_in_stock() -> None:
    offers = [
        {"@type": "Offer", "price": 10, "priceCurrency": "EUR", "availability": "OutOfStock"},
        {"@type": "Offer", "price": 12, "priceCurrency": "EUR", "availability": "http://schema.org/InStock"},
    ]
    item = product("", json_ld(LAMP | {"offers": offers}))
    assert (item["price"], item["availability"]) == ("12", "InStock"), "nobody can buy it for 10"


def test_out_of_stock_is_recognised_by_words_too() -> None:
    for words in ("Sold out", "Ausverkauft", "Rupture de stock", "Нет в наличии", "在庫切れ"):
        html = f'<h1>Lamp</h1><p class="price">$5.00</p><p class="stock">{words}</p>'
        assert product(html, "<title>Lamp</title>")["availability"] == "OutOfStock", words


@pytest.mark.parametrize(
    ("more", "availability"),
    [
        ("<button>Notify me</button>", "OutOfStock"),
        ("<button>Email me when it is back in stock</button>", "OutOfStock"),
        ("<button>Mail mij zodra dit artikel er is</button>", "OutOfStock"),
        ("<button>Email me this page</button>", "InStock"),
        ("<button>Text me the link to the app</button>", "InStock"),
        ("<button>Yes, email me 10% off</button>", "InStock"),
        ("<button>Laat me meer zien</button>", "InStock"),
        ("<ul><li><a href=/q>Oak chair</a><button>Notify me</button></ul>", "InStock"),
        ("<p>This lamp cannot be ordered at the moment.</p>", "OutOfStock"),
        ("<p>Gift cards cannot be bought with vouchers.</p>", "InStock"),
        ("<ul><li><a href=/q>Oak chair</a><button disabled>Add to cart</button></ul>", "InStock"),
    ],
)
def test_a_button_or_a_sentence_about_something_else_does_not_make_a_product_out_of_stock(
    more: str, availability: str
) -> None:
    html = f'<h1>Lamp</h1><p class="price">$5.00</p>{more}'
    assert product(html, "<title>Lamp</title>")["availability"] == availability


def test_raised_cents_behind_thousands_are_those_of_the_price() -> None:
    html = (
        "<h1>Lave-linge</h1><div class=price>1 299<sup>€00</sup></div><div>dont 12,00 € d'éco-participation</div>"
        "<button>Ajouter au panier</button>"
    )
    assert product(html, "<title>Lave-linge</title>")["price"] == "1299.00"


def test_a_line_that_promises_word_and_is_no_button_leaves_the_availability_open() -> None:
    html = '<h1>Lamp</h1><p class="price">$5.00</p><p>Notify me when available</p>'
    assert "availability" not in product(html, "<title>Lamp</title>")


def test_availability_that_the_page_contradicts_itself_on_is_left_out() -> None:
    html = '<h1>Lamp</h1><p class="stock">In stock</p><p class="stock">Sold out</p>'
    assert "availability" not in product(html, "<title>Lamp</title>")


def test_the_list_price_of_the_markup_is_the_regular_price() -> None:
    offers = {
        "@type": "Offer",
        "priceSpecification": [
            {"@type": "UnitPriceSpecification", "price": 45, "priceCurrency": "EUR"},
            {"@type": "UnitPriceSpecification", "price": 60, "priceType": "https://schema.org/ListPrice"},
        ],
    }
    item = product("", json_ld(LAMP | {"offers": offers}))
    assert (item["price"], item["regularPrice"], item["currency"]) == ("45", "60", "EUR")


def test_a_regular_price_that_is_not_higher_is_left_out() -> None:
    html = '<h1>Lamp</h1><p><del class="old-price">$5.00</del> <b class="price">$59.90</b></p>'
    assert "regularPrice" not in product(html, "<title>Lamp</title>")


def test_variants_carry_their_own_price_size_and_url() -> None:
    group = {
        "@type": "ProductGroup",
        "name": "Wool sock",
        "hasVariant": [
            {
                "@type": "Product",
                "sku": f"S-100{size}",
                "size": size,
                "url": f"/sock?size={size}",
                "offers": {"price": 9},
            }
            for size in ("S", "M")
        ],
    }
    variants = product("", json_ld(group))["variants"]
    assert [(variant["size"], variant["price"]) for variant in variants] == [("S", "9"), ("M", "9")]
    assert variants[1]["url"] == "https://shop.example.com/sock?size=M"


def test_the_product_of_the_pages_own_address_is_chosen_among_several() -> None:
    others = [{"@type": "Product", "name": f"Other {n}", "url": f"/other-{n}", "offers": {"price": n}} for n in (1, 2)]
    own = {"@type": "Product", "name": "Aurora", "url": "/lamps/aurora?ref=mail", "offers": {"price": "59.90"}}
    assert product("", json_ld([*others, own]))["name"] == "Aurora"


def test_products_that_markup_calls_related_are_not_the_product() -> None:
    thing = LAMP | {"isRelatedTo": [{"@type": "Product", "name": "Other", "url": URL, "offers": {"price": "1.00"}}]}
    assert product("", json_ld(thing))["name"] == "Aurora Desk Lamp"


def test_an_invalid_gtin_is_left_out() -> None:
    assert "gtin" not in product("", json_ld(LAMP | {"gtin13": "4006381333930"}))


def test_the_makers_number_is_not_the_shops_repeated() -> None:
    assert "mpn" not in product("", json_ld(LAMP | {"mpn": "AUR-100"}))


def test_a_code_under_a_label_of_another_language_is_the_sku() -> None:
    for line in ("Artikelnummer: 46286401", "Produkta kods 46286401", "Réf. : 46286401", "Артикул: 46286401"):
        html = f"<h1>Lampe</h1><p>{line}</p>"
        assert product(html, "<title>Lampe</title>")["sku"] == "46286401", line


def test_words_around_a_brand_are_taken_off() -> None:
    for text in ("Visit the Nordlys Store", "Brand: Nordlys", "by Nordlys", "Marke: Nordlys"):
        html = f'<h1>Lamp</h1><a class="product-brand">{text}</a>'
        assert product(html, "<title>Lamp</title>")["brand"] == {"name": "Nordlys"}, text


def test_html_in_a_description_of_markup_becomes_text_and_clean_html() -> None:
    description = "<p>Warm light.</p><ul><li>Oak &amp; steel</li></ul><script>steal()</script>" + " It dims." * 5
    item = product("", json_ld(LAMP | {"description": description}))
    assert "<" not in item["description"]
    assert "Oak & steel" in item["description"]
    assert "<li>" in item["descriptionHtml"]
    assert "steal" not in item["descriptionHtml"]


def test_what_is_not_known_is_absent_rather_than_empty() -> None:
    item = product("<h1>Lamp</h1>", "<title>Lamp</title>")
    assert set(item) == {"url", "name", "metadata"}


def test_two_of_three_sources_decide_about_the_price() -> None:
    head = json_ld(LAMP | {"offers": {"price": "20", "priceCurrency": "USD"}})
    head += '<meta property="product:price:amount" content="59.90">'
    assert product('<h1>Aurora Desk Lamp</h1><p class="price">$59.90</p>', head)["price"] == "59.90"
    assert product("<h1>Aurora Desk Lamp</h1>", head)["price"] == "20"


@pytest.mark.parametrize(
    "text",
    [
        "Was <s>£20.00</s> £15.00",
        "RRP <del>£20.00</del> £15.00 Save £5.00",
        "UVP <del>20,00 £</del> 15,00 £ inkl. MwSt.",
        "Prix conseillé <del>20,00 £</del> 15,00 £",
        "£15.00 <s>£20.00</s> (VAT included)",
    ],
)
def test_a_struck_amount_is_the_former_price_with_and_without_words_for_it(text: str) -> None:
    item = product(f"<h1>Lamp</h1><p class=price>{text}</p><button>Add to cart</button>", "<title>Lamp</title>")
    assert (item["price"], item["regularPrice"]) == ("15.00", "20.00")


def test_the_lower_of_two_amounts_side_by_side_is_the_price() -> None:
    html = "<h1>Lamp</h1><div><span class='x1'>59,90 €</span> <span class='x2'>79,00 €</span></div>"
    other = "<ul><li><span>79,00 €</span></li><li><span>79,00 €</span></li></ul>"
    assert product(html + other, "<title>Lamp</title>")["price"] == "59.90"
    parts = "<h1>Lamp</h1><p class='price'><span>$</span><span>59</span><span>.90</span></p>"
    assert product(parts, "<title>Lamp</title>")["price"] == "59.90"


def test_an_amount_without_a_name_is_the_price_where_it_is_the_only_one() -> None:
    filler = "<p>Words about lamps.</p>" * 150
    html = f"<div><h1>Lamp</h1></div>{filler}<div><span>59,90 €</span></div>"
    assert product(html, "<title>Lamp</title>")["price"] == "59.90"
    assert "price" not in product(html + "<div><span>12,00 €</span></div>", "<title>Lamp</title>")


def test_a_price_that_is_called_old_and_stands_alone_is_the_price() -> None:
    html = '<h1>Lamp</h1><p class="price"><span class="price-old">$40.00</span></p>'
    assert product(html, "<title>Lamp</title>")["price"] == "40.00"


def test_a_discount_price_is_the_reduced_one_and_an_instalment_is_no_price() -> None:
    html = """<h1>Lamp</h1><p><span class="c-price--discount">149,00 €</span>
    <span class="c-price--old">199,00 €</span></p><p class="tasso-zero-price">12 x 12,42 €</p>"""
    item = product(html, "<title>Lamp</title>")
    assert (item["price"], item["regularPrice"]) == ("149.00", "199.00")


def test_the_words_of_the_url_identify_the_heading_where_the_title_does_not() -> None:
    html = """<h1>Our shop</h1><div><span class="price">$9.00</span></div><div><h1>Lampe étoile du soir</h1>
    <div><span class="price">$59.90</span></div></div>"""
    item = product(html, "<title>The shop</title>", "https://shop.example.com/p/lampe-etoile-du-soir.html")
    assert (item["name"], item["price"]) == ("Lampe étoile du soir", "59.90")


PRICED = '<h1>Lamp</h1><p class="price">$5.00</p>'


def test_what_has_a_price_and_is_not_said_to_be_gone_can_be_had() -> None:
    item = product(PRICED, "<title>Lamp</title>")
    assert item["availability"] == "InStock"
    # It is no evidence that the page is of a product.
    button = product(PRICED + "<button>Add to cart</button>", "<title>Lamp</title>")
    assert item["metadata"]["probability"] < button["metadata"]["probability"]
    gone = (
        "<p>Sold out</p>",
        "<p>Dieser Artikel ist ausverkauft</p>",
        '<button class="add-to-cart disabled">Sold out</button>',
    )
    for words in gone:
        assert product(PRICED + words, "<title>Lamp</title>")["availability"] == "OutOfStock", words


def test_words_for_another_case_that_are_not_shown_do_not_count() -> None:
    for shell in ('<div style="display: none">{}</div>', '<div class="modal fade">{}</div>', "<div hidden>{}</div>"):
        html = PRICED + shell.format('<p class="stock">Sold out</p>')
        assert product(html, "<title>Lamp</title>")["availability"] == "InStock", shell


def test_of_statements_that_contradict_each_other_the_one_at_the_heading_counts() -> None:
    html = '<h1>Lamp</h1><p class="stock">Sold out</p>' + "<p>Words.</p>" * 20 + '<p class="stock">In stock</p>'
    assert product(html, "<title>Lamp</title>")["availability"] == "OutOfStock"


def test_products_of_one_name_are_variants_of_one() -> None:
    def boots(size: int, state: str) -> dict[str, Any]:
        offer = {"@type": "Offer", "price": "69.95", "availability": f"https://schema.org/{state}"}
        return {"@type": "Product", "name": "Boots", "sku": f"845-{size}", "color": "Black", "offers": offer}

    item = product("", json_ld([boots(35, "OutOfStock"), boots(36, "InStock")]))
    assert (item["price"], item["availability"], item["color"]) == ("69.95", "InStock", "Black")
    assert "sku" not in item
    assert [variant["sku"] for variant in item["variants"]] == ["845-35", "845-36"]


def test_variants_at_one_address_are_those_of_their_group() -> None:
    def plan(name: str) -> dict[str, Any]:
        offer = {"@type": "Offer", "price": "9", "availability": "InStock"}
        return {"@type": "Product", "name": f"Plan {name}", "sku": name, "url": f"{URL}#{name}", "offers": offer}

    group = {"@type": "ProductGroup", "name": "Plan", "hasVariant": [plan("a"), plan("b")]}
    item = product("<h1>Plan</h1>", json_ld({"@graph": [group]}))
    assert item["name"] == "Plan"
    assert [variant["sku"] for variant in item["variants"]] == ["a", "b"]
    assert "sku" not in item


def test_a_block_with_a_price_counts_before_one_of_the_same_product_with_zero() -> None:
    blocks = [{"@type": "Product", "name": "Set", "offers": {"@type": "Offer", "price": price}} for price in ("0", "9")]
    head = "".join(map(json_ld, blocks))
    assert product("<h1>Set</h1>", head)["price"] == "9"
    assert "price" not in product("<h1>Set</h1>", json_ld(blocks[0]))


def test_a_group_has_the_price_of_the_variant_at_the_pages_address() -> None:
    def shoe(colour: str, price: str) -> dict[str, Any]:
        offer = {"@type": "Offer", "price": price, "url": f"https://shop.example.com/shoe?variant={colour}"}
        return {"@type": "Product", "name": f"Shoe - {colour}", "offers": offer}

    group = {"@type": "ProductGroup", "name": "Shoe", "sku": "SHOE-1"}
    head = json_ld(group | {"hasVariant": [shoe("red", "40"), shoe("blue", "45")]})
    assert product("", head, "https://shop.example.com/shoe?variant=blue")["price"] == "45"
    item = product("", head, "https://shop.example.com/shoe")
    assert (item["price"], item["sku"]) == ("40", "SHOE-1")


def test_a_brand_is_found_in_the_title_links_and_scripts() -> None:
    title = "<title>Nordlys Aurora Desk Lamp - white | Shop</title>"
    heading = "<h1>Aurora Desk Lamp</h1>"
    for html in (
        f"<div><a href='/n'><h3>Nordlys</h3></a>{heading}</div>",
        f"<div><img src='/n.png' alt='Nordlys'>{heading}</div>",
        f"{heading}<p>More of <a href='/brands/nordlys'>Nordlys</a></p>",
        f"{heading}<script>dataLayer.push({{name: 'Aurora Desk Lamp', brand: 'Nordlys', price: 59.9}})</script>",
        heading + '<script>push("{\\"brand\\": {\\"@type\\": \\"Brand\\", \\"name\\": \\"Nordlys\\"}}")</script>',
        f"{heading}<div><p>Brand</p><p>Nordlys</p></div>",
        f"{heading}<table><tr><td>Colour:</td><td>white</td><td>Brand:</td><td>Nordlys</td></tr></table>",
    ):
        assert product(html, title)["brand"] == {"name": "Nordlys"}, html


def test_what_is_no_brand_is_not_taken_for_one() -> None:
    for html in (
        "<div><h3>Our lamps</h3><h1>Aurora Desk Lamp</h1></div>",
        "<h1><span>Aurora</span> <span>Desk Lamp</span></h1>",
        "<h1>Aurora Desk Lamp</h1><script>theme({brand: 'blue', name: 'dark'})</script>",
        "<h1>Aurora Desk Lamp</h1><footer><a href='/brands/nordlys'>Nordlys</a></footer>",
    ):
        assert "brand" not in product(html, "<title>Aurora Desk Lamp | Shop</title>"), html


def test_the_number_of_a_product_is_found_by_what_tests_call_it_in_scripts_and_in_addresses() -> None:
    heading, title = "<h1>Boots</h1>", "<title>Boots</title>"
    assert product(f'{heading}<span data-testid="product-reference">1002/710</span>', title)["sku"] == "1002/710"
    assert product(f"{heading}<script>load({{'sku': 'BOOT-7'}})</script>", title)["sku"] == "BOOT-7"
    several = f"{heading}<script>load([{{'sku': 'BOOT-7'}}, {{'sku': 'BOOT-8'}}])</script>"
    assert "sku" not in product(several, title)
    assert product(heading, title, "https://shop.example.com/item/93133869_old-boots")["sku"] == "93133869"
    assert product(heading, title, "https://shop.example.com/p/N82E16814487048")["sku"] == "N82E16814487048"


def test_the_number_of_one_variant_is_not_that_of_the_product() -> None:
    offers = [{"@type": "Offer", "price": 9, "sku": f"SOCK-{size}"} for size in ("S", "M")]
    item = product("", json_ld({"@type": "Product", "name": "Sock", "offers": offers}))
    assert "sku" not in item
    assert product("", json_ld({"@type": "Product", "name": "Sock", "offers": offers[:1]}))["sku"] == "SOCK-S"


def test_a_gtin_of_zeros_is_none() -> None:
    assert "gtin" not in product("", json_ld(LAMP | {"gtin13": "0000000000000"}))


def test_the_page_of_what_costs_nothing_has_no_price_of_other_things() -> None:
    head = json_ld(LAMP | {"offers": {"@type": "Offer", "price": "0.00", "priceCurrency": "EUR"}})
    assert "price" not in product('<h1>Aurora Desk Lamp</h1><p class="price">$9.00</p>', head)


def test_the_number_that_those_of_variants_begin_with_is_the_products() -> None:
    head = json_ld(LAMP | {"sku": "AUR-100-2"})
    assert product("<h1>Aurora Desk Lamp</h1><p>SKU: AUR-100</p>", head)["sku"] == "AUR-100"
    assert product("<h1>Aurora Desk Lamp</h1><p>SKU: AUR-777</p>", head)["sku"] == "AUR-100-2"


def test_what_can_be_chosen_from_is_not_what_the_product_is() -> None:
    row = "<tr><td>Size:</td><td><select><option>Choose</option><option>S</option><option>M</option></select></td></tr>"
    item = product(f"<h1>Lamp</h1><table>{row}<tr><td>Colour:</td><td>red</td></tr></table>", "<title>Lamp</title>")
    assert item["color"] == "red"
    assert "size" not in item


def test_a_rating_that_is_written_by_the_heading_is_read() -> None:
    def rated(text: str) -> Any:
        html = f'<h1>Lamp</h1><div class="product-rating">{text}</div>'
        return product(html, "<title>Lamp</title>").get("aggregateRating")

    assert rated("4.5 out of 5 stars <a>1,234 ratings</a>") == {
        "ratingValue": 4.5,
        "bestRating": 5.0,
        "reviewCount": 1234,
    }
    assert rated("4,5 von 5 Sternen") == {"ratingValue": 4.5, "bestRating": 5.0}
    assert rated("Rate it: 1 2 3 4 5") is None
    assert rated("12 of 5") is None
    far = "<h1>Lamp</h1>" + "<p>Words.</p>" * 200 + '<div class="rating">1 out of 5</div>'
    assert "aggregateRating" not in product(far, "<title>Lamp</title>")


def test_what_no_markup_says_has_a_source_too() -> None:
    html = (
        "<title>Lamp</title><h1>Lamp</h1><p class=price>$31.50</p><p class=brand>Acme</p><button>Add to cart</button>"
    )
    sources = extract_more("product", html, "https://shop.example/lamp", sources=True).sources or {}
    assert sources["price"] == sources["currency"] == FieldSource("shown price", "/html/body/p[1]", "$31.50")
    assert sources["brand"] == FieldSource("named part", "/html/body/p[2]", "Acme")
    assert sources["availability"] == FieldSource("words or buttons about the stock")


def test_what_the_markup_says_is_named_by_its_place() -> None:
    offer = {"@type": "Offer", "price": "12.00", "priceCurrency": "EUR", "availability": "https://schema.org/InStock"}
    html = json_ld(LAMP | {"offers": offer, "brand": "Acme"}) + "<h1>Aurora Desk Lamp</h1>"
    sources = extract_more("product", html, "https://shop.example/lamp", sources=True).sources or {}
    assert sources["price"].rule == "json-ld Product.offers.price"
    assert sources["brand"].rule == "json-ld Product.brand"


def test_the_name_of_the_shop_is_a_brand_where_nothing_names_another_maker() -> None:
    lamp = LAMP | {"brand": "Example"}
    header = "<header><a>Example</a></header>"
    head = json_ld(lamp) + '<meta property="og:site_name" content="Example">'
    bare = f"{header}<h1>Aurora Desk Lamp</h1><footer>© Example</footer>"
    assert product(bare, head)["brand"] == {"name": "Example"}
    assert product(f"{bare}<dl><dt>Brand</dt><dd>Acme</dd></dl>", head)["brand"] == {"name": "Acme"}
    shown = product(f"{header}<h1>Aurora Desk Lamp</h1><p>Example lamps are made in Denmark.</p>", head)
    assert shown["brand"] == {"name": "Example"}
    script = '<script>var page = {"name": "Aurora Desk Lamp", "brand": "Example"}</script>'
    # Better than none, last of all: many shops sell what they make.
    assert product(f"<h1>Aurora Desk Lamp</h1>{script}")["brand"] == {"name": "Example"}
    listed = "<dl><dt>Brand</dt><dd>Acme</dd></dl>"
    assert product(f"<h1>Aurora Desk Lamp</h1>{listed}{script}")["brand"] == {"name": "Acme"}
    other = '<script>var page = {"name": "Aurora Desk Lamp", "brand": "Nordlys"}</script>'
    assert product(f"<h1>Aurora Desk Lamp</h1>{other}")["brand"] == {"name": "Nordlys"}


def test_a_brand_that_a_menu_links_is_found_in_the_heading() -> None:
    menu = '<nav><a href="/brand/NORD/">NORD</a><a href="/brand/NORD_LYS/"><img alt="NORD LYS" src="l.png"></a></nav>'
    assert product(f"{menu}<h1>Lampe NORD LYS Aurora</h1>")["brand"] == {"name": "NORD LYS"}
    assert "brand" not in product(f"{menu}<h1>Lampe Aurora</h1>")


def test_a_designer_is_the_brand_only_where_nothing_else_is() -> None:
    rows = "<tr><td>Designer</td><td>Ida Holm</td></tr><tr><td>Depth</td><td>4 cm</td></tr>"
    assert product(f"<h1>Aurora</h1><table>{rows}</table>")["brand"] == {"name": "Ida Holm"}
    script = '<script>x = {"name": "Aurora", "brand": "Nordlys"}</script>'
    assert product(f"<h1>Aurora</h1><table>{rows}</table>{script}")["brand"] == {"name": "Nordlys"}


@pytest.mark.parametrize(
    "body",
    [
        "<li><div>EAN / UPC</div><div>4006381333931</div></li>",
        "<p>EAN 4006381333931, white</p>",
        '<div class="product-ean">4006381333931</div>',
        '<div class="gtin" data-gtin="4006381333931"></div>',
        '<script>x = {"name": "Aurora Desk Lamp", "barcode": "4006381333931"}</script>',
        "<table><tr><td>Code-barres</td><td>4006381333931</td></tr></table>",
    ],
)
def test_a_global_number_is_found_by_its_label_name_or_script(body: str) -> None:
    item = product(f"<h1>Aurora Desk Lamp</h1>{body}")
    assert item["gtin"] == [{"type": "gtin13", "value": "4006381333931"}]
    assert "gtin" not in product(f"<h1>Aurora Desk Lamp</h1>{body.replace('3931', '3932')}")


def test_several_global_numbers_in_scripts_are_those_of_other_products() -> None:
    script = '<script>x = [{"barcode": "4006381333931"}, {"barcode": "9783161484100"}]</script>'
    assert "gtin" not in product(f"<h1>Aurora Desk Lamp</h1>{script}")


@pytest.mark.parametrize(
    "body",
    [
        "<p>Part number DL-7781</p>",
        "<tr><td>Mfr. Part #</td><td>DL-7781</td></tr>",
        "<li><div>Produktové číslo</div><div>DL-7781</div></li>",
        '<span class="product-mpn">DL-7781</span>',
        '<script>x = {"manufacturerPartNumber": "DL-7781"}</script>',
    ],
)
def test_a_manufacturers_number_is_found_by_its_label_name_or_script(body: str) -> None:
    body = f"<table>{body}</table>" if body.startswith("<tr>") else body
    assert product(f"<h1>Aurora Desk Lamp</h1><p>SKU: AUR-100</p>{body}")["mpn"] == "DL-7781"


def test_a_manufacturers_number_outside_of_structured_data_counts_where_the_page_shows_it() -> None:
    hidden = '<h1>Aurora Desk Lamp</h1><p>SKU: AUR-100</p><meta itemprop="mpn" content="DL-7781">'
    assert "mpn" not in product(hidden)
    assert product(f"{hidden}<p>Nordlys DL 7781, white</p>")["mpn"] == "DL-7781"


def test_a_manufacturers_number_of_structured_data_is_the_shops_where_the_page_shows_another_number_alone() -> None:
    thing = LAMP | {"mpn": "925872"}
    assert product("<h1>Aurora Desk Lamp</h1>", json_ld(thing))["mpn"] == "925872"
    assert "mpn" not in product("<h1>Aurora Desk Lamp</h1><p>Item AUR-100</p>", json_ld(thing))
    both = "<h1>Aurora Desk Lamp</h1><p>Item AUR-100, by Nordlys: 925872</p>"
    assert product(both, json_ld(thing))["mpn"] == "925872"


@pytest.mark.parametrize(
    "mpn",
    [
        "AUR-100",  # the shop's number
        "4006381333931",  # the global one
        "0004006381333931",
        "39280742531144",  # an identifier of a database
        "3f2b8a10-9c1d-4e5f-8a7b-0123456789ab",
        "Aurora Desk Lamp 2",  # a name
        "V-771200-2",  # the number of a variant
        "X881204",  # the number of the page with a letter before it
    ],
)
def test_a_number_of_the_shop_or_a_name_is_not_of_the_manufacturer(mpn: str) -> None:
    offers = [{"sku": "V-771200-1"}, {"sku": "V-771200-2"}]
    thing = LAMP | {"mpn": mpn, "productID": "881204", "offers": offers}
    assert "mpn" not in product(f"<h1>Aurora Desk Lamp 2</h1><p>Number: {mpn}</p>", json_ld(thing))


@pytest.mark.parametrize(
    ("label", "value", "mpn"),
    [
        ("Model", "Galaxy S10", None),
        ("Model", "Aurora2", None),
        ("Modèle", "Série 400", None),
        ("型号", "星光 200", None),
        ("Modelo", "110V/220V", None),
        ("Modelo", "350ML", None),
        ("Modell", "1200X600MM", None),
        ("Model", "16GB/512GB", None),
        ("Model", "A60.5700-BV00X", "A60.5700-BV00X"),
        ("Модель", "WW90T4040EE", "WW90T4040EE"),
        ("Item model number", "HMP 2000", "HMP 2000"),
        ("Manufacturer part number", "8856", "8856"),
        ("Herstellernummer", "0 601 9H1 100", "0 601 9H1 100"),
        ("제조사 부품 번호", "WW90T4040", "WW90T4040"),
        ("Артикул производителя", "06019H1100", "06019H1100"),
    ],
)
def test_a_model_counts_where_it_is_a_number(label: str, value: str, mpn: str | None) -> None:
    row = f"<table><tr><th>{label}</th><td>{value}</td></tr></table>"
    assert product(f"<h1>Aurora Desk Lamp</h1><p>SKU: AUR-100</p>{row}").get("mpn") == mpn


@pytest.mark.parametrize(
    "text", ["Vypredané", "Niet leverbaar", "Stokta yok", "This listing has ended", "Нет на складе"]
)
def test_goods_that_are_gone_are_known_in_several_languages(text: str) -> None:
    assert product(f'<h1>Lamp</h1><p class="availability">{text}</p><p>$5</p>')["availability"] == "OutOfStock"


def test_a_description_is_neither_an_order_form_nor_a_notice_on_cookies() -> None:
    form = f'<div class="product-info">{"Choose a size. " * 30}<select><option>35</option></select></div>'
    notice = f'<div class="cookie-box"><div class="description">{"We use cookies. " * 40}</div></div>'
    text = '<p class="lamp-description">A lamp for long evenings, with three levels of light.</p>'
    item = product(f"<h1>Lamp</h1>{form}{text}{notice}")
    assert item["description"] == "A lamp for long evenings, with three levels of light."


def test_a_rating_is_no_description() -> None:
    rating, text = "<p>4.5 out of 5 (1.2K reviews)</p>", "<p>Boils a litre in two minutes.</p>"
    item = product(f"<h1>Kettle</h1><p>£20.50</p>{rating}")
    assert "description" not in item
    assert item["aggregateRating"]["reviewCount"] == 1200
    assert product(f"<h1>Kettle</h1><p>£20.50</p>{rating}{text}")["description"] == "Boils a litre in two minutes."


def test_a_label_of_stars_by_the_heading_is_a_rating() -> None:
    def rated(html: str) -> Any:
        return product(f"<main><h1>Lamp</h1>{html}<p>$19.90</p></main>", "<title>Lamp</title>").get("aggregateRating")

    assert rated('<i aria-label="4.5 out of 5 stars"></i>') == {"ratingValue": 4.5, "bestRating": 5.0}
    assert rated('<i aria-label="Bewertung: 4,5 von 5"></i><i aria-label="Bewertung: 4,5 von 5"></i>') is not None
    for counted in ("Image 1 of 5", "Slide 3 / 10", "Start image 2 of 5", "Bild 2 von 5", "Page 1 of 10"):
        assert rated(f'<button aria-label="{counted}"></button>') is None, counted
    choice = "".join(f'<input type="radio" aria-label="{stars} of 5 stars">' for stars in range(1, 6))
    assert rated(choice) is None
    other = '<ul><li><a href="/p/other">Another lamp</a> <i aria-label="2.0 out of 5 stars"></i></li></ul>'
    assert rated(f"<h2>Similar</h2>{other}") is None
    own = '<ul><li><i aria-label="4.0 out of 5 stars"></i> <a href="#reviews">All reviews</a></li></ul>'
    assert rated(own) == {"ratingValue": 4.0, "bestRating": 5.0}


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u202f"])
def test_a_count_of_reviews_may_have_a_space_between_its_thousands(space: str) -> None:
    html = f'<h1>Lamp</h1><div class="rating">4,5 z 5 (1{space}234 hodnocení)</div>'
    rating = {"ratingValue": 4.5, "bestRating": 5.0, "reviewCount": 1234}
    assert product(html, "<title>Lamp</title>", lang="cs")["aggregateRating"] == rating


def test_a_variant_that_is_named_as_the_heading_stays_one_of_its_group() -> None:
    offer = {"price": "50", "priceCurrency": "EUR"}
    variants = [
        {"@type": "Product", "name": f"Trail Shoe {color}", "sku": color, "offers": offer} for color in ("Red", "Blue")
    ]
    group = {"@type": "ProductGroup", "name": "Trail Shoe", "description": "Light.", "hasVariant": variants}
    found = product("<h1>Trail Shoe Red</h1>", json_ld(group))
    assert (found["name"], found["description"], len(found["variants"])) == ("Trail Shoe", "Light.", 2)


def test_microdata_that_is_named_as_the_heading_yields_to_json_ld_of_the_same_product() -> None:
    body = """<h1>Desk Lamp</h1><div itemscope itemtype="https://schema.org/Product">
        <b itemprop="name">Desk Lamp</b><meta itemprop="price" content="59.90"></div>"""
    assert product(body, json_ld({**LAMP, "name": "Nordlys Desk Lamp, white"}))["sku"] == "AUR-100"


@pytest.mark.parametrize(
    ("source", "is_shown"),
    [
        ("/img/no-image.png", False),
        ("/img/no-image.png?v=2", False),
        ("/img/shop-placeholder-600x600.gif", False),
        ("/img/lamp.jpg?default=/img/no-image.png", True),
        ("/img/lamp.jpg?w=600&else=shop-no-image", True),
        ("/no-image/lamp.jpg", True),
    ],
)
def test_a_placeholder_is_no_image_and_may_stand_in_the_query_of_one(source: str, is_shown: bool) -> None:
    html = f'<h1>Lamp</h1><div class="product-gallery"><img src="{source}" width="600" height="600"></div>'
    assert ("mainImage" in product(html, "<title>Lamp</title>")) is is_shown


def test_a_long_address_of_an_image_takes_a_time_that_grows_with_its_length() -> None:
    """By the square of it, the time would be minutes."""
    html = f'<h1>Lamp</h1><div class="product-gallery"><img src="{"-no-image" * 100_000}x/a.jpg"></div>'
    assert product(html, "<title>Lamp</title>")["name"] == "Lamp"


ENTRIES = "".join(
    f"<div class=tile><a href=/lamps/{name}>{name}</a> <span class=price>€{price}</span></div>"
    for name, price in (("Borealis", "12.00"), ("Polaris", "15.00"), ("Solaris", "18.00"))
)


def test_prices_of_a_list_of_other_pages_are_not_the_price() -> None:
    assert "price" not in product(f"<h1>Aurora Desk Lamp</h1><p>Choose a colour.</p><section>{ENTRIES}</section>")


def test_the_price_among_variants_with_pages_of_their_own_is_that_of_this_page() -> None:
    own = "<div class=tile><a href=/lamps/aurora?ref=mail>Aurora</a> <span class=price>€14.00</span></div>"
    assert product(f"<h1>Aurora</h1><section>{own}{ENTRIES}</section>")["price"] == "14.00"


def test_a_price_of_markup_that_the_page_shows_as_the_price_too_stays() -> None:
    lamp = {**LAMP, "offers": {"@type": "Offer", "price": "79.00", "priceCurrency": "EUR"}}
    shown = "<p class=price><del>€79.00</del> €59.00</p>"
    assert product(f"<h1>Aurora Desk Lamp</h1>{shown}", json_ld(lamp))["price"] == "59.00"
    twice = f"{shown}<p>In green <span class=price>€79.00</span></p>"
    assert product(f"<h1>Aurora Desk Lamp</h1>{twice}", json_ld(lamp))["price"] == "79.00"


def test_a_number_under_a_label_with_several_values_is_the_first() -> None:
    item = product("<h1>Aurora Desk Lamp</h1><dl><dt>SKU</dt><dd>AUR-100</dd><dd>since 2019</dd></dl>")
    assert item["sku"] == "AUR-100"
    assert item["additionalProperties"] == [{"name": "SKU", "value": "AUR-100, since 2019"}]


@pytest.mark.parametrize(
    ("count", "found"),
    [
        ("1.2K reviews", 1200),
        ("3M ratings", 3_000_000),
        ("1.208 Bewertungen", 1208),
        # The sign is not of the last three digits alone.
        ("1.208K Bewertungen", 1208),
    ],
)
def test_a_count_of_reviews_may_be_rounded(count: str, found: int) -> None:
    item = product(f"<h1>Aurora Desk Lamp</h1><div class=rating>4.6 out of 5</div><a href=#reviews>({count})</a>")
    assert item["aggregateRating"]["reviewCount"] == found


def test_a_list_item_that_says_the_product_is_gone_is_no_option() -> None:
    gone = "<ul><li>Currently sold out</li><li>Free returns</li></ul>"
    assert product(f"<h1>Aurora Desk Lamp</h1><p class=price>€59.00</p>{gone}")["availability"] == "OutOfStock"


def test_the_offer_that_the_address_names_counts_even_if_it_is_of_a_used_thing_or_over() -> None:
    new = {"@type": "Offer", "sku": "N1", "price": "59.90", "priceCurrency": "EUR"}
    for other in ({"itemCondition": "https://schema.org/UsedCondition"}, {"priceValidUntil": "2020-01-01"}):
        offers = [new, {**new, "sku": "U1", "price": "31.50", **other}]
        head = json_ld({"@type": "Product", "@context": "https://schema.org", "name": "Lamp", "offers": offers})
        assert product("<h1>Lamp</h1>", head)["price"] == "59.90"
        assert product("<h1>Lamp</h1>", head, url="https://shop.example.com/lamp?sku=U1")["price"] == "31.50"


def test_a_price_without_tax_beside_the_one_with_it_does_not_make_this_one_net() -> None:
    specifications = [
        {"@type": "PriceSpecification", "price": price, "priceCurrency": "EUR", "valueAddedTaxIncluded": with_tax}
        for price, with_tax in (("120", True), ("100", False))
    ]
    offer = {"@type": "Offer", "priceSpecification": specifications}
    head = json_ld({"@type": "Product", "@context": "https://schema.org", "name": "Lamp", "offers": offer})
    assert product("<h1>Lamp</h1><p class=price>€125.00 for two</p>", head)["price"] == "120"


def test_a_label_with_its_value_in_a_list_is_no_option() -> None:
    for other in ("SKU - 123", "Delivery: 3 days"):
        gone = f"<ul><li class=stock>Availability - Sold out</li><li>{other}</li></ul>"
        assert product(f"<h1>Lamp</h1><p class=price>€59.00</p>{gone}")["availability"] == "OutOfStock"
    sizes = "<ul><li class=stock>36 - sold out</li><li>37</li></ul><button>Add to cart</button>"
    assert product(f"<h1>Lamp</h1><p class=price>€59.00</p>{sizes}")["availability"] == "InStock"


def test_thousands_of_options_that_are_sold_out_take_little_time() -> None:
    sizes = "".join(f"<li class=stock>Size {number} (sold out)</li>" for number in range(4000))
    begin = time.process_time()
    assert product(f"<h1>Lamp</h1><ul>{sizes}</ul>")["availability"] == "OutOfStock"
    assert time.process_time() - begin < 10


def test_of_members_and_others_the_price_is_that_of_the_others() -> None:
    prices = "<ul><li>Members: €8.00</li><li>Non-members: €10.00</li></ul>"
    assert product(f"<h1>Lamp</h1>{prices}")["price"] == "10.00"
    assert product("<h1>Lamp</h1><ul><li>Members: €8.00</li></ul>")["price"] == "8.00"


def test_an_image_of_noscript_that_counts_readers_is_none() -> None:
    page = "<div class=gallery><img><noscript><img src=/{}></noscript></div><h1>Lamp</h1>"
    assert product(page.format("lamp.jpg"))["mainImage"]["url"].endswith("/lamp.jpg")
    assert "mainImage" not in product(page.format("count.gif width=1 height=1"))


@pytest.mark.parametrize(
    ("text", "availability"),
    [
        ("Not available", "OutOfStock"),
        ("Currently out of stock", "OutOfStock"),
        ("Out of stock in Leeds, three in York", "InStock"),
        ("Not available in stores, online only", "InStock"),
    ],
)
def test_a_labelled_statement_about_a_part_leaves_the_decision_to_the_button(text: str, availability: str) -> None:
    html = f"<h1>Lamp</h1><p class=price>€59.00</p><dl><dt>Availability:</dt><dd>{text}</dd></dl>"
    assert product(html + "<button>Add to cart</button>")["availability"] == availability
    assert product(html)["availability"] == "OutOfStock"


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("4,9 (22 recensioner)", {"ratingValue": 4.9, "reviewCount": 22}),
        ("★4.5(31件)", {"ratingValue": 4.5, "reviewCount": 31}),
        ("4.7 ★ (12)", {"ratingValue": 4.7, "reviewCount": 12}),
        ("⭐ 4,6 | 23 Bewertungen", {"ratingValue": 4.6, "reviewCount": 23}),
        ("4,6 Sterne (1.204)", {"ratingValue": 4.6, "reviewCount": 1204}),
        ("5 में से 4.3 स्टार (218 समीक्षाएं)", {"ratingValue": 4.3, "bestRating": 5.0, "reviewCount": 218}),
        ("5 এর মধ্যে 4.5 (12টি রিভিউ)", {"ratingValue": 4.5, "bestRating": 5.0, "reviewCount": 12}),
        ("4.8 리뷰 1,203", {"ratingValue": 4.8, "reviewCount": 1203}),
        ("4.6/5 · 128 Bewertungen", {"ratingValue": 4.6, "bestRating": 5.0, "reviewCount": 128}),
        ("Ocena 4,8 na 5 (312 opinii)", {"ratingValue": 4.8, "bestRating": 5.0, "reviewCount": 312}),
        ("4.7 (12)", None),
        ("3 (12 reviews)", None),
        ("$4.99 (12 reviews)", None),
        ("Version 4.5 (12 reviews)", None),
        ("2.5 kg (12 reviews)", None),
        ("★★★★★", None),
    ],
)
@pytest.mark.parametrize("names", ['class="rating"', ""])
def test_a_rating_without_its_scale_has_decimals_or_stars_and_the_number_of_its_reviews(
    text: str, rating: Any, names: str
) -> None:
    html = f"<main><h1>Lamp</h1><p {names}>{text}</p><p class='price'>€19.90</p></main>"
    assert product(html, "<title>Lamp</title>").get("aggregateRating") == rating


def test_a_rating_in_boxes_side_by_side_that_link_away_is_of_other_products() -> None:
    box = '<div class="tile"><a href="/p/{0}">Lamp {0}</a> <span>4.{0} (12 reviews)</span></div>'
    html = f"<main><h1>Lamp</h1><p>€19.90</p><div>{box.format(1)}{box.format(2)}</div></main>"
    assert "aggregateRating" not in product(html, "<title>Lamp</title>")
    own = '<div class="facts"><p><span>4.8 (31 reviews)</span></p><p><a href="/brands/a">Aurora</a></p></div>'
    assert product(f"<main><h1>Lamp</h1>{own}<p>€19.90</p></main>")["aggregateRating"]["reviewCount"] == 31


def test_a_rating_in_the_entries_of_a_list_is_of_other_products() -> None:
    entry = '<div><a href="/p/{0}"><b>Lamp {0}</b></a> <span class="rating">★ 4.{0} (12)</span> <i>€5.00</i></div>'
    others = "".join(map(entry.format, range(1, 5)))
    html = f"<main><h1>Lamp</h1><p>€19.90</p><h2>You may like</h2><div>{others}</div></main>"
    assert "aggregateRating" not in product(html, "<title>Lamp</title>")


@pytest.mark.parametrize(
    "line", ["<p>Réf : LT-4021</p>", "<p><b>Réf :</b> LT-4021</p>", "<div>SKU: 44</div>", "EAN: 4006381333931<br>"]
)
def test_a_number_at_the_beginning_of_a_description_is_left_out(line: str) -> None:
    text = "A lamp for long evenings, with three levels of light."
    item = product(f'<h1>Lamp</h1><div class="description">{line}<p>{text}</p><p>Ref: 12</p></div>')
    assert item["description"] == f"{text}\n\nRef: 12"


@pytest.mark.parametrize(
    "choice",
    [
        "<div><button>S</button><button>M</button><button>L</button></div>",
        '<ul><li><a href="#">38</a></li><li><a href="#">39</a></li></ul>',
        '<div><button aria-label="Red"><i></i></button><button aria-label="Blue"><i></i></button></div>',
    ],
)
def test_a_disabled_button_behind_what_may_be_a_choice_decides_nothing(choice: str) -> None:
    order = '<button class="add-to-cart" disabled>Add to cart</button>'
    assert "availability" not in product(f"<main><h1>Shirt</h1><p>$20.00</p>{choice}{order}</main>")
    assert product(f"<main><h1>Shirt</h1><p>$20.00</p>{order}{choice}</main>")["availability"] == "OutOfStock"


@pytest.mark.parametrize(
    "beside",
    [
        "<div><button>-</button><input value=1><button>+</button></div>",
        '<div><button aria-label="Fewer"></button><input value=1><button aria-label="More"></button></div>',
        '<p><a href="/brands/a">Brand</a> <a href="/lamps">Lamps</a></p>',
        "<button>Share</button>",
    ],
)
def test_a_disabled_button_beside_other_controls_is_of_a_product_out_of_stock(beside: str) -> None:
    order = '<button class="add-to-cart" disabled>Add to cart</button>'
    html = f"<main><h1>Shirt</h1><div><p>$20.00</p>{beside}{order}</div></main>"
    assert product(html)["availability"] == "OutOfStock"


@pytest.mark.parametrize("own", ["<li>256 GB €299.00</li>", '<li class="on"><a href="/lamp">256 GB €299.00</a></li>'])
def test_the_price_is_that_of_the_variant_of_the_page_where_the_others_link_away(own: str) -> None:
    others = '<li><a href="/p/64">64 GB €199.00</a></li><li><a href="/p/128">128 GB €249.00</a></li>'
    html = f"<title>Phone</title><main><h1>Phone</h1><ul>{others}{own}</ul></main>"
    assert extract("product", html, "https://shop.example/lamp")["price"] == "299.00"
    html = f"<title>Phone</title><main><h1>Phone</h1><ul>{others}</ul></main>"
    assert "price" not in extract("product", html.replace("</ul>", f"{others}</ul>"), "https://shop.example/lamp")


def test_of_several_prices_with_tax_that_beside_the_price_without_is_its_own() -> None:
    prices = '<p class="price">£100.00 ex. VAT</p><p>£120.00 inc. VAT</p><p>£114.00 inc. VAT</p>'
    assert product(f"<main><h1>Drill</h1>{prices}</main>")["price"] == "120.00"


def test_a_price_named_mrp_is_the_former_one() -> None:
    html = '<main><h1>Phone</h1><p class="price">₹1,29,900</p><p class="mrp">₹1,49,900</p></main>'
    item = product(html, lang="en-IN")
    assert (item["price"], item["regularPrice"]) == ("129900", "149900")


def test_a_price_in_a_tab_that_is_not_chosen_counts_and_one_of_an_option_does_not() -> None:
    def price(chosen: str, other: str) -> str | None:
        boxes = (
            f'<div><input type="radio" name="t" checked><label>One</label>{chosen}</div>',
            f'<div><input type="radio" name="t"><label>Two</label>{other}</div>',
        )
        return product(f"<main><h1>Lamp</h1><div>{''.join(boxes)}</div></main>").get("price")

    order = '<p class="price">€30.00</p><button>Add to cart</button>'
    assert price("<p>A lamp for long evenings.</p>", order) == "30.00"
    assert price("<p>Pick up</p>", '<span class="price">€4.90</span>') is None
    assert price('<p class="price">€32.00</p><button>Add to cart</button>', order) == "32.00"
