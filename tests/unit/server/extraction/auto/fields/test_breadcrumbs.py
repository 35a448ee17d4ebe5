"""Breadcrumbs in an element."""

from __future__ import annotations

import pytest
from lxml import html

from scrapy_ext.server.extraction.auto.fields.breadcrumbs import trail_of

BASE = "https://shop.example/"


def trail(text: str) -> list[str]:
    """Names with the ends of their addresses: ``Lamps=/lamps``."""
    crumbs = trail_of(html.fragment_fromstring(text), BASE)
    return [f"{each.name}={(each.url or '').removeprefix('https://shop.example')}" for each in crumbs]


@pytest.mark.parametrize("separator", ["&gt;", "/", "»", "›", "→", "|", "-", "❯", "▸", "::", "&#160;–"])
def test_separators_are_no_breadcrumbs(separator: str) -> None:
    text = f"<div><a href=/>Home</a> {separator} <a href=/lamps>Lamps</a> {separator} Desk lamp <b>x</b></div>"
    assert trail(text)[:3] == ["Home=/", "Lamps=/lamps", "Desk lamp="]
    text = f"<p><a href=/>Home</a><i>{separator}</i><a href=/l title=Lamps></a><span>{separator} Red</span></p>"
    assert trail(text) == ["Home=/", "Lamps=/l", "Red="]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("<p>Home &gt; Bed &amp; Bath &gt; C++</p>", ["Home=", "Bed & Bath=", "C++="], id="one text"),
        pytest.param(
            "<ul><li><a href=/>Home</a><ul><li><a href=/other>Other</a></li></ul></li><li><a href=/a>A</a></li></ul>",
            ["Home=/", "A=/a"],
            id="menus in lists are left out",
        ),
        pytest.param(
            "<ol><li><a href=/>Home</a></li><li><a href=/a>A</a> › </li><li><a href=/b>B</a></li><li>C</li></ol>",
            ["Home=/", "A=/a", "B=/b", "C="],
            id="the items of a list need no separator",
        ),
        pytest.param(
            "<div><a href=/>Home</a> › <a href=/a>A</a> <a href=/print>Print</a></div>",
            ["Home=/", "A=/a"],
            id="a link beside a trail is left out",
        ),
        pytest.param(
            "<div><a href=/>Home</a><ul class='drop-down'><li><a href=/o>O</a></ul><a href=/a>A</a><button>B</button>",
            ["Home=/", "A=/a"],
            id="drop-downs and buttons are left out",
        ),
        pytest.param(
            "<div><a href=/x>X</a><a href=/>Home</a><p itemtype=schema.org/ListItem><a href=/a>A</a> </p>B <i>C</i>",
            ["Home=/", "A=/a", "B="],
            id="marked ones, and those beside them",
        ),
        pytest.param(
            "<div><a href=/help>Help</a> <a href=/>Home</a> &gt; <a href=/a>A</a> &gt; <b>B</b> <i>Share</i></div>",
            ["Home=/", "A=/a", "B="],
            id="those beside the main separator",
        ),
        pytest.param(
            "<div><a href=/a>Back</a><a href=/>Home</a><a href=/a>A</a></div>", ["Home=/", "A=/a"], id="way back"
        ),
        pytest.param("<div><a href='javascript:x()'>A</a><a href='#'>B</a></div>", ["A=", "B="], id="no addresses"),
        pytest.param("<div></div>", [], id="nothing"),
    ],
)
def test_what_belongs_to_a_trail(text: str, found: list[str]) -> None:
    assert trail(text) == found
