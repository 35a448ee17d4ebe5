"""Lists of products and navigation among them, on pages of several shapes without structured data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/lamps"
NAMES = ["Desk lamp", "Floor lamp", "Wall lamp", "Bedside lamp", "Garden lamp", "Reading lamp"]
FRAME = """<title>Lamps | Shop</title><header><a href=/>Shop</a><nav><ul>
<li><a href=/chairs>Chairs</a></li><li><a href=/tables>Tables</a></li></ul></nav></header>
<main><h1>Lamps</h1>{}</main>
<div class=recently-viewed><div class=card><a href=/p/90>Old chair</a><b>$9.00</b></div>
<div class=card><a href=/p/91>Old table</a><b>$8.00</b></div></div>
<footer><ul><li><a href=/about>About us</a></li><li><a href=/terms>Terms</a></li></ul></footer>"""


def entries(pattern: str) -> str:
    return "".join(pattern.format(n=n, name=name, price=f"${10 + n}.50") for n, name in enumerate(NAMES))


def in_rows(pattern: str) -> str:
    return "".join(
        "<div class=row>" + "".join(pattern.format(n=n, name=NAMES[n], price=f"${10 + n}.50") for n in pair) + "</div>"
        for pair in ((0, 1), (2, 3), (4, 5))
    )


LINKED = "<a href=/p/{n}>{name}</a>"
SHAPES = {
    "a grid of boxes": entries(
        f"<div class=product><a href=/p/{{n}}><img src=/{{n}}.jpg></a>{LINKED}<b>{{price}}</b></div>"
    ),
    "items of a list": f"<ul>{entries(f'<li><h2>{LINKED}</h2><img src=/{{n}}.jpg><p>{{price}}</p></li>')}</ul>",
    "rows of a table": "<table>{}</table>".format(
        entries(f"<tr><td><img src=/{{n}}.jpg></td><td>{LINKED}</td><td>{{price}}</td><td>Add to cart</td></tr>")
    ),
    "a link around each": entries(
        "<a class=card href=/p/{n}><img src=/{n}.jpg><h3>{name}</h3><span>{price}</span></a>"
    ),
    "boxes in rows": in_rows(
        f"<div class=col><div><img src=/{{n}}.jpg><p class=title>{LINKED}</p><i class=price>{{price}}</i></div></div>"
    ),
    "boxes with other links": entries(
        f"<article><img src=/{{n}}.jpg><a href=/brands/acme>Acme</a> {LINKED}<i>{{price}}</i>"
        "<a href=/p/{n}#reviews>12 reviews</a> <a href=/wishlist/{n}>Add to wishlist</a></article>"
    ),
    "boxes of two names": "".join(
        f"<div class='{'odd' if n % 2 else 'even'} tile'>"
        f"<a href=/p/{n}>{name}</a><img src=/{n}.jpg><b>${10 + n}.50</b></div>"
        for n, name in enumerate(NAMES)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_found_whatever_the_shape_of_the_list(shape: str) -> None:
    item = extract("productList", FRAME.format(SHAPES[shape]), URL)
    assert [product["name"] for product in item["products"]] == NAMES
    assert [product["url"] for product in item["products"]] == [f"https://shop.example/p/{n}" for n in range(6)]
    assert [product["price"] for product in item["products"]] == [f"{10 + n}.50" for n in range(6)]
    assert {product["currency"] for product in item["products"]} == {"USD"}
    assert [product["mainImage"]["url"] for product in item["products"]] == [
        f"https://shop.example/{n}.jpg" for n in range(6)
    ]
    assert all(0.5 < product["metadata"]["probability"] < 0.98 for product in item["products"])
    assert item["categoryName"] == "Lamps"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_links_of_the_navigation_are_those_of_the_list(shape: str) -> None:
    item = extract("productNavigation", FRAME.format(SHAPES[shape]), URL)
    assert [(link["name"], link["url"]) for link in item["items"]] == [
        (name, f"https://shop.example/p/{n}") for n, name in enumerate(NAMES)
    ]


def only(html: str, count: int = 3) -> dict[str, Any]:
    """The first product of a list of a few."""
    entry = "".join(f"<li class=product><h3><a href=/p/{n}>Lamp {n}</a></h3>{html}</li>" for n in range(count))
    product: dict[str, Any] = extract("productList", f"<main><h1>Lamps</h1><ul>{entry}</ul></main>", URL)["products"][0]
    return product


@pytest.mark.parametrize(
    ("html", "price", "regular"),
    [
        ("<del>$30.00</del> <b>$20.00</b>", "20.00", "30.00"),
        ("<span class=price>$20.00</span> <span class=old-price>$30.00</span>", "20.00", "30.00"),
        ("<span class=comp-value-price>$30.00</span><span>$20.00</span>", "20.00", "30.00"),
        ("<ul><li class=price-current>$<strong>20</strong><sup>.99</sup></li></ul>", "20.99", None),
        ("<span class=price-original>$20.00</span>", "20.00", None),
        ("<b>$20.00</b><div class=subscription-price>$17.00</div>", "20.00", None),
        (f"<b>{' ' * 200}20,00&nbsp;€</b>", "20.00", None),
    ],
)
def test_the_price_of_an_entry_is_that_to_be_paid(html: str, price: str, regular: str | None) -> None:
    product = only(html)
    assert (product["price"], product.get("regularPrice")) == (price, regular)


def test_digits_that_no_sign_makes_a_price_are_left_out() -> None:
    entry = "<li class=product><a href=/product/{n}><img src=/{n}.jpg>{name}</a><span class=size>40</span></li>"
    products = extract("productList", FRAME.format(f"<ul>{entries(entry)}</ul>"), URL)["products"]
    assert len(products) == 6
    assert not any("price" in product for product in products)


def test_an_image_of_many_products_is_of_none() -> None:
    assert "mainImage" not in only("<img src=/soon.jpg><b>$5.00</b>")


def test_markup_adds_what_the_entries_do_not_show() -> None:
    things = [
        {
            "@type": "Product",
            "url": f"/p/{n}",
            "name": f"Lamp {n}",
            "offers": {"price": f"{n}.25", "priceCurrency": "EUR"},
        }
        for n in range(4)
    ]
    script = f'<script type="application/ld+json">{json.dumps(things)}</script>'
    entry = "".join(f"<li><a href=/p/{n}>Lamp {n}</a></li>" for n in range(4))
    item = extract("productList", f"{script}<main><h1>Lamps</h1><ul>{entry}</ul></main>", URL)
    assert [(product["price"], product["currency"]) for product in item["products"][1:]] == [
        (f"{n}.25", "EUR") for n in range(1, 4)
    ]


def test_markup_stands_in_for_a_list_that_a_script_is_yet_to_make() -> None:
    elements = [
        {"@type": "ListItem", "position": n, "item": {"@type": "Product", "url": f"/p/{n}", "name": f"Lamp {n}"}}
        for n in range(1, 5)
    ]
    script = (
        f'<script type="application/ld+json">{json.dumps({"@type": "ItemList", "itemListElement": elements})}</script>'
    )
    for kind, member in (("productList", "products"), ("productNavigation", "items")):
        found = extract(kind, f"{script}<div id=app></div>", URL)[member]
        assert [(product["name"], product["url"]) for product in found] == [
            (f"Lamp {n}", f"https://shop.example/p/{n}") for n in range(1, 5)
        ]
        assert all(0.5 < product["metadata"]["probability"] < 0.9 for product in found)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>There are no lamps.</p>",
        "<ul><li><a href=/a>About lamps</a></li><li><a href=/b>About chairs</a></li></ul>",
        "<article><h2><a href=/a>A story about lamps in the north</a></h2><time>3 May 2024</time></article>" * 3,
        "<p><a href=/lamps/red><img src=/r.jpg>Red (4)</a> <a href=/lamps/blue><img src=/b.jpg>Blue (5)</a></p>",
    ],
)
def test_what_is_no_list_of_products_is_left_out(html: str) -> None:
    assert "products" not in extract("productList", FRAME.format(html), URL)
    assert "items" not in extract("productNavigation", FRAME.format(html), URL)


def test_sub_categories_are_the_links_one_step_below_the_page() -> None:
    links = "<ul><li><a href=/lamps/desk>Desk lamps (12)</a></li><li><a href=/lamps/floor>Floor lamps</a></li>"
    links += "<li><a href=/lamps/page/2>2</a></li><li><a href=/chairs/desk>Desk chairs</a></li></ul>"
    item = extract("productNavigation", FRAME.format(links + SHAPES["a grid of boxes"]), URL)
    assert [(link["name"], link["url"]) for link in item["subCategories"]] == [
        ("Desk lamps", "https://shop.example/lamps/desk"),
        ("Floor lamps", "https://shop.example/lamps/floor"),
    ]
    assert len(item["items"]) == 6


def test_products_that_lie_under_the_page_are_no_sub_categories() -> None:
    html = FRAME.format(SHAPES["items of a list"]).replace("/p/", "/lamps/lamp-")
    html = html.replace("</main>", "<a href=/lamps/lamp-x>Lamp X</a><a href=/lamps/lamp-y>Lamp Y</a></main>")
    assert "subCategories" not in extract("productNavigation", html, URL)


def test_the_next_page_and_the_number_of_this_one_are_returned() -> None:
    pages = "<div class=pagination><b>1</b><a href='?page=2'>2</a><a href='?page=2'>Next</a></div>"
    html = FRAME.format(SHAPES["a grid of boxes"] + pages)
    listed, navigation = extract("productList", html, URL), extract("productNavigation", html, URL)
    assert listed["paginationNext"] == {"url": f"{URL}?page=2", "text": "Next"}
    assert navigation["nextPage"]["url"] == f"{URL}?page=2"
    assert listed["pageNumber"] == navigation["pageNumber"] == 1


@pytest.mark.parametrize(
    "picture",
    [
        "<picture><source data-srcset='/{n}.webp 2x'><img src=/img/placeholder.svg></picture>",
        "<figure style='background-image: url(/{n}.jpg)'></figure>",
        "<img src=/{n}.jpg srcset='data:image/svg+xml;utf8,'>",
    ],
)
def test_the_picture_of_an_entry_is_found_wherever_it_is_kept(picture: str) -> None:
    html = entries(f"<li class=product>{picture}<a href=/p/{{n}}>{{name}}</a><b>{{price}}</b></li>")
    products = extract("productList", FRAME.format(f"<ul>{html}</ul>"), URL)["products"]
    assert [product["mainImage"]["url"].partition(".")[2] for product in products] == [
        f"example/{n}.{'webp' if 'webp' in picture else 'jpg'}" for n in range(6)
    ]


def test_a_sign_before_a_name_is_no_part_of_it() -> None:
    html = entries("<li class=product><h3><a href=/p/{n}><span>New listing</span> {name}</a></h3><b>{price}</b></li>")
    products = extract("productList", FRAME.format(f"<ul>{html}</ul>"), URL)["products"]
    assert [product["name"] for product in products] == NAMES


def listed(body: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = extract("productList", FRAME.format(body), URL).get("products", [])
    return found


BOX = (
    "<li class=product><a href=/p/lamp-{n}00><img src=/{n}.jpg></a>"
    "<h3><a href=/p/lamp-{n}00>{name}</a></h3>{price}</li>"
)


def test_banners_between_products_are_left_out() -> None:
    acme = "<a href=/brands/acme>{}</a>"
    banner = f"<li class=product>{acme.format('<img src=/acme.jpg>')}<h3>{acme.format('All of Acme')}</h3></li>"
    boxes = entries(BOX)
    middle = boxes.index("<li", len(boxes) // 2)
    names = [product["name"] for product in listed(f"<ul>{boxes[:middle]}{banner}{boxes[middle:]}</ul>")]
    assert names == NAMES
    navigation = extract("productNavigation", FRAME.format(f"<ul>{banner}{boxes}</ul>"), URL)
    assert [item["name"] for item in navigation["items"]] == NAMES


def test_a_product_without_a_price_is_no_banner() -> None:
    sold_out = BOX.format(n=9, name="Sold out lamp", price="")
    assert [product["name"] for product in listed(f"<ul>{entries(BOX)}{sold_out}</ul>")] == [*NAMES, "Sold out lamp"]


@pytest.mark.parametrize("url", ["/p/lamp-wide", "/lamp-wide-2", "/p/old/lamp-wide"])
def test_a_product_that_is_sold_out_is_no_banner_whatever_its_url(url: str) -> None:
    box = BOX.replace("{price}", "<span class=price>{price}</span>")
    sold_out = (
        f"<li class=product><a href={url}><img src=/9.jpg></a><h3><a href={url}>Wide lamp</a></h3><i>Sold out</i></li>"
    )
    assert [product["name"] for product in listed(f"<ul>{entries(box)}{sold_out}</ul>")] == [*NAMES, "Wide lamp"]


def test_an_image_that_entries_share_is_a_badge_before_their_own() -> None:
    boxes = entries(BOX.replace("<img ", "<img src=/sale-badge.png><img "))
    images = [product["mainImage"]["url"] for product in listed(f"<ul>{boxes}</ul>")]
    assert images == [f"https://shop.example/{n}.jpg" for n in range(len(NAMES))]


def test_the_products_of_sections_are_the_list_rather_than_the_sections() -> None:
    deal = "<figure class=deal><a href=/deals/{n}00><img src=/{n}.jpg><b>{name}</b></a><i>{price}</i></figure>"
    cut = [entries(deal).split("</figure>")[pair : pair + 2] for pair in (0, 2, 4)]
    sections = "".join(
        f"<section class=pack><h2><a href=/browse/{n}>Deals of the {n}</a></h2>"
        f"{'</figure>'.join(pair)}</figure></section>"
        for n, pair in zip(("day", "week", "month"), cut, strict=True)
    )
    lone = f"<section class=pack>{deal.format(n=7, name='Lone lamp', price='$17.50')}</section>"
    assert [product["name"] for product in listed(sections + lone)] == [*NAMES, "Lone lamp"]


def test_a_name_may_be_a_model_number_where_an_element_is_named_as_one() -> None:
    boxes = "".join(
        f"<li class=item><a href=/p/{n}><img src=/{n}.jpg></a><a class=name href=/p/{n}>0996-4{n}</a>"
        f"<b>${n}9.00</b></li>"
        for n in range(1, 5)
    )
    assert [product["name"] for product in listed(f"<ul>{boxes}</ul>")] == [f"0996-4{n}" for n in range(1, 5)]


def test_a_price_with_cents_needs_no_currency_in_an_element_named_so() -> None:
    boxes = entries(BOX.replace("{price}", "<div class=product-price>1{n}9,<span class=decimal>90</span></div>"))
    assert [product["price"] for product in listed(f"<ul>{boxes}</ul>")] == [f"1{n}9.90" for n in range(len(NAMES))]


def test_variants_of_a_few_products_with_the_same_names_are_a_list() -> None:
    names = ["Desk lamp"] * 5 + ["Floor lamp"] * 3
    boxes = "".join(
        f"<li class=item><a href=/p/lamp-c{n}><img src=/c{n}.jpg></a><a href=/p/lamp-c{n}>{name}</a><b>$19.{n}0</b>"
        f"<a href=/basket/add/{n}>Ajouter au panier</a></li>"
        for n, name in enumerate(names, start=1)
    )
    assert [(product["name"], product["url"]) for product in listed(f"<ul>{boxes}</ul>")] == [
        (name, f"https://shop.example/p/lamp-c{n}") for n, name in enumerate(names, start=1)
    ]


def test_buttons_with_one_text_are_no_list() -> None:
    boxes = entries(
        "<li class=product><a href=/p/{n}>zum Angebot</a><img src=/{n}.jpg><i>{price}</i></li>",
    )
    assert listed(f"<ul>{boxes}</ul>") == []


def test_a_formula_is_no_price() -> None:
    tex = '<math><semantics><mn>1</mn><annotation encoding="application/x-tex">100</annotation></semantics></math>'
    boxes = entries(BOX).replace("$12.50", f"<span class=price>{tex}</span>")
    found = {product["name"]: product.get("price") for product in listed(f"<ul>{boxes}</ul>")}
    assert found == {name: None if n == 2 else f"{10 + n}.50" for n, name in enumerate(NAMES)}


@pytest.mark.parametrize("dots", ["...", " ...", "…", " …"])
@pytest.mark.parametrize(
    "pattern",
    [
        "<h3><a href=/p/{n} title='{name}, oak'>{cut}</a></h3><img src=/{n}.jpg><b>${n}.50</b>",
        "<img src=/{n}.jpg alt='{name}, oak'><h3><a href=/p/{n}>{cut}</a></h3><b>${n}.50</b>",
    ],
)
def test_a_name_that_the_page_cuts_is_whole_where_a_title_or_a_picture_has_it(pattern: str, dots: str) -> None:
    boxes = (pattern.format(n=n, name=name, cut=name[:-2] + dots) for n, name in enumerate(NAMES, 1))
    html = FRAME.format("".join(f"<div class=product>{box}</div>" for box in boxes))
    assert [each["name"] for each in extract("productList", html, URL)["products"]] == [
        f"{name}, oak" for name in NAMES
    ]


def test_a_name_with_dots_stays_where_nothing_continues_it() -> None:
    box = "<h3><a href=/p/{n} title='Lamp no. {n}'>{name}...</a></h3><img src=/{n}.jpg alt='{name}…'><b>${n}.50</b>"
    boxes = (box.format(n=n, name=name) for n, name in enumerate(NAMES, 1))
    html = FRAME.format("".join(f"<div class=product>{box}</div>" for box in boxes))
    assert [each["name"] for each in extract("productList", html, URL)["products"]] == [f"{name}..." for name in NAMES]


@pytest.mark.parametrize("button", ["View details", "Tovább az oldalra"])
@pytest.mark.parametrize(
    "card",
    [
        "<div class=card><h3>{}</h3><p>£{}</p>@</div>",
        "<div class=card><div>{}</div><div>£{}</div><div>@</div></div>",
        "<table><tr><td>{}</td><td>£{}</td><td>@</td></tr></table>",
    ],
)
def test_products_whose_links_share_one_text_are_named_by_their_other_texts(card: str, button: str) -> None:
    names = ["Blue mug", "Red bowl", "Green plate", "Tall jug"]
    cards = [
        card.format(name, f"{number}.50").replace("@", f"<a href=/p/{number}>{button}</a>")
        for number, name in enumerate(names, 1)
    ]
    html = f"<html lang=en><title>Clay</title><main><h1>Clay</h1>{''.join(cards)}</main>"
    html = html.replace("</table><table>", "")
    assert [item["name"] for item in extract("productNavigation", html, "https://shop.example/clay")["items"]] == names


@pytest.mark.parametrize(
    "card",
    [
        "<div class=card><h3><a href=/p/{0}>Blue mug</a></h3><p>{1}</p><b>£{0}.50</b></div>",
        "<div class=card><p>{1}</p><h3><a href=/p/{0}>Blue mug</a></h3><b>£{0}.50</b></div>",
        "<li><a href=/p/{0}>Blue mug</a> <span>{1}</span> <b>£{0}.50</b></li>",
    ],
)
def test_a_name_that_all_products_share_is_no_button(card: str) -> None:
    states = ["Good", "Fair", "Mint", "Used"]
    cards = "".join(card.format(number, state) for number, state in enumerate(states, 1))
    html = f"<html lang=en><title>Mugs</title><main><h1>Mugs</h1>{cards}</main>"
    names = {each.get("name") for each in extract("productList", html, "https://shop.example/mugs").get("products", ())}
    assert names.isdisjoint(states)


@pytest.mark.parametrize("badge", ["best-seller", "bestselling", "top-seller"])
def test_a_product_that_sells_best_is_in_the_list(badge: str) -> None:
    cards = "".join(
        f"<li class='card {badge * (number == 2)}'><a href=/p/{number}><img src=/{number}.jpg>Mug {'abcd'[number]}</a>"
        f" <b class=price>£{number + 1}.50</b></li>"
        for number in range(4)
    )
    html = f"<html lang=en><title>Mugs</title><main><h1>Mugs</h1><ul>{cards}</ul></main>"
    assert len(extract("productList", html, "https://shop.example/mugs")["products"]) == 4


def seen(heading: str, n: int = 90, name: str = "Old lamp", between: str = "") -> str:
    box = BOX.format(n=n, name=name, price="<b>$7.00</b>")
    return f"<section><h2>{heading}</h2>{between}<ul>{box}</ul></section>"


BOXES = f"<section><h2>All lamps</h2><ul>{entries(BOX.replace('{price}', '<b>{price}</b>'))}</ul></section>"


@pytest.mark.parametrize("heading", ["Recently viewed", "Recommended for you", "Related to items you viewed"])
def test_products_below_a_heading_of_suggestions_are_not_of_the_list(heading: str) -> None:
    assert [product["name"] for product in listed(seen(heading) + BOXES)] == NAMES


def test_a_product_of_the_list_that_was_seen_before_is_kept() -> None:
    assert sorted(product["name"] for product in listed(seen("Recently viewed", 1, NAMES[1]) + BOXES)) == sorted(NAMES)


@pytest.mark.parametrize(
    "heading",
    [
        "Inspired by Japan",
        "New from our brands",
        "Sorted by: Recommended",
        "Results based on your search",
        "Akciós ajánlatok",
        "Προστέθηκαν πρόσφατα",
    ],
)
def test_products_below_another_heading_are_of_the_list(heading: str) -> None:
    assert [product["name"] for product in listed(seen(heading) + BOXES)] == ["Old lamp", *NAMES]


def test_a_heading_of_a_filter_does_not_stand_over_the_products_behind_it() -> None:
    values = "".join(f"<p><a href=?for={name}>{name}</a></p>" for name in ("Kitchens", "Offices", "Gardens"))
    assert [product["name"] for product in listed(seen("Recommended for", between=values) + BOXES)] == [
        "Old lamp",
        *NAMES,
    ]


@pytest.mark.parametrize("tag", ["div class=strip__title", "p class=section-title", "span class=heading"])
def test_a_line_that_is_named_as_a_heading_stands_over_products_seen_before(tag: str) -> None:
    line = f"<{tag}>{{}}</{tag.partition(' ')[0]}>"
    above = (
        f"<div>{line.format('Recently viewed')}<ul>{BOX.format(n=9, name='Old lamp', price='<b>$7.00</b>')}</ul></div>"
    )
    below = f"<div>{line.format('All lamps')}<ul>{entries(BOX.replace('{price}', '<b>{price}</b>'))}</ul></div>"
    assert [product["name"] for product in listed(above + below)] == NAMES


@pytest.mark.parametrize(
    "line",
    [
        "No products found.",
        "No products were found matching your selection.",
        "0 results",
        "Es wurden keine Artikel gefunden",
        "Aucun produit trouvé",
        "Ничего не найдено",
    ],
)
def test_suggestions_on_a_page_that_finds_nothing_are_no_list(line: str) -> None:
    suggested = BOXES.replace("All lamps", "You may also like")
    assert listed(f"<p>{line}</p>{suggested}") == []
    assert len(listed(suggested)) == len(NAMES)


def test_an_advertisement_between_products_leads_to_another_site() -> None:
    boxes = entries(BOX.replace("{price}", "<b>{price}</b>"))
    other = BOX.format(n=9, name="Insure your lamps", price="<b>$3.99</b>").replace(
        "/p/lamp", "https://ads.example/p/lamp"
    )
    labelled = BOX.format(n=8, name="Save for lamps", price="<i>Sponsored</i><b>$2.99</b>").replace("/p/", "/bank/of/")
    own = BOX.format(n=7, name="Sponsored lamp", price="<i>Sponsored</i><b>$2.99</b>")
    assert [product["name"] for product in listed(f"<ul>{other}{boxes}{labelled}{own}</ul>")] == [
        *NAMES,
        "Sponsored lamp",
    ]


@pytest.mark.parametrize("state", ["with-list-price", "has-old-price"])
def test_a_price_with_a_former_one_in_it_is_the_price(state: str) -> None:
    html = (
        "<p class=price-unit>0.5 kg <span class=price-unit-reference>(45,00 € / 1 kg)</span></p>"
        f"<span class='product-price {state}'>9,90 €<span class=list-price><span class=list-price-price>12,90 €</span>"
        "<span class=list-price-percentage>(23% off)</span></span></span>"
    )
    product = only(html)
    assert (product["price"], product["regularPrice"]) == ("9.90", "12.90")


def test_a_badge_in_a_link_of_its_own_is_no_name() -> None:
    boxes = entries(
        "<li class=product><a href=/p/{n}><img src=/{n}.jpg></a><a href=/p/{n}><span class=ico>outlet</span></a>"
        "<a href=/p/{n}><h2 class=product-card-name>{name}</h2></a><b>{price}</b></li>"
    )
    plain = entries(
        "<li class=product><a href=/q/{n}><img src=/q{n}.jpg></a><a href=/q/{n}><span class=ico></span></a>"
        "<a href=/q/{n}><h2 class=product-card-name>{name} XL</h2></a><b>{price}</b></li>"
    )
    names = [product["name"] for product in listed(f"<ul>{boxes[: boxes.index('</li>') + 5]}{plain}</ul>")]
    assert names == [NAMES[0], *(f"{name} XL" for name in NAMES)]


@pytest.mark.parametrize(
    "heading",
    [
        "<span class=visually-hidden>Collection: </span>Lamps",
        "Category: <span>Lamps</span>",
        "Kategorie: Lamps",
        "Lamps (12)",
    ],
)
def test_the_word_before_the_name_of_a_category_is_no_part_of_it(heading: str) -> None:
    html = FRAME.format(SHAPES["a grid of boxes"]).replace("<h1>Lamps</h1>", f"<h1>{heading}</h1>")
    assert extract("productNavigation", html, URL)["categoryName"] == "Lamps"
