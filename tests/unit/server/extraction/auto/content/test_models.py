"""Models of blocks and of kinds of pages: trees over numbers."""

from __future__ import annotations

import json

import pytest

from scrapy_ext.server.extraction.auto.content.blocks import ArticleMarks, Blocks
from scrapy_ext.server.extraction.auto.content.choice import (
    FIRST_TREES,
    BlockModel,
    KindModel,
    kind_model,
    read_block_model,
    read_kind_model,
)
from scrapy_ext.server.extraction.auto.content.features import Features
from scrapy_ext.server.extraction.auto.page.page import Page

PROSE = "The rope is laid from three strands of polyester, does not float, and keeps its strength when it is wet. "
MENU = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in ("sails", "anchors", "ropes", "charts"))


def kinds_of(url: str, head: str, body: str) -> dict[str, float]:
    source = Page(f"<html><head>{head}</head><body><nav><ul>{MENU}</ul></nav>{body}</body></html>", url)
    blocks = Blocks(source)
    return kind_model().likelihoods(Features(source, blocks, ArticleMarks(source, blocks)).of_page)


def test_a_tree_is_walked_to_the_leaf_that_the_numbers_lead_to() -> None:
    model = BlockModel(("words",), ((0, 2.0, -30.0, (0, 5.0, 0.0, 30.0)),))
    low, middle, high = model.likelihoods([[2.0], [5.0], [6.0]])
    assert low < 0.001
    assert middle == 0.5
    assert high > 0.999


def test_what_holds_for_the_page_decides_for_all_its_blocks() -> None:
    model = BlockModel(("words", "page_words"), ((1, 4.0, (0, 2.0, -30.0, 0.0), 30.0),))
    assert model.likelihoods([[1.0], [3.0]], [4.0]) == pytest.approx([0.0, 0.5], abs=0.001)
    assert model.likelihoods([[1.0], [3.0]], [5.0]) == pytest.approx([1.0, 1.0], abs=0.001)


def test_trees_after_the_first_ones_decide_where_these_leave_a_doubt() -> None:
    first = [(0, 2.0, 0.0, 3.0 / FIRST_TREES)] * FIRST_TREES
    model = BlockModel(("words",), (*first, (0, 9.0, -1.0, -20.0)))
    doubtful, sure = model.likelihoods([[1.0], [10.0]])
    assert doubtful == pytest.approx(0.269, abs=0.001)
    assert sure > 0.99


def test_the_chances_of_all_kinds_are_one_together() -> None:
    model = KindModel(("words",), {"article": ((0, 2.0, 1.0, 0.0),), "forum": (0.0, (0, 2.0, 0.0, 800.0))})
    few, many = model.likelihoods([1.0]), model.likelihoods([3.0])
    assert few == pytest.approx({"article": 0.731, "forum": 0.269}, abs=0.001)
    assert many == pytest.approx({"article": 0.0, "forum": 1.0})


def test_models_are_read_from_files() -> None:
    tree = [0, 2, -30, 30]
    assert read_block_model(json.dumps({"features": ["words"], "trees": [tree]})) == BlockModel(
        ("words",), ((0, 2.0, -30.0, 30.0),)
    )
    assert read_kind_model(json.dumps({"features": ["words"], "trees": {"forum": [tree, 1]}})) == KindModel(
        ("words",), {"forum": ((0, 2.0, -30.0, 30.0), 1.0)}
    )


def test_an_article_is_known_as_one() -> None:
    head = """<title>How a rope is laid</title><meta property="og:type" content="article">
    <script type="application/ld+json">{"@type": "BlogPosting", "headline": "How a rope is laid"}</script>"""
    body = f"<article><h1>How a rope is laid</h1>{''.join(f'<p>{PROSE * 3}</p>' for _ in range(12))}</article>"
    kinds = kinds_of("https://www.example.org/blog/how-a-rope-is-laid", head, body)
    assert max(kinds, key=kinds.__getitem__) == "article"
    assert kinds["article"] > 0.5


def test_a_thread_of_a_forum_is_known_as_one() -> None:
    posts = "".join(
        f"""<article class="post"><div class="author"><a href="/u/{n}">sailor{n}</a></div>
        <div class="post-body"><p>Answer {n}: {PROSE}</p></div><a href="#">Reply</a> <a href="#">Quote</a></article>"""
        for n in range(12)
    )
    kinds = kinds_of("https://forum.example.org/threads/which-rope.12/", "<title>Which rope?</title>", posts)
    assert max(kinds, key=kinds.__getitem__) == "forum"


def test_the_page_of_a_product_is_known_as_one() -> None:
    head = """<title>Mooring rope</title><meta property="og:type" content="product">
    <script type="application/ld+json">{"@type": "Product", "name": "Mooring rope"}</script>"""
    body = f"""<main><h1>Mooring rope</h1><span class="price">$ 49.00</span><button>Add to cart</button>
    <div class="description"><p>{PROSE}</p></div><table><tr><th>Diameter</th><td>14 mm</td></tr></table>
    <h2>You may also like</h2><ul><li><a href="/a">Anchor</a> $ 99.00</li><li><a href="/b">Bow rope</a> $ 12.00</li>
    </ul></main>"""
    kinds = kinds_of("https://shop.example.org/products/mooring-rope", head, body)
    assert max(kinds, key=kinds.__getitem__) == "product"


@pytest.mark.parametrize("site", ["shop.example:42015", "user@shop.example:42015"])
def test_a_port_says_nothing_about_a_page(site: str) -> None:
    body = f"<main><h1>Rope</h1>{f'<p>{PROSE}</p>' * 4}</main>"
    assert kinds_of(f"http://{site}/rope", "", body) == kinds_of("http://shop.example/rope", "", body)
