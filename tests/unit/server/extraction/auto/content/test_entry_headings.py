"""Headings of the entries of lists in the content of a page."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.content.blocks import Blocks
from scrapy_ext.server.extraction.auto.content.entry_headings import entry_headings
from scrapy_ext.server.extraction.auto.page.page import Page

TEXT = "<p>We went there by train and came back on foot, which took longer than anyone thought.</p>"
POST = "<article class=post-{n}><header><h2><a href=/{n}>Post of day {n}</a></h2></header>{text}</article>"


def found(body: str, *, taken: str = "We went") -> list[str]:
    """Return the headings that are found beside the blocks that begin with a text."""
    blocks = Blocks(Page(f"<body>{body}</body>", "https://blog.example/"))
    chosen = entry_headings(blocks, [block.text.startswith(taken) for block in blocks])
    return [block.text for block, is_chosen in zip(blocks, chosen, strict=True) if is_chosen]


def posts(count: int, pattern: str = POST, text: str = TEXT) -> str:
    return "".join(pattern.format(n=n, text=text) for n in range(count))


def test_the_headings_of_posts_whose_texts_are_content_are_content() -> None:
    assert found(f"<main>{posts(4)}</main>") == [f"Post of day {n}" for n in range(4)]


@pytest.mark.parametrize(
    "body",
    [
        posts(2),
        posts(1) + posts(5, text="<p>Soon.</p>"),
        posts(4, POST.replace("<a href=/{n}>", "").replace("</a>", "")),
        posts(4, POST.replace("h2", "h4")),
        posts(4, POST.replace("<header>", "<h3><a href=/{n}>We went away</a></h3><header>")),
    ],
    ids=["two", "most without a text", "no links", "names of authors", "with another heading that is content"],
)
def test_other_headings_are_not(body: str) -> None:
    assert found(f"<main>{body}</main>") == []
