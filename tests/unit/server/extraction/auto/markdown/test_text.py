"""Text of pages that looks like Markdown: it stays text."""

from __future__ import annotations

from html import escape

import pytest

from scrapy_ext.server.extraction.auto import extract_more
from tests.support.markdown import PARSER, read

HOSTILE = [
    "# no heading",
    "####### seven",
    "> no quote",
    "- no item",
    "+ no item",
    "* no item",
    "1. no item",
    "12) no item",
    "2024. A year",
    "---",
    "===",
    "***",
    "___",
    "- - -",
    "~~~",
    "```",
    "a `code` b",
    "*a* **b** _c_ __d__ ~~e~~",
    "[link](http://evil.example/)",
    "![image](http://evil.example/)",
    "[a]: http://evil.example/",
    "[^1]: note",
    "<b>no html</b>",
    "<script>alert(1)</script>",
    "<!-- no comment -->",
    "<https://evil.example/>",
    "&lt;b&gt; &copy; &#60;",
    "C:\\Users\\*name*",
    "ends with \\",
    "|a|b|",
    "| --- | --- |",
    "a < b > c & d",
    "snake_case_name _leading trailing_",
    "wow!",
    "5 * 3 * 2",
    "# #",
    ":-: | --",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("html", ["<p>{}</p>", "<p>x<br>{}</p>", "<ul><li>{}</ul>", "<blockquote>{}</blockquote>"])
def test_text_that_looks_like_markdown_is_read_as_text(html: str, text: str) -> None:
    found = _markdown(html.format(escape(text)))
    (block,) = read(found)
    while not isinstance(block[-1], str):
        block = block[-1][0] if block[0] == "quote" else block[-1][0][0]
    assert block == ("paragraph", f"x\n{text}" if "<br>" in html else text)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_same_in_headings_cells_links_and_descriptions_of_images(text: str) -> None:
    (heading,) = read(_markdown(f"<h2>{escape(text)}</h2>"))
    assert heading == ("h2", text)
    ((_, rows),) = read(_markdown(f"<table><tr><th>a<th>b<tr><td>{escape(text)}<td>c</table>"))
    assert rows == [["a", "b"], [text, "c"]]
    (link,) = read(_markdown(f'<a href="/x">{escape(text)}</a>'))
    assert link == ("paragraph", text)
    (image,) = read(_markdown(f'<img src="/x.png" alt="{escape(text)}">'))
    assert image == ("paragraph", f"image:{text}:https://e.example/x.png")


@pytest.mark.parametrize("text", HOSTILE)
def test_code_is_read_as_it_stands(text: str) -> None:
    assert read(_markdown(f"<pre>{escape(text)}</pre>")) == [("code", "", text)]
    ((_, code),) = read(_markdown(f"<p><code>{escape(text)}</code></p>"))
    assert code == f"code:{text}"
    ((_, rows),) = read(_markdown(f"<table><tr><th>a<th>b<tr><td><code>{escape(text)}</code><td>c</table>"))
    assert rows[1][0] == f"code:{text}"


def test_no_html_is_written() -> None:
    markdown = _markdown("".join(f"<p>{escape(text)}</p><b>x<u>y</u><video>z</video></b>" for text in HOSTILE))
    html = PARSER.render(markdown)
    assert "<script" not in html
    assert "<u>" not in html
    assert "evil.example/)" in html
    assert 'href="http://evil' not in html


def test_addresses_cannot_leave_their_link() -> None:
    html = PARSER.render(
        _markdown('<a href="/a)](http://evil.example/) [x](y">a</a> <img src="/b)<script>.png" alt=c>')
    )
    assert html.count("<a ") == html.count("<img ") == 1
    assert "<script" not in html
    assert 'href="https://e.example/a' in html


def test_a_code_in_a_link_defines_no_reference() -> None:
    assert read(_markdown('<a href="/x"><code>[a]: /evil</code></a>')) == [("paragraph", "[a]: /evil")]


def _markdown(html: str) -> str:
    return extract_more(None, html, "https://e.example/", markdown={"content": "all"}).markdown or ""
