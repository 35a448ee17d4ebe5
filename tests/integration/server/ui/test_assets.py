"""Files that pages load."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.http import Http

ROOT = Path(__file__).parents[4]


async def test_pages_name_the_version_of_each_file_and_browsers_may_keep_it(http: Http) -> None:
    text = (await http.get("/ui/1/jobs")).text
    addresses = re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', text)
    assert [address.partition("?")[0].rpartition("/")[2] for address in addresses] == [
        "style.css",
        "refresh.js",
        "ui.js",
    ]
    for address in addresses:
        kept = await http.get(address)
        assert (kept.status, "immutable" in kept.headers["Cache-Control"]) == (200, True)
        assert "immutable" not in (await http.get(address.partition("?")[0] + "?v=other")).headers["Cache-Control"]
    for path in ("..%2fpages.py", "", "%2e%2e/frame.py"):
        assert (await http.get(f"/ui/static/{path}")).status == 404


def test_no_script_or_style_stands_in_a_template() -> None:
    for template in (ROOT / "scrapy_ext/server/ui/templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", text), template.name
        assert "|safe" not in text, template.name
