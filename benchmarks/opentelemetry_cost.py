"""Processor time of a page in a crawl, and of a small GET in the server, that OpenTelemetry costs.

``off``: no collector is named, so that nothing of OpenTelemetry is imported. ``sampled``: one trace in a hundred is
exported. ``on``: every trace. Metrics are exported every ten seconds in the last two. The crawl goes through an
extraction service that answers at once, and stores on a platform, both without OpenTelemetry. ``ratio``: to ``off``.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from rig.contenders import everything
from rig.crawls import Crawled, crawl
from rig.extraction import extraction
from rig.load import Load, request, send
from rig.processes import Running, python
from rig.rounds import alternate, median, options, report
from rig.services import platform

_CHAINS = 128
_SIZE = 10_000
_SAMPLED = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
_CONNECTIONS = 8


def main() -> None:
    given = options(
        __doc__,
        full={"pages": 5000, "gets": 20_000, "rounds": 5},
        quick={"pages": 300, "gets": 800, "rounds": 1},
    )
    with python("-m", "rig.collector") as collector:
        on = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.said}",
            "OTEL_METRIC_EXPORT_INTERVAL": "10000",
        }
        contenders: dict[str, dict[str, str]] = {"off": {}, "sampled": {**on, **_SAMPLED}, "on": on}
        crawls = _crawls(contenders, given.pages, given.rounds)
        gets = _gets(contenders, given.gets // _CONNECTIONS, given.rounds)
    report(
        "opentelemetry_cost",
        pages=given.pages,
        gets=given.gets,
        rounds=given.rounds,
        crawl=_by_off({name: median(map(_of_page, found)) for name, found in crawls.items()}),
        server=_by_off({name: median(found) for name, found in gets.items()}),
    )


def _crawls(contenders: Mapping[str, dict[str, str]], pages: int, rounds: int) -> dict[str, list[Crawled]]:
    with extraction(_SIZE) as at, platform() as server:
        settings = everything(server.port, server.key, at.service)
        before = max(pages // 5, 130)
        run = partial(crawl, "SameSite", settings, items=before + pages + _CHAINS, site=at.site, size=_SIZE)
        runs = {
            name: partial(run, extra=extra, pages=pages, before=before, chains=_CHAINS)
            for name, extra in contenders.items()
        }
        return alternate(rounds, runs)


def _gets(contenders: Mapping[str, dict[str, str]], number: int, rounds: int) -> dict[str, list[float]]:
    """Return the microseconds of a GET, of which each connection sends ``number``."""
    key = secrets.token_hex(16)
    each = [[request("GET", "/jobq/1/count", key)] * number] * _CONNECTIONS
    with ExitStack() as stack:
        servers = {name: stack.enter_context(_server(key, extra)) for name, extra in contenders.items()}
        runs = {
            name: partial(send, int(server.said.rsplit(":", 1)[1]), server.process.pid, each)
            for name, server in servers.items()
        }
        alternate(1, runs)  # It warms up the servers.
        found: dict[str, list[Load]] = alternate(rounds, runs)
    total = number * _CONNECTIONS
    return {name: [1e6 * load.cpu_seconds / total for load in loads] for name, loads in found.items()}


@contextmanager
def _server(key: str, extra: Mapping[str, str]) -> Generator[Running]:
    keys = {"PLATFORM_API_KEY": key, "EXTRACT_API_KEY": secrets.token_hex(16)}
    with tempfile.TemporaryDirectory() as data:
        options_ = ("--port", "0", "--data", data, "--exit-with-stdin", "--no-runner")
        with python("-m", "scrapy_ext.server", *options_, extra={**keys, **extra}) as running:
            yield running


def _of_page(crawled: Crawled) -> float:
    begun, ended = (crawled.observed[mark]["cpu"] for mark in ("from", "to"))
    return 1e6 * float(ended - begun) / int(crawled.observed["measured_pages"])


def _by_off(cost: Mapping[str, float]) -> dict[str, dict[str, float]]:
    return {
        "cpu_us": {name: round(value, 1) for name, value in cost.items()},
        "ratio": {name: round(value / cost["off"], 2) for name, value in cost.items()},
    }


if __name__ == "__main__":
    main()
