"""Alerts, dashboard and autoscaling in ``deploy/``: over metrics and labels that a server really reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.deploy_files import DEPLOY, KUBERNETES
from tests.support.http import Http

#: Suffixes of the series of a histogram.
OF_HISTOGRAM = ("_bucket", "_sum", "_count")
#: Series of Prometheus's own, not of the server's.
OF_PROMETHEUS = {"up"}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "scrapy-ext.json").read_text())
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """The place and the text of each expression."""
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]
    scaled = yaml.safe_load((KUBERNETES / "components" / "keda" / "scaledobject.yaml").read_text())
    for trigger in scaled["spec"]["triggers"]:
        yield "keda", trigger["metadata"]["query"]


def names_in(expression: str) -> set[str]:
    """The names of metrics in an expression, without functions, labels and durations."""
    plain = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"|\b(?:by|without|on|ignoring)\s*\([^)]*\)", " ", expression)
    words = re.findall(r"\b[a-zA-Z_]\w*\b(?!\s*\()", plain)
    return {word for word in words if word.startswith(("scrapy_ext_", "process_")) or word in OF_PROMETHEUS}


@pytest.fixture
async def reported(http: Http) -> dict[str, str]:
    """The types of the metrics of a server by name."""
    text = (await http.get("/metrics")).text
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


async def test_every_metric_of_alerts_and_dashboard_is_one_of_the_server(reported: dict[str, str]) -> None:
    series = set(reported) | OF_PROMETHEUS
    for name, kind in reported.items():
        if kind == "histogram":
            series |= {name + suffix for suffix in OF_HISTOGRAM}
    # The free part of a database is SQLite's alone.
    series.add("scrapy_ext_database_free_bytes")
    used = {(place, name) for place, expression in expressions() for name in names_in(expression)}
    assert len({place for place, _ in used}) == len({place for place, _ in expressions()})
    assert {(place, name) for place, name in used if name not in series} == set()


async def test_rates_are_of_counters_and_nothing_else(reported: dict[str, str]) -> None:
    for place, expression in expressions():
        rated = set(re.findall(r"(?:rate|increase)\((\w+)", expression))
        for name in rated:
            base = next((name.removesuffix(each) for each in OF_HISTOGRAM if name.removesuffix(each) in reported), name)
            assert reported[base] in ("counter", "histogram"), (place, name)


def test_every_alert_says_what_is_wrong() -> None:
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert rule["annotations"]["summary"]


def test_panels_do_not_overlap_and_use_the_data_source_that_is_chosen() -> None:
    taken: set[tuple[int, int]] = set()
    identifiers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
        assert {target["datasource"]["uid"] for target in panel.get("targets", ())} <= {"${datasource}"}
