"""A small shop to crawl: 30 products on three listings, at http://localhost:8610. Nothing but Python is needed."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KINDS = ["Lantern", "Kettle", "Tent", "Rope", "Compass"]
SIZES = ["small", "medium", "large", "wide", "tall", "light"]
PRODUCTS = [f"{kind}, {size}" for kind in KINDS for size in SIZES]


def listing(page: int) -> str:
    links = "".join(
        f'<li><a class="product" href="/product/{number}">{PRODUCTS[number]}</a></li>'
        for number in range(10 * page, 10 * page + 10)
    )
    following = f'<a class="next" href="/?page={page + 1}">Next</a>' if page < 2 else ""
    return f"<h1>Everything for the road</h1><ul>{links}</ul>{following}"


def product(number: int) -> str:
    data = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": PRODUCTS[number],
        "sku": f"R-{number:03}",
        "offers": {"@type": "Offer", "price": f"{10 + 3 * number}.50", "priceCurrency": "EUR"},
    }
    return f"""
        <h1>{PRODUCTS[number]}</h1>
        <script type="application/ld+json">{json.dumps(data)}</script>
        <button id="ask" onclick="document.getElementById('stock').textContent = '{number % 7} left'">In stock?</button>
        <p id="stock"></p>"""


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, _, query = self.path.partition("?page=")
        if path == "/":
            self.answer(200, listing(int(query or 0)))
        elif path.startswith("/product/"):
            self.answer(200, product(int(path.removeprefix("/product/"))))
        else:
            self.answer(404, "<h1>There is no such page</h1>")

    def answer(self, status: int, body: str) -> None:
        content = f"<!DOCTYPE html><title>The shop</title>{body}".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass


if __name__ == "__main__":
    print("The shop is open at http://localhost:8610", flush=True)
    ThreadingHTTPServer(("127.0.0.1", 8610), Shop).serve_forever()
