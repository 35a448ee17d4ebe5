"""Warnings about the spiders of a version."""

from __future__ import annotations

from scrapy_ext.api.platform.versions import SpiderInfo, warning_of


def test_a_version_without_faults_has_no_warning() -> None:
    assert warning_of([SpiderInfo("books")]) == ""


def test_modules_that_cannot_be_imported_are_named_before_names_of_several_spiders() -> None:
    twins = [SpiderInfo("books", kind="shop.b.Books", hidden=["shop.a.Books"])]
    warning = warning_of(twins, ["shop.c: ImportError: x"])
    assert warning.startswith(
        "modules that cannot be imported, whose spiders are left out: shop.c: ImportError: x. several spiders have"
    )
    assert warning_of([], [f"m{number}: E" for number in range(12)]).endswith("; m9: E; and 2 more.")
