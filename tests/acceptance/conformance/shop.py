"""A site for the clients of the extraction service: a product, an article, a form, a page made by script."""

from __future__ import annotations

import json
import time

from tests.support.sites import Answer, ListeningSite

PRODUCT = {"@context": "https://schema.org", "@type": "Product", "name": "Kettle", "sku": "K-7",
           "offers": {"@type": "Offer", "price": "31.50", "priceCurrency": "EUR"}}  # fmt: skip
ARTICLE = {"@context": "https://schema.org", "@type": "Article", "headline": "How to boil water",
           "datePublished": "2026-03-01"}  # fmt: skip
PARAGRAPH = "Water boils when its vapour pressure is that of the air around it, which is less on a high mountain. "


def _with_data(data: object, body: str) -> bytes:
    text = f"<title>x</title><script type='application/ld+json'>{json.dumps(data)}</script><body>{body}"
    return text.encode()


class Shop(ListeningSite):
    """The site; its pages are by path."""

    def __init__(self) -> None:
        super().__init__()
        self.host = f"localhost:{self.port}"
        self.url = f"http://{self.host}"

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        if path == "/echo":
            return Answer(201, b"got " + body, {"Set-Cookie": "visit=1; Path=/"})
        if path == "/slow":
            time.sleep(0.2)  # long enough to be there when others come
            return Answer(200, b"slow")
        page = path.partition("?")[0]
        return Answer(200, PAGES[page]) if page in PAGES else Answer(404, b"none")


PAGES = {
    "/": b"<h1>plain</h1>",
    "/script": b"<h1>before</h1><button onclick=\"this.textContent = 'clicked'\">ask</button>"
    b"<script>document.querySelector('h1').textContent = 'after'</script>",
    "/product": _with_data(PRODUCT, "<h1>Kettle</h1><p>31.50 EUR"),
    "/article": _with_data(ARTICLE, f"<article><h1>How to boil water</h1>{f'<p>{PARAGRAPH}</p>' * 6}</article>"),
}
