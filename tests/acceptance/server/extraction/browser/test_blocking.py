"""The operator's block list holds for all that a page in the browser asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target


@pytest.fixture(scope="module")
def blocking(site: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    listed: Path = tmp_path_factory.mktemp("blocking") / "domains"
    listed.write_text("blocked.example\n")
    rules = (f"blocked.example:80=127.0.0.1:{site.port}",)
    limits = ServiceLimits(quiet=0.1, load=3, settle=2)
    with Service(allow_hosts=(site.host,), connect_to=rules, block_list=listed, limits=limits) as running:
        yield running


@pytest.mark.parametrize(
    "way",
    ["itself", "redirect", "script"],
)
def test_a_page_that_is_blocked_or_leads_there_is_451(blocking: Service, site: Target, way: str) -> None:
    there = "http://blocked.example/never"
    url = {
        "itself": there,
        "redirect": site.page("/to-blocked", "", 302, Location=there),
        "script": site.page("/script-to-blocked", f"<script>location = '{there}'</script>"),
    }[way]
    answer = blocking.extract(url=url, browserHtml=True)
    assert (answer.status, answer.json.get("blockedDomain")) == (451, "blocked.example"), answer.body[:300]
    assert not site.calls_of("/never")


def test_an_action_does_not_lead_to_a_blocked_domain(blocking: Service, site: Target) -> None:
    url = site.page("/leads", "<h1>here</h1>")
    actions = [{"action": "goto", "url": "http://blocked.example/never"}]
    result = blocking.result(url=url, browserHtml=True, actions=actions)
    assert "operator of this server" in result["actions"][0]["error"]
    assert (result["url"], "here" in result["browserHtml"]) == (url, True)
    assert not site.calls_of("/never")


def test_a_page_loads_nothing_from_a_blocked_domain(blocking: Service, site: Target) -> None:
    url = site.page("/embeds", "<h1>here</h1><iframe src='http://blocked.example/frame'></iframe>")
    assert "here" in blocking.result(url=url, browserHtml=True, includeIframes=True)["browserHtml"]
    assert not site.calls_of("/frame")
