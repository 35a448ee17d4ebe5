"""The page Extract in a real browser: the elements of the fields on the screenshot that the service took."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.acceptance.server.ui.conftest import OpenPage, keep, violations
from tests.support.handwritten_site import Target

pytestmark = pytest.mark.asyncio(loop_scope="session")

#: Its texts and attributes try to leave the page that shows them.
HOSTILE = "</text></svg><script>window.ran=1</script><img src=x onerror=window.ran=1>"
ESCAPED = HOSTILE.replace("<", "&lt;")
SHOP = f"""<!doctype html><html lang=en><head><title>Storm lamp</title>
<style>body {{ margin: 0; height: 2600px; font: 20px sans-serif }} main {{ padding: 0 60px }}
.lead {{ height: 200px; background: #dfe8f2 }} .price {{ color: #b00020; font-size: 34px; display: inline-block }}
.far {{ position: absolute; top: 2200px; left: 60px }}</style></head><body><div class=lead></div><main>
<h1>Storm lamp</h1><p>by <a href="/brand/bcme">Bcme</a></p>
<p class=brand data-note="{ESCAPED}">Acme</p><span class=price>$31.50</span> <del>$40.00</del>
<div id=description class=description>A lamp for stormy nights that burns for ten hours and needs no more than a drop of
oil {ESCAPED}.</div><table class=far><tr><th>SKU</th><td>AB-1234</td></tr></table><button>Add to cart</button></main>
</body></html>"""


async def extracted(page: Page, url: str, **choices: str) -> None:
    await page.get_by_label("URL").fill(url)
    await page.get_by_label("Extracted fields").select_option("product")
    await page.get_by_label("show where each field is from").check()
    for name, value in choices.items():
        await page.locator(f"[name={name}]").select_option(value)
    await page.get_by_role("button", name="Extract", exact=True).click()
    await expect(page.get_by_role("heading", name="Extracted fields")).to_be_visible()


async def box_of(page: Page, label: str) -> dict[str, float]:
    """The rectangle of a box, in pixels of the screenshot."""
    found: dict[str, float] = await page.locator(".box:not(.other)", has_text=label).first.evaluate(
        "each => { const {x, y, width, height} = each.querySelector('rect').getBBox(); return {x, y, width, height} }"
    )
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
async def test_each_field_has_a_box_on_the_screenshot(
    open_page: OpenPage, site: Target, scheme: Any, width: int
) -> None:
    page = await open_page("/ui/extract?project=1", scheme=scheme, width=width)
    await extracted(page, site.page("/shop", SHOP))
    svg = page.locator("svg.screenshot")
    assert await svg.get_attribute("viewBox") == "0 0 1280 2600"
    price, sku = await box_of(page, "price"), await box_of(page, "sku")
    assert price["x"] == 60
    assert 200 < price["y"] < sku["y"]
    assert 2200 <= sku["y"] < 2300
    # The picture of the server's browser is as large as its drawing, so that the boxes are where the elements are.
    assert await svg.locator("image").evaluate(
        "async each => { const image = new Image(); image.src = each.href.baseVal; await image.decode();"
        " return [image.naturalWidth, image.naturalHeight] }"
    ) == [1280, 2600]
    await keep(page, f"field-sources-{scheme}-{width}")
    assert await page.evaluate("window.ran") is None
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert await violations(page) == []


async def test_boxes_are_highlighted_by_pointer_and_keyboard(open_page: OpenPage, site: Target) -> None:
    page = await open_page("/ui/extract?project=1")
    await extracted(page, site.page("/shop", SHOP))
    marked = page.locator(".box.now")
    await expect(marked).to_have_count(0)
    row = page.locator(".sources tr", has=page.get_by_role("link", name="sku", exact=True))
    await row.get_by_role("link", name="sku", exact=True).hover()
    await expect(marked).to_contain_text("sku")
    await expect(marked).to_be_in_viewport()
    other = page.get_by_label("Other values of brand").get_by_role("link").first
    await expect(page.locator(".box.other").first).to_be_hidden()
    await other.focus()
    await expect(marked).to_have_class("box other now")
    await expect(marked).to_be_visible()
    assert await marked.locator("rect").evaluate("each => getComputedStyle(each).strokeDasharray") != "none"
    await keep(page, "field-sources-other")
    await page.keyboard.press("Enter")
    await page.get_by_label("URL").focus()
    await expect(marked).to_have_count(0)
    await expect(page.locator(".box:target")).to_be_visible()


async def test_boxes_are_shown_without_scripts(open_page: OpenPage, site: Target) -> None:
    page = await open_page("/ui/extract?project=1", scripts=False)
    await extracted(page, site.page("/shop", SHOP))
    await page.locator(".sources").get_by_role("link", name="price", exact=True).click()
    await expect(page.locator(".box:target")).to_contain_text("price")


async def test_without_a_browser_elements_are_described(open_page: OpenPage, site: Target) -> None:
    page = await open_page("/ui/extract?project=1")
    for name in ("HTML of the browser", "screenshot"):
        await page.get_by_label(name, exact=True).uncheck()
    await extracted(page, site.page("/shop", SHOP), extractFrom="httpResponseBody")
    row = page.locator(".sources tr", has=page.get_by_role("rowheader", name="price", exact=True))
    await expect(row).to_contain_text("shown price")
    await expect(row.locator("code")).to_have_text("/html/body/main/span")
    await expect(row.locator("q").first).to_have_text("$31.50")
    await expect(page.locator(".drawn")).to_have_count(0)
    await keep(page, "field-sources-http")
