"""Microdata, beside extruct's reading of the same pages."""

from __future__ import annotations

from typing import Any

import pytest
from extruct.w3cmicrodata import MicrodataExtractor
from lxml import html

from scrapy_ext.server.extraction.auto.page.microdata import MicrodataReader

BASE = "https://shop.example/a/b"

PAGES = {
    "values of each element": """<div itemscope itemtype="https://schema.org/Product" itemid=" urn:1 ">
        <meta itemprop="sku" content="S1"><a itemprop="url" href=" ../c ">x</a><img itemprop="image" src="i.png">
        <object itemprop="video" data="v"></object><data itemprop="gtin" value="12">twelve</data>
        <meter itemprop="rating" value="4">four</meter><time itemprop="date" datetime="2026-01-02">today</time>
        <span itemprop="price" content="5.00">5</span><p itemprop="name alternateName">A <b>lamp</b><script>1</script>
        <style>p{}</style><!-- c -->, red</p>, <i itemprop="empty"></i></div>""",
    "items in items": """<div itemscope itemtype="A B"><p itemprop="x">1</p><div itemprop="y" itemscope itemtype="C">
        <p itemprop="z">2</p></div><div itemscope itemtype="D"><p itemprop="not-of-a">3</p></div></div>""",
    "references": """<div itemscope itemref="one two none"><p itemprop="x">1</p></div>
        <p id="one" itemprop="y">2 <span itemprop="in-y">3</span></p><div id="two"><div itemprop="z" itemscope>
        <p itemprop="of-z">4</p></div><p itemprop="of-a">5</p></div><p id="one" itemprop="other">6</p>""",
    "no properties": """<div itemscope itemtype="A">only <b>text</b></div><a itemscope href="/l">x</a>""",
}


def uniform(value: Any) -> Any:
    """The form of extruct's items in which single values are no lists."""
    if isinstance(value, list):
        return uniform(value[0]) if len(value) == 1 else [uniform(each) for each in value]
    if not isinstance(value, dict):
        return value
    members = {name: uniform(each) for name, each in value.items() if name not in ("@type", "@id", "@value")}
    item = {"type": uniform(value["@type"])} if value["@type"] else {}
    item |= {"id": value["@id"]} if "@id" in value else {}
    return item | ({"properties": members} if members else {"value": uniform(value["@value"])})


@pytest.mark.parametrize("text", PAGES.values(), ids=PAGES)
def test_items_are_those_that_extruct_finds(text: str) -> None:
    found = [uniform(item) for item in MicrodataReader(html.fromstring(f"<html>{text}</html>"), BASE).items()]
    assert found == MicrodataExtractor().extract(f"<html>{text}</html>", base_url=BASE)
    assert found


def test_an_item_that_is_referred_to_in_a_circle_is_read_once() -> None:
    text = """<div itemscope itemref="b"><p itemprop="x">1</p></div>
        <div id="b" itemprop="y" itemscope itemref="c"></div><div id="c" itemprop="z" itemscope itemref="b"></div>"""
    (first,) = MicrodataReader(html.fromstring(text), BASE).items()
    assert first["x"] == ["1"]
    assert first["y"][0]["z"][0]["y"] == [None]


def test_a_long_chain_of_references_ends() -> None:
    links = "".join(f'<p id="n{n}" itemprop="next" itemscope itemref="n{n + 1}"></p>' for n in range(3000))
    items = MicrodataReader(html.fromstring(f'<div><p itemscope itemref="n0"></p>{links}</div>'), BASE).items()
    # Those that lie deeper are items of their own.
    assert 1 < len(items) < 3000
