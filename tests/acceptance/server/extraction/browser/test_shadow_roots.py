"""Web components in a real Chromium: the HTML with their shadow roots, and what their styles lay out."""

from __future__ import annotations

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

_TEXT = "The council met on Tuesday evening and listened to forty residents before it came to a decision."
_OPEN = """<script>customElements.define('x-a', class extends HTMLElement {
    connectedCallback() {
        this.attachShadow({ mode: 'open' }).innerHTML = '<p class=in>in & out</p><slot></slot><x-b></x-b>';
    }
});
customElements.define('x-b', class extends HTMLElement {
    connectedCallback() { this.attachShadow({ mode: 'MODE' }).innerHTML = '<i>deeper</i>'; }
});</script>"""


def page(mode: str = "open") -> str:
    return f"<!doctype html><html lang=en><title>t</title><body><x-a><b>slotted</b></x-a>{_OPEN.replace('MODE', mode)}"


@pytest.mark.long(keep=1)
def test_browser_html_has_shadow_roots_only_where_they_are_asked_for(service: Service, site: Target) -> None:
    url = site.page("/components", page())
    assert "in &amp; out" not in service.result(url=url, browserHtml=True)["browserHtml"]
    html = service.result(url=url, browserHtml=True, includeShadowRoots=True)["browserHtml"]
    assert html.startswith('<!DOCTYPE html><html lang="en">')
    assert html.endswith("</html>")
    inner = '<x-b><template shadowrootmode="open"><i>deeper</i></template></x-b>'
    assert f'<p class="in">in &amp; out</p><slot></slot>{inner}</template><b>slotted</b>' in html


@pytest.mark.long(keep=1)
def test_names_of_elements_and_scripts_of_the_page_do_not_change_how_it_is_read(service: Service, site: Target) -> None:
    named = "<form name=documentElement></form><img name=doctype>"
    replaced = "<script>Element.prototype.getHTML = () => 'replaced'; delete window.XMLSerializer</script>"
    url = site.page("/named", page().replace("<body>", f"<body>{named}{replaced}"))
    html = service.result(url=url, browserHtml=True, includeShadowRoots=True)["browserHtml"]
    assert html.startswith('<!DOCTYPE html><html lang="en"><head>')
    assert "<i>deeper</i>" in html
    assert named.partition(">")[0] in html.replace('"', "")


@pytest.mark.long(keep=1)
def test_shadow_roots_of_frames_are_written_too(service: Service, site: Target) -> None:
    site.page("/inner", page())
    url = site.page("/outer", "<iframe src=/inner></iframe>")
    html = service.result(url=url, browserHtml=True, includeIframes=True, includeShadowRoots=True)["browserHtml"]
    assert "deeper" in html


@pytest.mark.long(keep=1)
def test_closed_shadow_roots_and_pages_without_any_change_nothing(service: Service, site: Target) -> None:
    closed = service.result(url=site.page("/closed", page("closed")), browserHtml=True, includeShadowRoots=True)
    assert "<x-b></x-b>" in closed["browserHtml"]
    url = site.page("/plain", "<!doctype html><p>plain")
    asked = service.result(url=url, browserHtml=True, includeShadowRoots=True)["browserHtml"]
    assert asked == service.result(url=url, browserHtml=True)["browserHtml"]


@pytest.mark.long
def test_the_layout_that_styles_make_decides_where_text_has_spaces(service: Service, site: Target) -> None:
    url = site.page(
        "/layout",
        f"""<!doctype html><style>.b {{ display: block }} .m {{ margin-left: 20px }} .f {{ display: flex }}
        .g {{ display: flex; gap: 10px }} .i {{ display: inline }}</style><title>Plan</title><h1>Plan</h1>
        <p><span class=b>One line</span><span class=b>another line</span></p>
        <p><span>left</span><span class=m>right</span> <span>Big</span><span>Boat</span></p>
        <p class=f><span>5</span><span>.</span><span>50</span></p><p class=g><span>old</span><span>new</span></p>
        <div class=i>in</div><div class=i>line</div><p>{_TEXT}</p>""",
    )
    result = service.result(url=url, markdown=True, markdownOptions={"content": "all"})
    lines = [line for line in result["markdown"].splitlines() if line]
    assert lines == ["# Plan", "One line", "another line", "left right BigBoat", "5.50", "old new", "inline", _TEXT]
    assert "data-display" not in service.result(url=url, browserHtml=True, article=True)["browserHtml"]
