"""Markdown of pages: another parser reads what was written, without any HTML."""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.markdown import MarkdownOptions, document_of
from scrapy_ext.server.extraction.auto.markdown.writing import written
from scrapy_ext.server.extraction.auto.page import Page
from tests.fuzz.target import target
from tests.support.markdown import assert_read_as

_URL = "https://docs.example/a/b?page=2"
_PAGES = [
    b"<h1>A *b* # c #</h1><p>a<b> b </b>c <i>d</i>e"
    b"<a href='/x_(1)?a=1&amp;copy;'>[f]</a>!<a href=g><img src=h alt=]></a><br>- i",
    b"<ul><li>a<ol start=7><li>b<li>c<pre>````\n</pre></ol>"
    b"<li><blockquote>d<ul><li>e</ul></blockquote></ul><ul><li>f</ul>",
    b"<table><caption>a<tr><th colspan=2>b<th>c|d"
    b"<tr><td rowspan=2>e<td><code>f|g</code><td>h<br>i<tr><td><p>j<p>k</table>",
    b"<dl><dt>a<dd>b<dt>c<dt>d<dd>e<p>f<dd><pre class=language-sh>g</pre></dl><hr>10<sup>2</sup><q>h</q><s>i</s>",
    b"<p>&lt;script&gt; &amp;amp; a_b_ __c__ ~~d~~ `e` \\* 1. f"
    b"<br>===<br>| - |<br>[g]: h<p><code>`i</code><kbd>j</kbd>",
]


@target(
    "markdown",
    [bytes([number]) + page for number, page in enumerate(_PAGES * 2)],
    longest=3000,
    calls=(400_000, 4000),
)
def markdown(data: bytes) -> None:
    """Its structure and texts are those that were written, and it is bounded."""
    if not data:
        return
    options = MarkdownOptions("main" if data[0] >= 224 else "all", links=data[0] % 2 == 0, images=data[0] % 4 < 2)
    html = data[1:].decode("utf-8", "replace")
    document = document_of(Page(html, _URL), options)
    found = written(document)
    # Each element can have a long address in front of its own.
    assert len(found) <= (len(_URL) + 100) * len(data)
    assert_read_as(document, found)
