"""The index of ``make release-check``: pip installs our files from it, and nobody else's of that name."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
try:
    from package_index import PackageIndex
finally:
    sys.path.remove(str(TOOLS))


def wheel(folder: Path, version: str) -> Path:
    """A package that consists of its metadata."""
    path = folder / f"scrapy_ext-{version}-py3-none-any.whl"
    information = f"scrapy_ext-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: scrapy-ext\nVersion: {version}\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "")
    return path


def test_pip_takes_our_package_from_it_though_another_index_has_a_newer_one(tmp_path):
    downloads = tmp_path / "downloads"
    with (
        PackageIndex([wheel(tmp_path, "9.9")], others="http://unused.example") as elsewhere,
        PackageIndex([wheel(tmp_path, "0.1")], others=elsewhere.url.rstrip("/")) as index,
    ):
        pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "download", "--quiet"]
        command = [
            *pip,
            "--no-deps",
            "--no-cache-dir",
            "--index-url",
            index.url,
            "--dest",
            str(downloads),
            "scrapy-ext",
        ]
        subprocess.run(command, check=True, timeout=300)
    assert index.served == ["scrapy_ext-0.1-py3-none-any.whl"]
    assert elsewhere.served == []
    assert [path.name for path in downloads.iterdir()] == ["scrapy_ext-0.1-py3-none-any.whl"]


def test_other_packages_come_from_the_usual_index():
    class NotFollowed(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments):
            return None

    with PackageIndex([], others="https://packages.example/simple") as index:
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.build_opener(NotFollowed).open(f"{index.url}scrapy/", timeout=60)
        answer.value.close()
        assert answer.value.code == 302
        assert answer.value.headers["Location"] == "https://packages.example/simple/scrapy/"
