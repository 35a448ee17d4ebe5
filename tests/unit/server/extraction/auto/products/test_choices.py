"""Variants of a product by its only choice of a size or a colour."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/oak-chair"
FRAME = """<html lang=en><title>Oak chair – Works</title><header><a href=/>Works</a></header><main>
<h1>Oak chair</h1><p class=price>€ 89,00</p>{}<button>Add to cart</button></main>"""


def variants(more: str) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] | None = extract("product", FRAME.format(more), URL).get("variants")
    return found


def choice(label: str, *options: str, name: str = "option", number: str = "n1") -> str:
    entries = "".join(option if option.startswith("<") else f"<option>{option}</option>" for option in options)
    return f'<label for={number}>{label}</label><select id={number} name="{name}">{entries}</select>'


def radio(legend: str, *labels: str) -> str:
    buttons = "".join(f"<label><input type=radio name=o value={at}>{label}</label>" for at, label in enumerate(labels))
    return f"<fieldset><legend>{legend}</legend>{buttons}</fieldset>"


OPTIONS = "<option>S</option><option>M</option>"
EMPTY = "<option value=''>{}</option>"


@pytest.mark.parametrize(
    "more",
    [
        choice("Size", "S", "M"),
        choice("Size", EMPTY.format("Choose a size"), "S", "M"),
        choice("Select your size", "S", "M"),
        choice("Größe", "<option>Bitte wählen</option>", "S", "M"),
        choice("Taille :", EMPTY.format("Choisissez"), "S", "M"),
        choice("Rozmiar", EMPTY.format("-- wybierz --"), "S", "M"),
        choice("サイズ", "<option>選択してください</option>", "S", "M"),
        choice("Size", "S", "M (+€10.00)"),
        choice("Size", "S - from €89.00", "M - from €99.00"),
        f"<label>Size <select name=o>{OPTIONS}</select></label>",
        f"<select name=o aria-label=Size>{OPTIONS}</select>",
        f"<select name=o>{EMPTY.format('Size')}{OPTIONS}</select>",
        f"<div>Size: <select name=o>{OPTIONS}</select></div>",
        f"<table class=variations><tr><th>Size</th><td><select name=o>{OPTIONS}</select></td></tr></table>",
        radio("Size", "S", "M"),
        radio("Size: M", "S", "M"),
        radio("Size", "<b class=hidden>S</b><i>S</i>", "<b class=hidden>M</b><i>M</i>"),
        choice("Size", "S - see our table", "M - see our table"),
        radio("Size", *(f"{each}<span>Variant sold out or unavailable</span>" for each in "SM")),
        "<div role=radiogroup aria-label=Size><button role=radio>S</button><button role=radio>M</button></div>",
        "<b id=l>Size</b><p>EU</p><div role=radiogroup aria-labelledby=l><i role=radio>S</i><i role=radio>M</i></div>",
        choice("Size", "S", "M") + choice("Size", "S", "M", number="n2"),
        f"<h3>125 reviews</h3>{choice('Size', 'S', 'M')}",
        f"<h3>Size</h3><select name=o>{OPTIONS}</select>",
        f"<aside>{choice('Size', 'S', 'M')}<button>Add to bag</button></aside>",
        f"{choice('Size', 'S', 'M')}<h2>You may also like</h2><div>{choice('Size', 'L', 'XL', name='x')}</div>",
        "<p>Size</p><div><input type=radio name=o id=a><label for=a>S</label></div>"
        "<div><input type=radio name=o id=b><label for=b>M</label></div>",
    ],
)
def test_the_options_of_the_only_choice_of_a_size_are_variants(more: str) -> None:
    assert variants(more) == [{"size": "S"}, {"size": "M"}]


@pytest.mark.parametrize("label", ["Colour", "Choose a colour", "Farbe", "Coloris", "Barva", "Цвет", "颜色"])
def test_those_of_a_colour_are_variants_too(label: str) -> None:
    assert variants(choice(label, "Black", "White")) == [{"color": "Black"}, {"color": "White"}]
    assert variants(radio(label, "Black", "White")) == [{"color": "Black"}, {"color": "White"}]
    assert variants(choice(label, "All Black", "All White")) == [{"color": "All Black"}, {"color": "All White"}]


@pytest.mark.parametrize("note", ["M (sold out)", "M - Sold out", "M, sold out", "M [ausverkauft]"])
def test_an_option_that_is_sold_out_is_so_as_a_variant(note: str) -> None:
    assert variants(choice("Size", "S", note)) == [{"size": "S"}, {"size": "M", "availability": "OutOfStock"}]


def test_the_price_of_an_option_is_that_of_the_variant() -> None:
    right = [
        {"size": "30 ml", "price": "20.00", "currency": "EUR", "currencyRaw": "€"},
        {"size": "50 ml", "price": "30.00", "currency": "EUR", "currencyRaw": "€"},
    ]
    assert variants(choice("Size", "30 ml - €20.00", "50 ml - €30.00")) == right
    assert variants(choice("Size", "30 ml (€20.00)", "50 ml (€30.00)")) == right
    assert variants(radio("Size", "<b>30 ml</b><i>€20.00</i>", "<b>50 ml</b><i>€30.00</i>")) == right


@pytest.mark.parametrize("names", [("36 - 38", "40 - 42"), ("S (36)", "M (38)"), ("120 x 60", "140 x 70")])
def test_signs_in_the_name_of_an_option_stay(names: tuple[str, str]) -> None:
    assert variants(choice("Size", *names)) == [{"size": name} for name in names]


@pytest.mark.parametrize(
    "more",
    [
        choice("Quantity", "1", "2", "3"),
        choice("Pack size", "1", "2"),
        choice("Size unit", "EU", "UK"),
        choice("Thread colour", "Red", "Blue"),
        choice("Size", "M"),
        choice("Size", "S", "S"),
        choice("Size", "S €89.00", "M €99.00"),
        choice("Size", "S", "M") + choice("Colour", "Black", "White", number="n2"),
        choice("Size", "S", "M", name="top") + choice("Size", "S", "M", name="bottom", number="n2"),
        choice(
            "Size", "<optgroup label=EU><option>36<option>37</optgroup><optgroup label=UK><option>3<option>4</optgroup>"
        ),
        choice("Clothing size", "S", "M"),
        radio("Your rating", "1", "2"),
        radio("Size", "S", "M <a href=#>coming soon</a>"),
        radio("Size", "S", "M <i>M - We will let you know when it is back in stock</i>"),
        radio("Colour", "<img src=/1.png>", "<img src=/2.png>"),
        f"<div class=related-products><h2>You may also like</h2>{choice('Size', 'S', 'M')}</div>",
        f"<div class=filters>{choice('Size', 'S', 'M')}</div>",
        f"<div class=size-chart>{choice('Size', 'EU 36', 'UK 4')}</div>",
        f"<footer>{choice('Size', 'S', 'M')}</footer>",
        f"<h2>You may also like</h2><div><b>Ash chair</b>{choice('Size', 'S', 'M')}</div>",
        f"<h2>Complete the set</h2><div><b>Cushion</b>{choice('Size', 'S', 'M')}</div>",
        f"<h3><a href=/p/ash-chair-with-arms>Ash chair with arms, grey</a></h3>{choice('Size', 'S', 'M')}",
        f"<h2>Reviews</h2>{choice('Size', 'S', 'M')}",
        f"<h2>Kundenbewertungen</h2>{choice('Größe', 'S', 'M')}",
        f"<h2>レビューを書く</h2>{radio('サイズ', '小さめ', '大きめ')}",
        choice("Size", EMPTY.format("All sizes"), "S", "M"),
        choice("Farbe", "Alle Farben", "Rot", "Blau"),
        choice("Couleur", "Toutes", "Rouge", "Bleu"),
        radio("Size", "All", "S", "M"),
        radio("Size", "EU", "UK", "US"),
        radio("Dimensions", "cm", "inch"),
        f"<aside>{radio('Colour', 'Light', 'Dark')}</aside>",
    ],
)
def test_other_lists_and_several_choices_give_no_variants(more: str) -> None:
    assert variants(more) is None


def test_variants_of_markup_come_first() -> None:
    group = """<script type=application/ld+json>{"@type": "ProductGroup", "name": "Oak chair", "hasVariant": [
    {"@type": "Product", "sku": "C1", "size": "S"}, {"@type": "Product", "sku": "C2", "size": "M"}]}</script>"""
    found = variants(group + choice("Size", "S", "M", "L")) or []
    assert [each["sku"] for each in found] == ["C1", "C2"]


SWATCHES = "<a href=/p/oak-chair-red><img src=r.jpg alt=Red></a><a href=/p/oak-chair-blue><img src=b.jpg alt=Blue></a>"


@pytest.mark.parametrize(
    "other",
    [
        choice("Material", "Oak", "Pine", number="n2"),
        choice("Legs", "<option>Choose</option>", "Round", "Square", number="n2"),
        radio("Finish", "Oiled", "Lacquered"),
        radio("Finish", "<img src=1.png>", "<img src=2.png>"),
        f"<p>Colour: Red</p>{SWATCHES}",
        f"<p>Colour</p><div>{SWATCHES}</div>",
        f"<div class=swatches>{SWATCHES}</div>",
        "<p>Colour</p><ul><li><a href=?c=1>Red</a></li><li><a href=?c=2>Blue</a></li></ul>",
        "<p>Farbe</p><button>Rot</button><button>Blau</button>",
        "<div><span class=swatch title=Red></span><span class=swatch title=Blue></span></div>",
        "<div class=variant-options><button><img src=1.jpg></button><button><img src=2.jpg></button></div>",
    ],
)
def test_another_choice_beside_that_of_sizes_gives_no_variants(other: str) -> None:
    assert variants(choice("Size", "S", "M") + other) is None
    assert variants(other + choice("Size", "S", "M")) is None


@pytest.mark.parametrize(
    "other",
    [
        choice("Quantity", "1", "2", "3", number="n2"),
        choice("Deliver to", "UK", "France", number="n2", name="country"),
        choice("Gift wrap", "No", "Yes", number="n2"),
        radio("Purchase", "One-time purchase", "Subscribe and save"),
        radio("Garantie", "2 Jahre", "5 Jahre"),
        "<button>Wish list</button><button>Compare</button>",
        "<div class=gallery><a href=1.jpg><img src=1.jpg></a><a href=2.jpg><img src=2.jpg></a></div>",
        "<ul class=swatches><li><span class=swatch>S</span></li><li><span class=swatch>M</span></li></ul>",
        "<div class=product-option-tabs><a href=#d>Description</a><a href=#r>Reviews</a></div>",
        "<div class=swatches><a href=?c=1><img alt=Red></a></div>",
        "<p>Colour</p><ul><li><a href=/p/oak-stool>Red</a></li><li><a href=/p/ash-stool>Blue</a></li></ul>",
        "<div class=swatches><i class=swatch title=Oak></i><a class=swatch href=/p/ash-chair title=Ash></a></div>",
        "<div class=size-options-help><button>Size guide</button><button>Find my size</button></div>",
        "<div class=variant-buttons><button>Add to cart</button><button>Buy now</button></div>",
        "<div class=product-options-bottom><button>Print</button><button>Ask</button></div>",
        "<div class=pay-options><img src=v.png alt=Visa><img src=m.png alt=Mastercard></div>",
        radio("Buy", "Once", "Every month"),
        "<p>Share</p><a href=//x.com/s><img alt=X></a><a href=//f.com/s><img alt=F></a>",
    ],
)
def test_what_changes_no_product_is_no_other_choice(other: str) -> None:
    assert variants(choice("Size", "S", "M") + other) == [{"size": "S"}, {"size": "M"}]
