"""Browser pages that leave through a proxy of the operator's."""

from __future__ import annotations

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target
from tests.support.upstream_proxy import Upstream


def test_a_page_and_all_that_it_loads_leave_through_the_proxy_in_the_language_of_its_country(
    site: Target, forbidden: Target
) -> None:
    site.page("/up.css", "h1 {color: red}", Content_Type="text/css")
    url = site.page(
        "/up",
        f"<link rel=stylesheet href=/up.css><img src='{forbidden.url()}'><h1></h1>"
        "<script>document.querySelector('h1').textContent = [navigator.language, new Date().getTimezoneOffset() < 0,"
        "Intl.DateTimeFormat().resolvedOptions().timeZone, Intl.NumberFormat().resolvedOptions().locale]</script>",
    )
    calls = forbidden.connections
    with Upstream() as upstream:
        proxies = (f"FR:residential={upstream.address}", "IT=http://user-7:secret@127.0.0.1:1")
        with Service(allow_hosts=(site.host,), proxies=proxies, limits=ServiceLimits(quiet=0.1, connect=3)) as running:
            result = running.result(url=url, browserHtml=True, geolocation="FR")
            detail = running.problem(520, "/download/temporary-error", url=url, browserHtml=True, geolocation="IT")
    assert "<h1>fr-FR,true,Europe/Paris,fr-FR</h1>" in result["browserHtml"]
    assert site.calls_of("/up")[-1].header("accept-language").startswith("fr-FR")  # type: ignore[union-attr]
    assert upstream.asked == [f"127.0.0.1:{site.port}"] * len(upstream.asked)
    assert len(upstream.asked) >= 2
    assert detail == "The proxy IT did not answer. Ask the operator of this server to check it."
    assert forbidden.connections == calls
