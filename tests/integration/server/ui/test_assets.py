"""Files that pages load, with what is not ours and without."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from scrapy_ext.server.ui.frame import Assets
from tests.support.http import Http

ROOT = Path(__file__).parents[4]
STATIC = ROOT / "scrapy_ext/server/ui/static"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("get_assets", ROOT / "tools/get_assets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_pages_name_the_version_of_each_file_and_browsers_may_keep_it(http: Http) -> None:
    text = (await http.get("/ui/1/jobs")).text
    addresses = re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', text)
    assert [address.partition("?")[0].rpartition("/")[2] for address in addresses] == [
        "style.css",
        "htmx.min.js",
        "ui.js",
    ]
    for address in addresses:
        kept = await http.get(address)
        assert (kept.status, "immutable" in kept.headers["Cache-Control"]) == (200, True)
        assert "immutable" not in (await http.get(address.partition("?")[0] + "?v=other")).headers["Cache-Control"]
    for path in ("..%2fpages.py", "vendor", "vendor/htmx.LICENSE.txt", "%2e%2e/frame.py"):
        assert (await http.get(f"/ui/static/{path}")).status == 404


def test_a_checkout_without_front_end_files_of_others_works(tmp_path: Path) -> None:
    shutil.copytree(STATIC, tmp_path / "static", ignore=shutil.ignore_patterns("vendor"))
    assets = Assets(tmp_path / "static")
    assert not assets.has("vendor/htmx.min.js")
    assert assets.has("style.css")


def test_an_archive_that_was_not_pinned_is_not_kept(tool: ModuleType) -> None:
    for package in tool.PACKAGES:
        with pytest.raises(SystemExit, match="is not what was pinned"):
            tool.check(package, b"something else")
        assert re.fullmatch(r"\d+\.\d+\.\d+", package.version)


def test_no_script_or_style_stands_in_a_template() -> None:
    for template in (ROOT / "scrapy_ext/server/ui/templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", text), template.name
        assert "|safe" not in text, template.name
