"""The refusal of a version of Scrapy that is too old."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import scrapy

import scrapy_ext
from scrapy_ext.compatibility import required
from scrapy_ext.compatibility.toml import tomllib

ROOT = Path(scrapy_ext.__file__).parents[1]


@pytest.mark.parametrize("version", ["1.8.4", "2.0.1", "2.13.4"])
def test_an_old_version_is_refused_in_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(scrapy, "__version__", version)
    with pytest.raises(required.OldScrapyError) as refused:
        required.require_scrapy()
    text = str(refused.value)
    assert text.startswith(f"Scrapy {version} is too old")
    assert "scrapy>=2.14" in text
    assert "\n" not in text


@pytest.mark.parametrize("version", ["2.14.0", "2.19.1", "3.0", "main"])
def test_others_are_not(version: str) -> None:
    assert required.fault_of(version) is None


def test_the_declared_versions_are_the_refused_ones_the_tested_ones_and_the_documented_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = ".".join(map(str, required.OLDEST))
    assert f"scrapy>={oldest},<3" in project["dependencies"]
    assert required.SUPPORTED.startswith(f"Scrapy {oldest} to ")
    declared = {each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each}
    assert project["requires-python"] == ">=" + min(declared, key=lambda each: int(each.partition(".")[2]))
    noxfile = (ROOT / "noxfile.py").read_text("utf-8")
    assert set(re.findall(r'Row\("[\w.]+", "(3\.\d+)"', noxfile)) == declared
    assert f'Row("{oldest}", "3.10"' in noxfile
    page = (ROOT / "docs" / "reference" / "versions.rst").read_text("utf-8")
    for version in (*declared, oldest, required.SUPPORTED.rpartition(" ")[2]):
        assert version in page
    assert "RESULT" not in page, "each version has its result"
