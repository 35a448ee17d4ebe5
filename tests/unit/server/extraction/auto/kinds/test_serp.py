from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.results.targets import target_of
from tests.support.serp_pages import AD, HIDDEN, PAGES, QUERY, RESULTS

ENGINE = "https://search.example/search?q=x"


@pytest.mark.parametrize("name", PAGES)
def test_results_are_found_in_the_pages_of_engines_and_advertisements_left_out(name: str) -> None:
    page = PAGES[name]
    item = extract("serp", page.html, page.url)
    results = item["organicResults"]
    assert [(each["name"], each["url"]) for each in results] == [(title, url) for title, url, _ in RESULTS]
    assert [each["description"] for each in results] == [text for _, _, text in RESULTS]
    assert [each["rank"] for each in results] == [1, 2, 3, 4]
    assert sum("displayedUrlText" in each for each in results) == page.shown_urls
    assert AD[0] not in str(item)
    assert item["pageNumber"] == page.page_number
    assert item["metadata"]["searchedQuery"] == item["metadata"]["displayedQuery"] == QUERY
    assert item["metadata"].get("totalOrganicResults") == page.total


def test_where_the_address_is_hidden_the_redirect_is_kept_and_its_site_guessed() -> None:
    results = extract("serp", HIDDEN.html, HIDDEN.url)["organicResults"]
    assert [each["name"] for each in results] == [title for title, _, _ in RESULTS]
    assert results[0]["url"] == "https://search.example/link?url=k0XyZ"
    assert results[0]["guessedOrigin"] == "https://lamps.example.org"


def test_a_page_without_results_has_none() -> None:
    item = extract("serp", "<title>x</title><h1>Nothing was found</h1><a href=https://o.example.org/>other</a>", ENGINE)
    assert "organicResults" not in item
    assert "pageNumber" not in item
    assert item["metadata"]["searchedQuery"] == "x"


@pytest.mark.parametrize("label", ["Ad", "Sponsored", "Anzeige", "Annonce", "Реклама", "広告"])
def test_what_is_labelled_as_an_advertisement_is_none_in_any_language(label: str) -> None:
    def block(number: int, more: str = "") -> str:
        link = f"<a href=https://s{number}.example.org/>Result {number}</a>"
        return f"<div class=r>{more}<h3>{link}</h3><p>Text of it.</p></div>"

    html = f"<main>{block(1, f'<span>{label}</span>')}{block(2)}{block(3)}</main>"
    assert [each["name"] for each in extract("serp", html, ENGINE)["organicResults"]] == ["Result 2", "Result 3"]


@pytest.mark.parametrize(
    ("link", "destination"),
    [
        ("https://search.example/url?q=https%3A%2F%2Fa.example.org%2Fx%3Fy%3D1&sa=U", "https://a.example.org/x?y=1"),
        ("https://www.search.example/l/?uddg=http%3A%2F%2Fa.example.org%2F", "http://a.example.org/"),
        ("https://a.example.org/x", "https://a.example.org/x"),
        ("https://search.example/settings", None),
        ("https://search.example/url?q=javascript:alert(1)", None),
        ("https://search.example/url?q=https://search.example/x", None),
        ("https://search.example/ck/a?u=a1aHR0cHM6Ly9hLmV4YW1wbGUub3JnLw", "https://a.example.org/"),
        ("https://search.example/ck/a?u=a1aHR0c!!!", None),
    ],
)
def test_redirects_of_the_engine_are_unwrapped(link: str, destination: str | None) -> None:
    assert target_of(link, ENGINE) == destination
