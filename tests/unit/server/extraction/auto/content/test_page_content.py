"""Fields of the extracted content of pages."""

from __future__ import annotations

from typing import Any

from lxml import html as lxml_html

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.probability import LEAST

URL = "https://www.example.org/guide?page=2"
TEXT = "".join(
    f"<p>Step {number}: take the rope in the left hand, lay a loop over the post, pull until the boat lies still.</p>"
    for number in range(1, 8)
)
PAGE = f"""<html lang="en"><head><title>Knots | Harbour School</title></head><body>
<header>
  <a href="/"><img src="/logo.png" alt="Harbour School"></a>
  <nav><a href="/courses">Courses</a><a href="#top">Top</a></nav>
</header>
<main>
  <ol class="breadcrumb"><li><a href="/">Home</a></li><li><a href="/guide">Guide</a></li><li>Knots</li></ol>
  <div id="lesson"><h1>Knots</h1>{TEXT}</div>
  <div class="pagination">
    <a href="?page=1">1</a> <span class="current">2</span> <a href="?page=3">3</a> <a href="?page=3">Next</a>
  </div>
</main>
<aside><a href="/shop">Shop</a></aside>
<footer><a href="/imprint">Imprint</a><a href="mailto:x@example.org">Mail</a></footer>
</body></html>"""


def content(html: str = PAGE) -> dict[str, Any]:
    return extract("pageContent", html, URL)


def test_the_main_text_is_without_the_links_around_it() -> None:
    text = content()["itemMain"]
    assert "Step 1" in text
    assert "Step 7" in text
    assert "Imprint" not in text
    assert "Courses" not in text


def test_the_xpath_leads_to_the_element_with_the_main_text() -> None:
    node = lxml_html.fromstring(PAGE).xpath(content()["itemMainXPath"])[0]
    assert node.get("id") == "lesson"


def test_the_xpath_goes_by_place_where_there_is_no_id_and_counts_what_readers_do_not_see() -> None:
    html = PAGE.replace('<div id="lesson">', "<script>1</script><div>")
    nodes = lxml_html.fromstring(html).xpath(content(html)["itemMainXPath"])
    assert "Step 7" in nodes[0].text_content()
    assert "Imprint" not in nodes[0].text_content()


def test_headline_and_title_are_as_on_the_page() -> None:
    item = content()
    assert (item["headline"], item["title"]) == ("Knots", "Knots | Harbour School")


def test_links_are_sorted_by_the_part_that_they_stand_in() -> None:
    item = content()
    assert item["navigationHeader"] == [
        {"name": "Harbour School", "url": "https://www.example.org/"},
        {"name": "Courses", "url": "https://www.example.org/courses"},
        {"name": "Top", "url": "https://www.example.org/guide?page=2#top"},
    ]
    assert item["navigationFooter"] == [{"name": "Imprint", "url": "https://www.example.org/imprint"}]
    assert item["navigationSidebar"] == [{"name": "Shop", "url": "https://www.example.org/shop"}]


def test_the_next_page_is_found_by_what_its_link_says() -> None:
    item = content()
    assert item["nextPage"]["url"] == "https://www.example.org/guide?page=3"
    assert {link["name"] for link in item["pagination"]} == {"1", "3"}


def test_the_next_page_is_found_by_rel_and_by_number() -> None:
    by_rel = content(PAGE.replace("</head>", '<link rel="next" href="/guide?page=9"></head>'))
    assert by_rel["nextPage"]["url"] == "https://www.example.org/guide?page=9"
    by_number = content(PAGE.replace('<a href="?page=3">Next</a>', ""))
    assert by_number["nextPage"]["url"] == "https://www.example.org/guide?page=3"


def test_the_last_page_has_no_next_one() -> None:
    html = PAGE.replace('<a href="?page=3">3</a> <a href="?page=3">Next</a>', "")
    assert "nextPage" not in content(html)


def test_breadcrumbs_are_listed() -> None:
    assert [crumb["name"] for crumb in content()["breadcrumbs"]] == ["Home", "Guide", "Knots"]


def test_a_page_that_stands_in_noscript_is_read_there() -> None:
    html = f"<html><body><div id=app></div><noscript><h1>Knots</h1>{TEXT}</noscript></body></html>"
    assert "Step 7" in content(html)["itemMain"]


def test_a_page_that_is_there_twice_is_read_once() -> None:
    html = f"<html><body><main><h1>Knots</h1>{TEXT}</main><noscript>{TEXT}</noscript></body></html>"
    assert content(html)["itemMain"].count("Step 7") == 1


def test_an_empty_page_has_no_content_and_the_least_probability() -> None:
    item = content("<html><body></body></html>")
    assert set(item) == {"url", "metadata"}
    assert item["metadata"]["probability"] == LEAST
