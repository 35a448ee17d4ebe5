"""Modules of spiders that cannot be imported, and the lines of jobs about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ext.jobprocess.launch import _no_spider
from scrapy_ext.jobprocess.spider_modules import unreadable_modules

SPIDER = "import scrapy\n\n\nclass Good(scrapy.Spider):\n    name = 'good'\n"


def project(folder: Path, *, warn_only: bool) -> Settings:
    package = folder / "unreadable_shop"
    (package / "spiders").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "good.py": SPIDER,
        "spiders/__init__.py": "",
        "spiders/lacks.py": "import no_such_package_of_a_shop\n",
        "wrong.py": "def parse(:\n    pass\n",
    }.items():
        (package / name).write_text(text)
    modules = ["unreadable_shop.good", "unreadable_shop.spiders", "unreadable_shop.wrong", "unreadable_shop.gone"]
    return Settings({"SPIDER_MODULES": modules, "SPIDER_LOADER_WARN_ONLY": warn_only})


def test_each_module_that_cannot_be_imported_is_named_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    lacks, wrong, gone = unreadable_modules(project(tmp_path, warn_only=True))
    assert lacks == ("unreadable_shop.spiders.lacks: ModuleNotFoundError: No module named 'no_such_package_of_a_shop'")
    assert wrong.startswith("unreadable_shop.wrong: SyntaxError: ")
    assert "wrong.py, line 1" in wrong
    assert gone == "unreadable_shop.gone: ModuleNotFoundError: No module named 'unreadable_shop.gone'"


def test_a_project_whose_errors_scrapy_raises_has_no_such_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert list(unreadable_modules(project(tmp_path, warn_only=False))) == []


def test_a_job_without_its_spider_names_the_modules_that_may_have_it() -> None:
    assert _no_spider("boks", []) == "There is no spider 'boks' in this project."
    assert _no_spider("boks", ["a.b: ImportError: x", "a.c: SyntaxError: y"]) == (
        "There is no spider 'boks' in this project. Modules that cannot be imported, whose spiders are left out: "
        "a.b: ImportError: x; a.c: SyntaxError: y."
    )
