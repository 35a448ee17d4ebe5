"""Export from one process to a collector."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from scrapy_ext.telemetry import spans
from scrapy_ext.telemetry.exporting import exporting
from scrapy_ext.telemetry.families import Distribution, Family
from tests.support.collector import Collector

#: A process that has set a provider of its own.
OWN_PROVIDER = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scrapy_ext.telemetry import spans
from scrapy_ext.telemetry.exporting import exporting

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def none():
    return ()

async def main():
    async with exporting("shop", none):
        with spans.request_span("GET", "https://shop.example/"):
            pass
    print([span.name for span in exporter.get_finished_spans()], file=sys.stderr)
    # It is not stopped with the crawl.
    with trace.get_tracer("own").start_as_current_span("own"):
        pass
    print(len(exporter.get_finished_spans()), file=sys.stderr)

asyncio.run(main())
"""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as collector:
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        yield collector


async def measured() -> list[Family]:
    return [
        Family("served_total", "counter", "Served.", [({"by": "http"}, 3)]),
        Family("wait_seconds", "histogram", "Waited.", [({}, Distribution((0.5, 1.0), (1, 2, 3), 9.5))]),
        Family("empty_total", "counter", "Without samples.", []),
    ]


async def test_metrics_are_exported_at_their_interval_and_at_the_end(collector: Collector) -> None:
    async with exporting("shop", measured):
        await asyncio.to_thread(collector.wait_for, lambda: collector.metrics)
        sent = len(collector.bodies)
    assert len(collector.bodies) > sent
    assert collector.metrics == {"served": [({"by": "http"}, 3)], "wait_seconds": [({}, [1, 2, 3])]}


async def test_crawls_of_one_process_share_the_export_until_the_last_one_ends(collector: Collector) -> None:
    async with exporting("shop", measured):
        async with exporting("shop", measured):
            pass
        with spans.request_span("GET", "https://shop.example/"):
            pass
    assert [span.name for span in collector.spans] == ["scrapy.request"]
    assert spans.request_span("GET", "https://shop.example/") is spans.NO_SPAN


async def test_a_wrong_variable_leaves_it_off_with_one_warning(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    async with exporting("shop", measured):
        assert spans.request_span("GET", "https://shop.example/") is spans.NO_SPAN
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf" in caplog.text


async def test_the_missing_extra_is_named_in_one_warning(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    for name in [name for name in sys.modules if name.startswith("scrapy_ext.telemetry.")]:
        if name.endswith(("process", "exporters")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("scrapy_ext.telemetry.process", raising=False)
    async with exporting("shop", measured):
        pass
    assert "scrapy-ext[opentelemetry]" in caplog.text


async def test_metrics_that_cannot_be_read_do_not_end_what_they_measure(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> list[Family]:
        raise RuntimeError("broken")

    async with exporting("shop", broken):
        await asyncio.to_thread(collector.wait_for, lambda: "could not be read" in caplog.text)


@pytest.mark.long
async def test_a_collector_that_hangs_blocks_neither_the_loop_nor_the_end(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.hangs.set()
    loop = asyncio.get_running_loop()
    async with exporting("shop", measured):
        await asyncio.to_thread(collector.wait_for, lambda: collector.bodies)
        for _ in range(10_000):  # more than the queue holds
            with spans.request_span("GET", "https://shop.example/"):
                pass
        longest, last = 0.0, loop.time()
        ending = loop.time()
        while loop.time() - ending < 1:
            await asyncio.sleep(0.01)
            longest, last = max(longest, loop.time() - last), loop.time()
        assert longest < 5, "an export takes ten seconds here"
        ending = loop.time()
    assert loop.time() - ending < 30
    own = [record.getMessage() for record in caplog.records if record.name == "scrapy_ext.telemetry"]
    assert len(own) <= 2
    assert "were not exported within 5 s" in own[-1]


def test_a_provider_that_the_process_has_set_is_used_and_not_stopped() -> None:
    done = subprocess.run([sys.executable, "-c", OWN_PROVIDER], check=True, capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines()[-2:] == ["['scrapy.request']", "2"]
