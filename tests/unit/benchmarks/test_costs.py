"""The model of cost, and its table in the docs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cost_model import inputs_table, objects_table, table
from rig import costs
from rig.costs import Assumptions, Need, load, need, objects

from scrapy_ext.server.store.engine import connection_limits
from scrapy_ext.server.store.records import chunks, writes

_INPUTS = load()
_DOCS = Path(__file__).parents[3] / "docs"
_PAGE = _DOCS / "howto" / "sizing.rst"
_RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


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
    assert of(items_per_page=10).disk_gb_a_month == of(item_bytes=10 * 1024).disk_gb_a_month
    assert 0 < of(items_per_page=0).disk_gb_a_month < plain.disk_gb_a_month
    assert of(retention_days=90).disk_gb_kept == pytest.approx(3 * plain.disk_gb_kept)


def test_a_price_multiplies_cores_and_disk() -> None:
    plain, priced = of(), of(core_price=10, gb_price=0.5)
    assert plain.price == 0
    cores = plain.crawl_cores + plain.server_cores + plain.postgresql_cores
    assert priced.price == pytest.approx(10 * cores + 0.5 * (plain.disk_gb_kept + plain.frontier_gb))


def test_more_commits_for_the_same_pages_write_more_log_and_no_more_disk() -> None:
    slow, fast = of(pace=0.1), of(pace=10)
    assert slow.log_gb_a_month > 2 * fast.log_gb_a_month
    assert slow.transactions > 2 * fast.transactions
    assert slow.disk_gb_a_month < 1.1 * fast.disk_gb_a_month


def test_larger_items_are_written_to_the_log_once_for_each_time_that_their_chunk_grows() -> None:
    plain, large = of(), of(item_bytes=11 * 1024)
    more_disk = large.disk_gb_a_month - plain.disk_gb_a_month
    assert large.log_gb_a_month - plain.log_gb_a_month > 5 * more_disk
    by_many = of(item_bytes=11 * 1024, pace=500).log_gb_a_month - of(pace=500).log_gb_a_month
    assert by_many < 3 * more_disk


def test_fewer_crawls_and_more_of_them_on_a_worker_take_fewer_connections_and_less_disk_for_frontiers() -> None:
    plain = of()
    assert of(pace=1).connections < plain.connections
    assert of(pace=1).frontier_gb < plain.frontier_gb / 5
    assert of(worker_units=128).connections < plain.connections < of(worker_units=16).connections
    assert of(engine="sqlite").connections == 0


def test_connections_and_chunks_of_the_model_are_those_of_the_store() -> None:
    def sum_of(*limits: connection_limits.ConnectionLimits) -> int:
        return sum(each.writers + each.readers for each in limits)

    # One connection for heartbeats, and one for notifications.
    node = sum_of(connection_limits.NODE) + 2
    assert sum_of(connection_limits.SERVER) == costs.SERVER_CONNECTIONS
    assert sum_of(connection_limits.WORKER) + node == costs.WORKER_CONNECTIONS
    assert (chunks.MAX_LINES, writes._LARGE) == (costs.CHUNK_RECORDS, costs.CHUNK_BYTES)


# ── the inputs, and runs that were measured ──


def result_of(name: str) -> Any:
    return json.loads((_RESULTS / f"{name}.json").read_text("utf-8"))["result"]


_RUNS: dict[str, tuple[Callable[[Any], float], Callable[[Any], float]]] = {
    "browser_pool": (
        lambda of: of["service"]["browser_cpu"],
        lambda run: run["at_once"]["4"]["cpu_ms"]["service"] / 1e3,
    ),
    "extraction_relay": (
        lambda of: of["service"]["body_cpu"],
        lambda run: run["by_kb"]["100"]["cpu_ms"]["service"] / 1e3,
    ),
    "extraction_processes": (
        lambda of: of["service"]["extraction_cpu"],
        lambda run: run["by_processes"]["1"]["cpu_ms"] / 1e3,
    ),
    # One process that is busy all the time.
    "crawl_rate": (
        lambda of: of["crawl"]["cpu"]["page"],
        lambda run: 1 / run["by_rtt_ms"]["0"]["middle"]["scrapy_ext"],
    ),
    "worker_rate": (
        lambda of: of["crawl"]["cpu"]["page"] - 19 * of["link"]["crawl_cpu"],
        lambda run: run["by_server"]["sqlite"]["cpu_us"]["direct 1"] / 1e6,
    ),
    "item_cost": (lambda of: of["item"]["sqlite"]["crawl_cpu"], lambda run: run["added_us"]["exact"] / 1e6),
    "platform_ingest": (
        lambda of: of["item"]["sqlite"]["server_cpu"],
        lambda run: run["cpu_us_per_row"]["scrapy_ext"] / 1e6,
    ),
    "platform_engines": (
        lambda of: of["item"]["postgresql"]["server_cpu"] + of["item"]["postgresql"]["postgresql_cpu"],
        lambda run: sum(run["clients"]["8"]["postgresql"]["items"]["cpu_us"]) / 1e6,
    ),
    "platform_frontier": (lambda of: of["frontier"]["sqlite"], lambda run: run["sizes"][0]["bytes_each"]),
    "platform_frontier-postgresql": (
        lambda of: of["frontier"]["postgresql"],
        lambda run: run["sizes"][0]["bytes_each"],
    ),
}


@pytest.mark.parametrize("name", _RUNS)
def test_an_input_is_what_its_benchmark_has_measured(name: str) -> None:
    of_input, of_run = _RUNS[name]
    # Runs differ by as much. A larger difference: take the new figure into costs.json.
    assert 1 / 1.5 < of_input(_INPUTS) / of_run(result_of(name)) < 1.5


def test_the_model_needs_no_more_than_the_machine_of_the_large_crawl_had() -> None:
    run = result_of("large_crawl")
    pace, cores = run["rate"] / run["workers"], 2
    given = Assumptions(pace=pace, pages_per_job=run["pages"], links_per_page=12, parse_ms=0, peak=1, use=1)
    predicted = need(run["rate"] * costs.MONTH_SECONDS, _INPUTS, "postgresql", given)
    # The site and the rest of the machine were on the same cores.
    assert predicted.crawl_cores + predicted.server_cores + predicted.postgresql_cores < cores


def test_the_page_of_the_docs_has_the_tables_of_the_present_inputs() -> None:
    rows = [need(pages, _INPUTS, "postgresql", Assumptions()) for pages in (1e6, 5e7, 1e9)]
    for text in (table(rows, Assumptions()), inputs_table(_INPUTS)):
        assert textwrap.indent(text, "   ") in _PAGE.read_text("utf-8")


def test_the_page_of_objects_has_the_writes_of_the_model() -> None:
    pages = (1e6, 5e7, 1e9)
    found = objects_table(pages, [objects(each, _INPUTS, "postgresql", Assumptions()) for each in pages])
    assert textwrap.indent(found, "   ") in (_DOCS / "architecture" / "objects.rst").read_text("utf-8")


def test_packed_chunks_are_fewer_objects_than_chunks_and_these_fewer_than_writes() -> None:
    found = objects(1e9, _INPUTS, "postgresql", Assumptions())
    assert found.by_write > 100 * found.by_chunk > 500 * found.packed > 0
    few = objects(1e9, _INPUTS, "postgresql", Assumptions(pages_per_job=10))
    assert few.packed == few.packed_gb == 0
