"""Next page and number of this page: what is found, and what is left out rather than guessed."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page.page import Page

SHOP = "https://shop.example/lamps"


def pagination(html: str, url: str = SHOP) -> Pagination:
    return Pagination(Page(f"<title>Lamps</title><h1>Lamps</h1>{html}", url))


def next_url(html: str, url: str = SHOP) -> str | None:
    request = pagination(html, url).next
    return request.url if request else None


@pytest.mark.parametrize(
    ("page", "html", "expected"),
    [
        (SHOP, "<link rel=next href='?page=2'>", "?page=2"),
        (SHOP, "<a rel=next href='?page=2'>weiter blättern</a>", "?page=2"),
        (SHOP, "<div class=pagination><a href='?page=2'>Next</a></div>", "?page=2"),
        (SHOP, "<nav aria-label=Pagination><a href='?page=2' aria-label='Next page'></a></nav>", "?page=2"),
        (SHOP, "<div class=pager><a href='?page=2' title='Next'><img src=x.gif></a></div>", "?page=2"),
        (SHOP, "<a class='pagination__next' href='?p=2'><i></i></a>", "?p=2"),
        (SHOP, "<ul class=pagination><li class=next><a href='?p=2'>»</a></li></ul>", "?p=2"),
        (SHOP, "<p><a href='/lamps/page/2/'>Older posts</a></p>", "/page/2/"),
        (SHOP, "<div class=load-more><a href='?page=2'>Load more</a></div>", "?page=2"),
        (f"{SHOP}?page=3", "<div class=pager><a href='?page=2'>‹</a><a href='?page=4'>›</a></div>", "?page=4"),
        (f"{SHOP}/page/2/", "<p class=pager><a href=/lamps>1</a><b>2</b><a href=/lamps/page/3/>3</a></p>", "/page/3/"),
        (f"{SHOP}?start=20", "<p class=pager><a href='?start=0'>Prev</a><a href='?start=40'>Next</a></p>", "=40"),
        (f"{SHOP}-2.html", "<p class=pager><a href=lamps.html>1</a><a href=lamps-3.html>Next</a></p>", "-3.html"),
    ],
)  # fmt: skip
def test_the_next_page_is_found_by_what_its_link_says_and_where_it_leads(page: str, html: str, expected: str) -> None:
    assert (next_url(html, page) or "").endswith(expected)


@pytest.mark.parametrize(
    "text",
    ["Weiter", "Nächste Seite", "Page suivante »", "Siguiente", "Próxima página", "Avanti", "Volgende", "Nästa sida",
     "Næste", "Seuraava", "Następna strona", "Další", "Következő", "Следующая", "Далее", "Sonraki", "次へ",
     "次のページ", "下一页", "下一頁", "다음", "التالي", "הבא", "Trang sau", "Επόμενη"],
)  # fmt: skip
def test_next_is_known_in_many_languages(text: str) -> None:
    html = f"<div class=pagination><a href='?page=1'>1</a><a href='?page=2'>{text}</a></div>"
    assert next_url(html) == f"{SHOP}?page=2"


@pytest.mark.parametrize(
    "html",
    [
        "<div class=carousel><a class=next href='?slide=2'>Next</a></div>",
        "<div class=post-navigation><a class=nav-next href=/a-second-story/>Next</a></div>",
        "<div class=post-navigation><a rel=next href=/a-second-story/>Next: a second story</a></div>",
        "<link rel=next href=/chapter-two.html>",
        "<div class=calendar><a class=next href='?month=2'>Next</a></div>",
        "<div class=pagination><a class='next disabled' href='?page=2'>Next</a></div>",
        "<div class=pagination><a class=next href='#'>Next</a></div>",
        "<div class=pagination><a class=next href='javascript:void(0)'>Next</a></div>",
        "<div class=pagination><a class=next href='https://other.example/lamps?page=2'>Next</a></div>",
        "<a href=/whats-next>What is next</a><a href=/next>Next</a>",
        "<p><a href=/sale>More</a> <a href=/lamps/red>Show more lamps</a></p>",
        "",
    ],
)
def test_what_is_not_surely_the_next_page_is_left_out(html: str) -> None:
    assert next_url(html) is None


def test_the_last_page_has_no_next_one() -> None:
    html = "<div class=pagination><a href='?page=1'>1</a><a href='?page=2'>2</a><b class=current>3</b></div>"
    found = pagination(html, f"{SHOP}?page=3")
    assert found.next is None
    assert found.number == 3


def test_a_link_to_the_page_before_is_not_the_next_one_whatever_it_is_called() -> None:
    assert next_url("<div class=pagination><a class=next href='?page=1'>Next</a></div>", f"{SHOP}?page=2") is None


@pytest.mark.parametrize(
    ("page", "html", "number"),
    [
        (SHOP, "<ul class=pagination><li class=active><a href='#'>1</a></li><li><a href='?page=2'>2</a></li></ul>", 1),
        (SHOP, "<p class=pager><a href='?page=0'>1</a><a aria-current=page href='?page=1'>2</a></p>", 2),
        (SHOP, "<div class=pagination><a href='?page=1'>1</a> <span>2</span> <a href='?page=3'>3</a></div>", 2),
        (SHOP, "<div class=pagination>Page 4 of 9 <a href='?page=5'>Next</a></div>", 4),
        (SHOP, "<div class=pagination><a href='?page=2'>Next</a></div>", 1),
        (f"{SHOP}?page=7", "<div class=pagination><a href='?page=8'>Next</a></div>", 7),
        (f"{SHOP}?page=7", "<p>Lamps</p>", None),
        (SHOP, "<p>Page 3 of the story</p>", None),
        (SHOP, "", None),
    ],
)  # fmt: skip
def test_the_number_of_the_page_is_that_which_the_row_of_pages_marks(page: str, html: str, number: int | None) -> None:
    assert pagination(html, page).number == number


@pytest.mark.parametrize(
    "text",
    ["Page 2 of 7", "Seite 2 von 7", "Strana 2 z 7", "Strona 2 z 7", "Сторінка 2 з 7", "Pagina 2 din 7", "2/7 oldal",
     "Lapa 2 no 7", "Σελίδα 2 από 7", "Stranica 2 od 7", "2 / 7 ページ", "7ページ中2ページ目", "第 2 页，共 7 页",
     "共7页 第2页", "صفحة 2 من 7", "עמוד 2 מתוך 7", "หน้า 2 จาก 7"],
)  # fmt: skip
@pytest.mark.parametrize("names", ["class=pager", ""])
def test_a_line_that_counts_the_pages_between_links_to_others_has_the_number(text: str, names: str) -> None:
    html = f"<div {names}><a href='?page=1'>‹</a> <span>{text}</span> <a href='?page=3'>›</a></div>"
    assert pagination(html).number == 2


def test_a_line_that_counts_pages_without_links_to_those_beside_has_no_number() -> None:
    assert pagination("<div><a href='?page=5'>Terms</a> <span>Page 2 of 7</span></div>").number is None
    assert pagination("<div><a href='/guide.pdf'>Guide</a> <span>Page 2 of 7</span></div>").number is None
