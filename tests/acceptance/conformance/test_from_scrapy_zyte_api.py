"""The how-to "From scrapy-zyte-api" says what is: the same spiders run with either package against one server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from scrapy_ext.crawl.session.zyte_api_names import META, SETTINGS
from tests.acceptance.conformance.relay import Relay
from tests.acceptance.conformance.shop import Shop
from tests.support.docs_tables import tables_of
from tests.support.servers import RunningServer, without_keys

HOWTO: Final = tables_of("howto/from-scrapy-zyte-api.rst")
ROOT: Final = Path(__file__).resolve().parents[3]
SIDES: Final = ("theirs", "ours")


def _in_order(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)


class Both:
    """Requests and items of the crawls of both sides."""

    def __init__(self, found: dict[str, Any], bodies: dict[tuple[str, str], list[dict[str, Any]]], site: str) -> None:
        self.found = found
        self._bodies = bodies
        self._site = site

    def sent(self, crawl: str, page: str | None = None) -> list[list[dict[str, Any]]]:
        """The bodies that each side has sent, in an order of their own; those for one page, if it is named."""
        sent = [self._bodies.get((side, crawl.replace(" ", "-")), []) for side in SIDES]
        wanted = None if page is None else self._site + page
        return [sorted((body for body in bodies if wanted in (None, body["url"])), key=_in_order) for bodies in sent]

    def items(self, crawl: str, page: str) -> list[list[dict[str, Any]]]:
        """The items of a page that each side has got."""
        url = page if page.startswith("http") else self._site + page
        return [[item for item in self.found[side][crawl]["items"] if item["url"] == url] for side in SIDES]

    def stats(self, crawl: str, theirs: str, ours: str) -> list[Any]:
        """A stat of each side."""
        pairs = zip(SIDES, (theirs, ours), strict=True)
        return [self.found[side][crawl]["stats"].get(name) for side, name in pairs]

    def same(self, crawl: str, page: str) -> None:
        """Each side has sent one request for a page, the same one, and got the same."""
        theirs, ours = self.sent(crawl, page)
        assert theirs == ours
        assert len(ours) == 1
        got, here = self.items(crawl, page)
        assert got == here
        assert len(here) == 1


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, extraction: RunningServer, shop: Shop) -> Iterator[Both]:
    relay, folder = Relay(extraction.url), tmp_path_factory.mktemp("both")
    found = {}
    for side in SIDES:
        out = folder / f"{side}.json"
        done = subprocess.run(
            [sys.executable, "-m", "tests.acceptance.conformance.both", side, shop.url, relay.url, str(out)],
            cwd=ROOT,
            env={**without_keys(), "SERVICE_KEY": extraction.extract_key, "PYTHONPATH": os.fspath(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found[side] = json.loads(out.read_text())
    yield Both(found, relay.bodies, shop.url)
    relay.close()


def _fields_of_settings(both: Both) -> None:
    both.same("requests", "/?plain")
    assert both.sent("requests", "/?plain")[1][0]["tags"] == {"of": "settings"}


def _fields_of_page_objects(both: Both) -> None:
    both.same("provider", "/product?product")
    assert both.sent("provider", "/product?product")[1][0]["tags"] == {"of": "provider"}


def _log(both: Both) -> None:
    lines = [both.found[side]["requests"]["log"] for side in SIDES]
    assert all(any("/?plain" in line for line in each) for each in lines)
    assert not any("/?0" in line for side in SIDES for line in both.found[side]["budget"]["log"])


def _off(both: Both) -> None:
    """Theirs fails then where its add-on is on."""
    assert both.sent("off") == [[], []]
    assert both.items("off", "/?0")[1][0]["status"] == 200


def _transparent(both: Both) -> None:
    theirs, ours = both.sent("asked")
    assert theirs == ours
    assert len(ours) == 2
    assert both.items("asked", "/?nothing-said")[0] == both.items("asked", "/?nothing-said")[1]


def _budget(both: Both) -> None:
    theirs, ours = both.sent("budget")
    assert theirs == ours
    assert len(ours) == 2


def _retry_policy(crawl: str) -> Callable[[Both], None]:
    def check(both: Both) -> None:
        assert list(map(len, both.sent(crawl, "/?banned"))) == [1, 1]

    return check


def _referrer(both: Both) -> None:
    both.same("referrer", "/?second")
    (header,) = both.sent("referrer", "/?second")[1][0]["customHttpRequestHeaders"]
    assert header["name"] == "Referer"


def _cookies(both: Both) -> None:
    theirs, ours = (bodies[0] for bodies in both.sent("cookies"))
    sent = [cookies[0] for cookies in (theirs["experimental"]["requestCookies"], ours["requestCookies"])]
    assert [(cookie["name"], cookie["value"]) for cookie in sent] == [("a", "1")] * 2
    assert [item["status"] for items in both.items("cookies", "/?cookies") for item in items] == [200, 200]


def _direct(both: Both) -> None:
    """By the user's handler, and one request only by the user's fingerprinter."""
    assert both.sent("direct") == [[], []]
    theirs, ours = (both.found[side]["direct"]["items"] for side in SIDES)
    assert theirs == ours
    assert [item["flags"] for item in ours] == [["by the user's handler"]]


#: What shows that the two names of a row do the same, by the first.
OF_SETTINGS: Final[dict[str, Callable[[Both], None]]] = {
    "ZYTE_API_URL": lambda both: both.same("requests", "/?plain"),
    "ZYTE_API_KEY": lambda both: both.same("requests", "/?plain"),
    "ZYTE_API_ENABLED": _off,
    "ZYTE_API_TRANSPARENT_MODE": _transparent,
    "ZYTE_API_AUTOMAP_PARAMS": _fields_of_settings,
    "ZYTE_API_PROVIDER_PARAMS": _fields_of_page_objects,
    "ZYTE_API_LOG_REQUESTS": _log,
    "ZYTE_API_MAX_REQUESTS": _budget,
    "ZYTE_API_RETRY_POLICY": _retry_policy("policy"),
    "ZYTE_API_REFERRER_POLICY": _referrer,
    "ZYTE_API_EXPERIMENTAL_COOKIES_ENABLED": _cookies,
    "ZYTE_API_FALLBACK_HTTP_HANDLER": _direct,
    "ZYTE_API_FALLBACK_HTTPS_HANDLER": _direct,
    "ZYTE_API_FALLBACK_REQUEST_FINGERPRINTER_CLASS": _direct,
}


def _automap(both: Both) -> None:
    for page in ("/?on", "/?fields", "/?without"):
        both.same("requests", page)
    assert both.sent("requests", "/?off") == [[], []]
    theirs, ours = both.items("requests", "/?off")
    assert theirs == ours


def _manual(both: Both) -> None:
    theirs, ours = both.sent("requests", "/?manual")
    assert theirs == ours
    (sent,) = ours
    assert set(sent) == {"url", "httpResponseBody", "tags"}


OF_META: Final[dict[str, Callable[[Both], None]]] = {
    "zyte_api_automap": _automap,
    "zyte_api": _manual,
    "zyte_api_provider": lambda both: both.same("page objects", "/product?meta"),
    "zyte_api_retry_policy": _retry_policy("requests"),
}


def test_every_equivalent_has_a_test() -> None:
    assert OF_SETTINGS.keys() == {theirs for theirs, row in SETTINGS.items() if row.ours}
    assert OF_META.keys() == {theirs for theirs, row in META.items() if row.ours}
    assert PAGE_OBJECTS.keys() == {row[0] for row in HOWTO["Page objects"]}
    assert CLOSED.keys() == {row[0] for row in HOWTO["Close reasons"]}
    assert STATS.keys() == {row[0] for row in HOWTO["Stats"]}


@pytest.mark.full
@pytest.mark.parametrize("setting", OF_SETTINGS)
def test_a_setting_does_what_its_equivalent_does(both: Both, setting: str) -> None:
    OF_SETTINGS[setting](both)


@pytest.mark.full
@pytest.mark.parametrize("key", OF_META)
def test_a_meta_key_does_what_its_equivalent_does(both: Both, key: str) -> None:
    OF_META[key](both)


@pytest.mark.full
@pytest.mark.parametrize("page", ["/?plain", "/echo", "/?headers", "/not-there"])
def test_the_same_is_sent_for_a_request_and_the_same_page_comes(both: Both, page: str) -> None:
    both.same("requests", page)


@pytest.mark.full
def test_a_request_that_breaks_a_rule_is_not_sent(both: Both) -> None:
    theirs, ours = both.sent("requests", "/?rules")
    assert (len(theirs), ours) == (1, [])
    (got,), (here,) = both.items("requests", "/?rules")
    assert got["failure.value.parsed.type"] == "/request/unprocessable"
    assert here["error"]["names"][0] == "ContractError"
    assert here["error"]["broken"]


@pytest.mark.full
@pytest.mark.parametrize("page", ["/script?browser", "/product?by-http", "/product?options"])
def test_both_sides_of_the_table_of_responses_have_the_same_value(both: Both, page: str) -> None:
    both.same("requests", page)
    ((here,),) = both.items("requests", page)[1:]
    assert here.keys() == {"url"} | {row[0].strip("`") for row in HOWTO["Responses"]}


@pytest.mark.full
@pytest.mark.parametrize(
    ("crawl", "page"), [("requests", "/?banned"), ("requests", "http://nowhere.invalid/"), ("wrong key", "/?0")]
)
def test_both_sides_of_the_table_of_errors_have_the_same_value(both: Both, crawl: str, page: str) -> None:
    (theirs,), (here,) = both.items(crawl, page)
    expressions = {row[0].strip("`") for row in HOWTO["Errors"] if row[1] != "none"}
    assert here.keys() == {"url", "error"} | expressions
    assert {name: theirs[name] for name in expressions} == {name: here[name] for name in expressions}
    assert here["failure.check(RequestError) is not None"] is True
    assert "ExtractError" in here["error"]["names"]


#: The crawl that is closed so.
CLOSED: Final = {
    "``closespider_max_zapi_requests``": "budget",
    "``zyte_api_bad_key``": "wrong key",
    "``zyte_api_suspended_account``": "suspended",
}


@pytest.mark.full
@pytest.mark.parametrize("row", HOWTO["Close reasons"], ids=lambda row: row[0])
def test_crawls_close_with_the_reasons_of_a_row(both: Both, row: list[str]) -> None:
    reasons = both.stats(CLOSED[row[0]], "finish_reason", "finish_reason")
    assert reasons == [cell.strip("`") for cell in row]


def _equal(crawl: str) -> Callable[[Both, str, str], None]:
    def check(both: Both, theirs: str, ours: str) -> None:
        first, second = both.stats(crawl, theirs, ours)
        assert first == second
        assert second

    return check


def _error_types(both: Both, theirs: str, ours: str) -> None:
    kind = "download/temporary-error"
    assert both.stats("policy", theirs.replace("<type>", kind), ours.replace("<type>", kind)) == [1, 1]


def _there(both: Both, theirs: str, ours: str) -> None:
    assert all(both.stats("requests", theirs, ours.split("``", maxsplit=1)[0]))


#: What shows that the two names of a row count the same; None for a row without an equivalent.
STATS: Final[dict[str, Callable[[Both, str, str], None] | None]] = {
    "``scrapy-zyte-api/attempts``": _equal("page objects"),
    "``scrapy-zyte-api/success``": _equal("page objects"),
    "``scrapy-zyte-api/error_types/<type>``": _error_types,
    "``scrapy-zyte-api/mean_response_seconds``": _there,
    "``scrapy-zyte-api/request_args/…``, ``processed``, ``status_codes/…``, ``error_ratio``": None,
}


@pytest.mark.full
@pytest.mark.parametrize("row", HOWTO["Stats"], ids=lambda row: row[0])
def test_stats_of_a_row_count_the_same(both: Both, row: list[str]) -> None:
    check = STATS[row[0]]
    assert (check is None) == (row[1] == "none")
    if check is not None:
        check(both, row[0].strip("`"), row[1].strip("`"))


#: The pages of the crawl of page objects that show a row.
PAGE_OBJECTS: Final = {
    "``Product``, ``Article`` and the other items, ``BrowserHtml``, ``BrowserResponse``, ``HttpResponse``, "
    "``AnyResponse``": (
        "/product?product", "/article?article", "/script?html", "/script?browser-response", "/?http-response", "/?any",
    ),
    "``scrapy_zyte_api.Screenshot``, with ``body``": ("/script?shot",),
    "``Annotated[Product, ExtractFrom.httpResponseBody]``": ("/product?extract-from",),
    "``Annotated[Actions, actions([...])]``": ("/script?actions",),
    "``Annotated[CustomAttributes, custom_attrs({...})]``": ("/product?attributes",),
    # The service of the test has no proxies for it, so it is the field alone that is compared.
    '``Annotated[Geolocation, "DE"]``': ("/?geolocation",),
    "``Annotated[NetworkCapture, network_capture([...])]``": (),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("row", PAGE_OBJECTS)
def test_page_objects_of_a_row_are_made_of_the_same_request(both: Both, row: str) -> None:
    for page in PAGE_OBJECTS[row]:
        theirs, ours = ([_with_extract_from(body) for body in bodies] for bodies in both.sent("page objects", page))
        if page == "/product?attributes":  # The callback has the response, so the page comes with the item.
            assert ours[0].pop("browserHtml") is True
        assert theirs == ours
        assert len(ours) == 1
        if page != "/?geolocation":
            got, here = both.items("page objects", page)
            assert got == here
            assert len(here) == 1


def _with_extract_from(body: dict[str, Any]) -> dict[str, Any]:
    """The same with what the options of a kind hold in its other form."""
    rest = {name: value for name, value in body.items() if name != "productOptions"}
    return {**rest, **body.get("productOptions", {})}
