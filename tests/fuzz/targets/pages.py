"""Pages: automatic extraction, structured data, JSON in scripts; PDFs."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from scrapy_ext.server.extraction.auto import KINDS, extract_from_pdf, extract_more, preload
from scrapy_ext.server.extraction.auto.page import lenient_json
from scrapy_ext.server.extraction.auto.pdf.reading import UnreadablePdfError
from tests.fuzz.target import target
from tests.support.odd_pages import odd_page
from tests.support.pdfs import hostile, lines, of_images, pdf, with_password

# What is imported when it is first needed would have no coverage.
preload()

_URL = "https://shop.example/a/b?page=2"
_LONGEST_ITEM = 200
_PAGES = [
    b"<html><head><title>Red shoe</title></head><body><h1>Red shoe</h1><p>In stock</p><b>$ 1,234.50</b>"
    b"<img src=/a.jpg><table><tr><th>Brand<td>Acme</table></body></html>",
    b"<ul>"
    + b"".join(b"<li><a href=/p%d>Name %d</a> <span>%d.99 &euro;</span>" % (n, n, n) for n in range(5))
    + b"</ul>"
    b'<a rel="next" href="?page=3">2</a>',
    b"<article><h1>Title</h1><p>By Ann Author, <time datetime=2026-01-02>2 Jan</time><p>" + b"Some long text. " * 20,
    b"<div class=post><a class=author>ann</a><div class=body>Hello</div></div><div class=post><a class=author>bob</a>"
    b"<div class=body>Hi<blockquote>Hello</blockquote></div></div>",
    b"<h2>Engineer</h2><dl><dt>Salary<dd>$50k - $60k a year<dt>Location<dd>Paris</dl>",
    b"<div><h3><a href=https://x.example/>Result</a></h3><cite>x.example</cite><p>words</div>" * 3,
]


def _extract(kind: str, html: str, **options: Any) -> None:
    found = extract_more(kind, html, _URL, **options)
    encoded = msgspec.json.encode(found.item)
    assert json.loads(encoded) == found.item
    assert len(encoded) <= 100_000 + _LONGEST_ITEM * len(html)


@target(
    "page",
    [bytes([number]) + page for number, page in enumerate(_PAGES * 2)],
    longest=3000,
    calls=(400_000, 4000),
)
def page(data: bytes) -> None:
    """Every kind can be had of every page, and can be sent."""
    if data:
        kind = KINDS[data[0] % len(KINDS)]
        _extract(kind, data[1:].decode("utf-8", "replace"), sources=data[0] >= 128, text=data[0] >= 192)


@target("odd-page", [bytes(range(number, 256, 7)) for number in range(11)], longest=400, calls=(600_000, 20_000))
def odd_parts(data: bytes) -> None:
    """The same for pages of odd parts, and for their Markdown."""
    if data:
        content = {"content": ("main", "all")[data[0] % 2]} if data[0] % 3 == 0 else None
        _extract(KINDS[data[0] % len(KINDS)], odd_page(data[1:]), markdown=content, styles=data[0] > 200)


_THINGS = [
    b'{"@context":"https://schema.org","@type":"Product","name":"a","offers":{"@type":"Offer","price":"1.5",'
    b'"priceCurrency":"USD","availability":"https://schema.org/InStock"},"aggregateRating":{"ratingValue":4}}',
    b'[{"@type":["NewsArticle","X"],"headline":"h","author":[{"name":"a"},"b"],"datePublished":"2026-13-45"}]',
    b'{"@graph":[{"@id":"#1","@type":"JobPosting","baseSalary":{"value":{"minValue":1}}},{"@id":"#1"}],}',
    b'{"@type":"BreadcrumbList","itemListElement":[{"item":{"name":"x","@id":"/y"},"position":"NaN"}]}',
    b'/* c */ {"@type":"Product","name":"a" b",} -->',
    b'{"@type":"Product","review":{"@type":"Product","review":{"@type":"Product"}}}',
]


@target(
    "structured-data",
    [bytes([number % 2]) + thing for number, thing in enumerate(_THINGS * 2)],
    calls=(400_000, 4000),
)
def structured_data(data: bytes) -> None:
    """The same for what a page says of itself, in JSON and in microdata."""
    if not data:
        return
    text = data[1:].decode("utf-8", "replace")
    kinds = ("product", "article", "jobPosting", "productList", "articleList", "forumThread", "productNavigation")
    html = f'<script type="application/ld+json">{text}</script><h1>t</h1>'
    _extract(kinds[data[0] % len(kinds)], html)


_MICRODATA = [
    b'<div itemscope itemtype="https://schema.org/Product"><b itemprop=name>a</b><p itemprop=offers itemscope>'
    b"<i itemprop=price content=5></i></div>",
    b'<div itemscope itemref="a b a"><p id=a itemprop=x itemscope itemref=a></p><p id=b itemprop="y z"></div>',
    b'<meta property=og:title content=t><meta property=product:price:amount content="1,5">'
    b"<link rel=canonical href=//[>",
    b'<div vocab="https://schema.org/" typeof=Product><span property=name>n</span></div>',
]


@target("microdata", [b"\x00" + page for page in _MICRODATA], calls=(400_000, 4000))
def microdata(data: bytes) -> None:
    """The same for attributes of elements."""
    if data:
        _extract(
            ("product", "article", "productList")[data[0] % 3], data[1:].decode("utf-8", "replace"), styles=data[0] > 9
        )


@target("lenient-json", [*_THINGS, b'{a:1,b:[undefined,"x\\u00e4\\', b"{'a': 'b'}", b'{"a":"b"c","d":1}', b"[" * 100])
def loose_json(data: bytes) -> None:
    """It raises nothing, and what it returns is JSON no deeper than its bound."""
    found = lenient_json.loads(data.decode("utf-8", "replace"))
    assert isinstance(found, list)
    json.dumps(found)


_PDFS = [
    pdf(
        [*lines(["A heading"], size=20), *lines(["Some text, di-", "vided."], top=110)],
        information={"Author": "Ann Doe"},
    ),
    pdf(lines(["one", "Page 1"]), lines(["two", "Page 2"]), language="en"),
    of_images(),
    with_password(),
    *(file for file in hostile().values() if len(file) <= 4000),
]


@target(
    "pdf",
    [bytes([number % 2]) + file for number, file in enumerate(_PDFS * 2)],
    refuses=(UnreadablePdfError,),
    longest=4000,
    calls=(400_000, 4000),
)
def pdf_file(data: bytes) -> None:
    """A file has a text or a reason why not, and both can be sent."""
    if not data:
        return
    kind = ("article", "pageContent")[data[0] % 2]
    found = extract_from_pdf(kind, data[1:], _URL, sources=data[0] >= 128, text=data[0] >= 192)
    encoded = msgspec.json.encode(found.item)
    assert json.loads(encoded) == found.item
    assert found.item.get("itemMain") or kind == "article"
