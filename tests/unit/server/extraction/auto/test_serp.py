from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.serp_texts import target_of
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


def found(html: str, url: str = ENGINE) -> list[dict[str, Any]]:
    return list(extract("serp", html, url).get("organicResults", []))


def of(results: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    return [(title, url) for title, url, _ in results]


def host(url: str) -> str:
    return url.removeprefix("https://").partition("/")[0]


def result(title: str, url: str, text: str, more: str = "") -> str:
    return f"<div class=r><h3><a href='{url}'>{title}</a></h3><cite>{host(url)}</cite><p>{text}</p>{more}</div>"


def test_titles_that_nothing_names_are_found_by_the_addresses_and_texts_beside_them() -> None:
    blocks = "".join(
        f"<div><a class=L4 href='{url}'>{title}</a><div class=T1>{text}</div><span class=T9>{host(url)}</span></div>"
        for title, url, text in RESULTS
    )
    results = found(
        f"<table><tr><td>{blocks}</td><td><a href=https://x.example.com/>Other things</a></td></tr></table>"
    )
    assert [(each["name"], each["url"]) for each in results] == of(RESULTS)
    assert results[0]["displayedUrlText"] == "lamps.example.org"


def test_results_without_an_element_of_their_own_have_what_follows_their_titles() -> None:
    blocks = "".join(
        f"<h3><a href='{url}'>{title}</a></h3><span>{text}</span><br><i>{host(url)}</i><br>"
        for title, url, text in RESULTS
    )
    results = found(f"<div id=list>{blocks}</div>")
    assert [(each["name"], each["description"]) for each in results] == [(title, text) for title, _, text in RESULTS]
    assert [each["displayedUrlText"] for each in results] == [host(url) for _, url, _ in RESULTS]


def test_links_of_the_same_site_below_a_result_are_no_results() -> None:
    below = "".join(
        f"<td><div class=sld><h3><a href=https://lamps.example.org/{n}>Part {n} of the site</a></h3>"
        "<div>All that is there to read.</div></div></td>"
        for n in range(4)
    )
    first, *rest = RESULTS
    html = result(*first, more=f"<table><tr>{below}</tr></table>") + "".join(result(*each) for each in rest)
    results = found(f"<div id=rso>{html}</div>")
    assert [(each["name"], each["url"]) for each in results] == of(RESULTS)
    assert results[0]["description"] == first[2]


def test_where_results_show_their_addresses_a_box_without_them_is_none() -> None:
    cards = "".join(
        f"<a class=card href=https://news{n}.example.org/a><div role=heading>News number {n}</div><p>1 day ago</p></a>"
        for n in range(3)
    )
    html = "".join(result(*each) for each in RESULTS[:2]) + f"<div class=box><section>{cards}</section></div>"
    html += "".join(result(*each) for each in RESULTS[2:])
    assert [(each["name"], each["url"]) for each in found(f"<div id=rso>{html}</div>")] == of(RESULTS)


def test_a_part_with_most_of_the_titles_is_no_side_bar_whatever_its_name() -> None:
    html = "".join(result(*each) for each in RESULTS)
    assert len(found(f"<body><form class='col with-sidebar related'>{html}</form>")) == len(RESULTS)


def test_pages_on_other_hosts_of_the_engine_are_results_and_its_services_are_not() -> None:
    url = "https://search.example.com/search?q=wick"
    hosted = [("A blog on wicks", "https://blog.example.com/ada/2231", "All that she knows of wicks, day by day.")]
    services = [
        ("Pictures of wicks", "https://images.example.com/search?text=wick", "The pictures that were found of it."),
        ("Maps", "https://maps.example.com/", "Where wicks are sold in the town, and when."),
    ]
    html = "".join(result(*each) for each in [*RESULTS, *hosted, *services])
    assert [(each["name"], each["url"]) for each in found(html, url)] == of([*RESULTS, *hosted])


def test_a_description_is_as_the_page_shows_it() -> None:
    text = (
        "<p class=text><span class=short>Trim the <b>wick</b>, and the <em>lamp</em>s burn."
        " <span role=button>more</span></span>"
        "<span class=full>Trim the <b>wick</b>, and the <em>lamp</em>s burn. Never when they are hot.</span></p>"
    )
    html = "".join(
        f"<li><h2><a href=https://s{n}.example.org/>Result {n}</a></h2><cite>s{n}.example.org</cite>"
        f"<div class=popup><a href=/c{n}>Saved copy</a> <a href=/t{n}>More of this site</a></div>{text}</li>"
        for n in range(3)
    )
    assert {each["description"] for each in found(f"<ol>{html}</ol>")} == {"Trim the wick, and the lamps burn."}


@pytest.mark.parametrize(
    ("line", "total"), [("找到相关结果约12,300个", 12300), ("过去24个小时", None), ("前3个国家", None)]
)
def test_a_count_of_other_things_is_not_that_of_the_results(line: str, total: int | None) -> None:
    html = "".join(result(*each) for each in RESULTS)
    assert extract("serp", f"<p>{line}</p>{html}", ENGINE)["metadata"].get("totalOrganicResults") == total
