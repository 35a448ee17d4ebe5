"""Subresources of a page are loaded if a requested output needs them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

_PAGE = """<link rel=stylesheet href=/style.css><h1>here</h1><img src=/image.png><img srcset='/wide.png 2x'>
<p style='background: url(/behind.png); font-family: own'>text</p><script src=/script.js></script>
<iframe src=/frame></iframe>"""
_ALWAYS = {"/style.css", "/script.js", "/frame", "/fetched.png"}
_PICTURES = {"/image.png", "/behind.png", "/font.woff2"}
_ACTION = [{"action": "waitForTimeout", "timeout": 0.01}]


@pytest.mark.parametrize(
    ("fields", "pictures"),
    [
        ({"browserHtml": True}, False),
        ({"pageContent": True}, False),
        ({"screenshot": True}, True),
        ({"browserHtml": True, "actions": _ACTION}, True),
    ],
    ids=["html", "extraction", "screenshot", "actions"],
)
@pytest.mark.long(keep=2)
def test_pictures_and_fonts_are_loaded_for_screenshots_and_actions_only(
    service: Service, site: Target, fields: dict[str, Any], pictures: bool
) -> None:
    style = "@font-face { font-family: own; src: url(/font.woff2) } h1 { margin-left: 77px }"
    site.page("/style.css", style, Content_Type="text/css")
    script = "fetch('/fetched.png'); document.body.append(getComputedStyle(document.querySelector('h1')).marginLeft)"
    site.page("/script.js", script, Content_Type="text/javascript")
    site.page("/frame", "in the frame")
    url = site.page("/resources", _PAGE)
    before = len(site.calls)
    result = service.result(url=url, **fields)
    called = {call.path for call in site.calls[before:]}
    assert called >= _ALWAYS
    assert called & _PICTURES == (_PICTURES if pictures else set())
    if "browserHtml" in fields:
        assert "77px" in result["browserHtml"]
