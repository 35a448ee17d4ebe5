"""Computed styles of a real Chromium are used for the extraction of products, and for nothing else."""

from __future__ import annotations

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

PAGE = """<html><head><title>Aurora Desk Lamp</title><style>
    body { margin: 0; font: 14px sans-serif } .a { text-decoration: line-through } .b { font-size: 28px }
    .c { display: none }
</style></head><body>HOSTILE<h1>Aurora Desk Lamp</h1>
<div><p class="a"><span>$79.00</span></p><p>per piece</p><p class="b"><i>$59.90</i></p></div>
<p class="c"><span class="stock">Sold out</span></p></body></html>"""

#: What pages can do to spoil the look that is taken at them.
HOSTILE = {
    "nothing": "",
    "functions of its own": """<script>
        getComputedStyle = () => { throw 1 }; Element.prototype.getBoundingClientRect = () => { throw 1 };
        Document.prototype.createTreeWalker = document.importNode = null; performance.now = () => -1e9;
        Array.prototype.map = null; Map.prototype.get = Map.prototype.has = null; JSON.parse = null;
    </script>""",
    "elements in place of functions": """<img name="createTreeWalker"><img name="implementation">
        <img name="documentElement"><form name="importNode"><input name="getBoundingClientRect">
        <input name="setAttribute"><input name="parentNode"><b>x</b></form>""",
    "looks of its own": '<p data-look="styled">$1.00</p><h2 data-look="0 0 9 9 99 900 0">x</h2>',
    "elements that act when they are made": """<script>
        customElements.define('x-lamp', class extends HTMLElement {
            constructor() { super(); if (window.made) document.body.remove(); window.made = true; }
        });
    </script><x-lamp></x-lamp>""",
    "someone who watches": """<script>
        new MutationObserver(() => document.body.remove())
            .observe(document, { attributes: true, subtree: true, attributeFilter: ['data-look'] });
    </script>""",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.long(keep=3)
def test_products_are_read_as_they_look_whatever_the_page_does(service: Service, site: Target, name: str) -> None:
    url = site.page(f"/looks/{list(HOSTILE).index(name)}", PAGE.replace("HOSTILE", HOSTILE[name]))
    result = service.result(url=url, product=True)
    item = result["product"]
    assert (item["price"], item["regularPrice"], item["availability"]) == ("59.90", "79.00", "InStock")


def test_the_html_that_is_handed_out_has_no_looks_in_it(service: Service, site: Target) -> None:
    url = site.page("/looks/html", PAGE.replace("HOSTILE", ""))
    result = service.result(url=url, product=True, browserHtml=True)
    assert result["product"]["price"] == "59.90"
    assert "data-look" not in result["browserHtml"]
    assert "$79.00" in result["browserHtml"]


@pytest.mark.long
def test_a_page_of_too_many_elements_is_extracted_from_without_its_looks(service: Service, site: Target) -> None:
    url = site.page("/looks/many", PAGE.replace("HOSTILE", "").replace("</body>", "<i></i>" * 31_000 + "</body>"))
    item = service.result(url=url, product=True)["product"]
    assert item["name"] == "Aurora Desk Lamp"
    assert item["availability"] == "OutOfStock"


def test_without_a_browser_a_product_is_read_from_its_html_alone(service: Service, site: Target) -> None:
    url = site.page("/looks/http", PAGE.replace("HOSTILE", ""))
    item = service.result(url=url, product=True, extractFrom="httpResponseBody")["product"]
    assert item["availability"] == "OutOfStock"
