"""robots.txt, for pages in the browser."""

from __future__ import annotations

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("way", ["itself", "redirect", "script"])
def test_a_page_that_robots_txt_refuses_is_521_also_where_others_lead_to_it(way: str) -> None:
    site = Target().start()
    site.page("/robots.txt", "User-agent: *\nDisallow: /private\n")
    there = site.page("/private", "secret")
    url = {
        "itself": there,
        "redirect": site.page("/redirect", "", 302, Location=there),
        "script": site.page("/script", f"<script>location = '{there}'</script>"),
    }[way]
    with Service(allow_hosts=(site.host,), obey_robots=True, limits=ServiceLimits(quiet=0.2)) as running:
        running.problem(521, "/download/internal-error", url=url, browserHtml=True)
        led = running.result(
            url=site.page("/open", "here"), browserHtml=True, actions=[{"action": "goto", "url": there}]
        )
    assert "robots.txt" in led["actions"][0]["error"]
    assert "here" in led["browserHtml"]
    assert way != "itself" or not site.calls_of("/private")
    site.stop()
