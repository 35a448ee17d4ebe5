"""Parts of a product's page about other subjects than the product, which its description is not taken from."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/oak-chair"
FRAME = """<html><title>Oak chair – Works</title><header><a href=/>Works</a></header><main>
<h1>Oak chair</h1><div class=price>€ 89,00</div>{}<button>Add to cart</button></main>"""
OWN = "<p>A chair of solid oak for the kitchen.</p>"
OTHER = "<p>It comes flat in one box, and two people build it in an hour.</p>"


def description(more: str) -> str | None:
    found: str | None = extract("product", FRAME.format(more), URL).get("description")
    return found


@pytest.mark.parametrize(
    "question",
    [
        "Is it hard to build?",
        "Ist der Aufbau schwer?",
        "Est-il difficile à monter ?",
        "¿Es difícil de montar?",
        "Сложно ли собрать?",
        "組み立ては難しい？",
        "組み立ては簡単ですか",
        "安装困难吗",
        "هل التركيب صعب؟",
        "Είναι δύσκολη η συναρμολόγηση;",
        "ประกอบยากไหม",
        "조립이 어려울까",
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "<h3>{}</h3>{}",
        "<details><summary>{}</summary>{}</details>",
        "<button aria-expanded=false>{}</button><div>{}</div>",
        "<dl><dt>{}</dt><dd>{}</dd></dl>",
        "<div><h4><button>{}</button></h4></div><div>{}</div>",
        "<p><b>{}</b></p>{}",
    ],
)
def test_the_answer_to_a_question_describes_no_product(question: str, form: str) -> None:
    answer = form.format(question, OTHER)
    assert description(answer) is None
    assert description(OWN + answer) == OWN[3:-4]
    assert description(f"{answer}<h2>Description</h2>{OWN}") == OWN[3:-4]


@pytest.mark.parametrize(
    "more",
    [
        f"<button>Is it hard to build?</button>{OTHER}",
        f"<div class=faq>{OTHER}</div>",
        f"<div class=accordion><div class=q>Is it hard to build?</div><div>{OTHER}</div></div>",
        "<p><b>Is it hard to build?</b> No, two people build it in an hour without any tools.</p>",
        f"<h2>FAQ</h2><h3>Assembly</h3>{OTHER}",
        f"<h2>Questions and answers</h2>{OTHER}",
        f"<h2>Reviews of Oak chair</h2>{OTHER}",
        f"<h2>Kundenmeinungen</h2>{OTHER}",
        f"<h2>Delivery</h2>{OTHER}",
        f"<h2>Rückgabe</h2>{OTHER}",
        f"<h2>About us</h2>{OTHER}",
        f"<h2>O autorze</h2>{OTHER}",
        f"<h2>Об авторе</h2>{OTHER}",
        f"<h2>レビュー</h2>{OTHER}",
        f"<div role=tablist><button role=tab aria-controls=t1>Livraison</button></div><div id=t1>{OTHER}</div>",
        f"<ul><li><a href=#r>Opinie (3)</a></li></ul><div id=r>{OTHER}</div>",
    ],
)
def test_parts_with_answers_reviews_terms_and_the_shop_describe_none(more: str) -> None:
    assert description(more) is None
    assert description(OWN + more) == OWN[3:-4]


@pytest.mark.parametrize(
    "before",
    [
        "<div><h3>Delivery</h3><p>Two days.</p></div>",
        "<button>Questions?</button>",
        "<h2>Delivery</h2><p>Two days.</p><h2>The chair</h2>",
        "<h2>FAQ</h2><p>None yet.</p><section><h2>The chair</h2></section>",
        "<div role=tablist><button role=tab>Reviews</button></div>",
        "<ul><li><a href=#d>Description</a></li><li><a href=#r>Reviews</a></li></ul>",
        "<h2>Why oak lasts</h2>",
        "<h2>Features</h2>",
    ],
)
def test_a_part_ends_at_the_next_title(before: str) -> None:
    assert description(before + OWN) == OWN[3:-4]


@pytest.mark.parametrize(
    "title",
    [
        "<h2>Why will you love it?</h2>",
        "<h3>What is it?</h3>",
        "<h2>Looking for a sturdy chair?</h2>",
        "<h2>Warum dieser Stuhl?</h2>",
        "<h2>Vous cherchez une chaise solide ?</h2>",
        "<h2>¿Buscas una silla resistente?</h2>",
        "<h2>Szukasz solidnego krzesła?</h2>",
        "<p><b>Free delivery</b></p>",
        "<p><strong>The best chair in 300 reviews</strong></p>",
        "<h2>Details &amp; Shipping</h2>",
    ],
)
def test_a_description_may_begin_with_a_question_or_statement_of_its_own(title: str) -> None:
    assert OWN[3:-4] in (description(title + OWN) or "")


def test_a_question_about_another_subject_is_none_of_a_description() -> None:
    assert description(f"<h2>What is it that you charge for delivery?</h2>{OTHER}") is None
    assert description(f"<h2>Why choose us?</h2>{OTHER}") is None


def test_a_heading_with_words_of_the_product_is_about_it() -> None:
    page = (
        "<title>Shipping box – Works</title><main><h1>Shipping box XL</h1><b>€ 9</b><h2>About the shipping box</h2>{}"
    )
    assert extract("product", page.format(OWN), URL).get("description") == OWN[3:-4]
