"""The model of cost, and its table in the docs."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from cost_model import inputs_table, table
from rig.costs import Assumptions, Need, load, need

_INPUTS = load()
_PAGE = Path(__file__).parents[3] / "docs" / "howto" / "sizing.rst"


def of(pages: float = 5e7, engine: str = "postgresql", **given: float) -> Need:
    return need(pages, _INPUTS, engine, Assumptions(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_ten_times_the_pages_take_ten_times_the_disk_and_at_most_ten_times_the_cores(engine: str) -> None:
    small, large = of(1e8, engine), of(1e9, engine)
    assert large.disk_gb_a_month == pytest.approx(10 * small.disk_gb_a_month)
    assert large.crawl_cores == pytest.approx(10 * small.crawl_cores)
    assert small.server_cores < large.server_cores <= 10 * small.server_cores
    assert large.crawls == pytest.approx(10 * small.crawls, rel=0.01)


def test_slow_crawls_take_more_processes_and_more_of_servers_and_postgresql_for_the_same_pages() -> None:
    slow, fast = of(pace=0.1), of(pace=10)
    assert slow.crawls >= 90 * fast.crawls
    assert slow.server_cores > 2 * fast.server_cores
    assert slow.postgresql_cores > 2 * fast.postgresql_cores


def test_what_the_extraction_service_does_is_counted_by_its_share_of_the_pages() -> None:
    assert of().extraction_cores == 0
    half, whole = of(browser_share=0.5), of(browser_share=1)
    assert whole.extraction_cores == pytest.approx(2 * half.extraction_cores)
    assert of(browser_share=1).extraction_cores > 100 * of(service_share=1).extraction_cores
    assert of(extraction_share=1).extraction_cores > of(service_share=1).extraction_cores


def test_more_and_larger_items_and_longer_retention_take_more_disk() -> None:
    plain = of()
    assert of(items_per_page=10).disk_gb_a_month > 2 * plain.disk_gb_a_month
    assert of(items_per_page=10) == of(item_bytes=10 * 1024)
    assert 0 < of(items_per_page=0).disk_gb_a_month < plain.disk_gb_a_month
    assert of(retention_days=90).disk_gb_kept == pytest.approx(3 * plain.disk_gb_kept)


def test_a_price_multiplies_cores_and_disk() -> None:
    plain, priced = of(), of(core_price=10, gb_price=0.5)
    assert plain.price == 0
    cores = plain.crawl_cores + plain.server_cores + plain.postgresql_cores
    assert priced.price == pytest.approx(10 * cores + 0.5 * plain.disk_gb_kept)


def test_the_page_of_the_docs_has_the_tables_of_the_present_inputs() -> None:
    rows = [need(pages, _INPUTS, "postgresql", Assumptions()) for pages in (1e6, 5e7, 1e9)]
    for text in (table(rows, Assumptions()), inputs_table(_INPUTS)):
        assert textwrap.indent(text, "   ") in _PAGE.read_text("utf-8")
