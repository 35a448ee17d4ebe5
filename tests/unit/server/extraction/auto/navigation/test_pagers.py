# ruff: noqa: E501 — a row of pages is easier to read in one line
"""The rows of pages that the usual frameworks, shops, forums and blogs write, and what only looks like one.

Each is written here, with the names and addresses that the software is documented to use.
"""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page.page import Page

SITE = "https://site.example"


def pagination(html: str, url: str) -> Pagination:
    text = "".join(f"<h2><a href=/item/{name}-{n}77>{name} thing {n}</a></h2>" for n, name in enumerate("abcdef"))
    header = "<header><nav><a href=/>Home</a><a href=/about>About</a><a href=/next-level>Next level</a></nav></header>"
    return Pagination(Page(f"<title>List</title>{header}<main><h1>List</h1>{text}{html}</main>", SITE + url))


#: The address of a page, its row, the address of the next page (None for none), and its number.
PAGERS: dict[str, tuple[str, str, str | None, int | None]] = {
    "bootstrap": (
        "/list?page=2",
        "<nav aria-label='Page navigation example'><ul class=pagination>"
        "<li class=page-item><a class=page-link href='?page=1' aria-label=Previous><span "
        "aria-hidden=true>&laquo;</span></a></li>"
        "<li class=page-item><a class=page-link href='?page=1'>1</a></li>"
        "<li class='page-item active' aria-current=page><a class=page-link href='?page=2'>2</a></li>"
        "<li class=page-item><a class=page-link href='?page=3'>3</a></li>"
        "<li class=page-item><a class=page-link href='?page=3' aria-label=Next><span "
        "aria-hidden=true>&raquo;</span></a></li></ul></nav>",
        "/list?page=3", 2,
    ),
    "wordpress, newest first": (
        "/blog/",
        "<nav class='navigation posts-navigation'><div class=nav-links><div class=nav-previous>"
        "<a href=/blog/page/2/>Older posts</a></div></div></nav>",
        "/blog/page/2/", 1,
    ),
    "wordpress, old words": (
        "/blog/",
        "<div class=navigation><div class=alignleft><a href=/blog/page/2/>&laquo; Previous Entries</a></div>"
        "<div class=alignright></div></div>",
        "/blog/page/2/", 1,
    ),
    "wp-pagenavi": (
        "/blog/page/3/",
        "<div class=wp-pagenavi><span class=pages>Page 3 of 9</span><a class=first href=/blog/>« First</a>"
        "<a class=previouspostslink rel=prev href=/blog/page/2/>«</a><a class='page smaller' href=/blog/page/2/>2</a>"
        "<span class=current>3</span><a class='page larger' href=/blog/page/4/>4</a>"
        "<a class=nextpostslink href=/blog/page/4/>»</a><a class=last href=/blog/page/9/>Last »</a></div>",
        "/blog/page/4/", 3,
    ),
    "blogger": (
        "/",
        "<div class=blog-pager id=blog-pager><span id=blog-pager-older-link><a class=blog-pager-older-link "
        "href='/search?updated-max=2016-05-01T10:00:00-07:00&max-results=7' "
        "id=Blog1_blog-pager-older-link>Older Posts</a></span>"
        "<a class=home-link href=/>Home</a></div>",
        "/search?updated-max=2016-05-01T10:00:00-07:00&max-results=7", None,
    ),
    "drupal 7, from zero": (
        "/news?page=1",
        "<div class=item-list><ul class=pager><li class=pager-first><a href=/news>« first</a></li>"
        "<li class=pager-previous><a href=/news>‹ previous</a></li><li class=pager-item><a href=/news>1</a></li>"
        "<li class=pager-current>2</li><li class=pager-item><a href='/news?page=2'>3</a></li>"
        "<li class=pager-next><a href='/news?page=2'>next ›</a></li><li class=pager-last><a "
        "href='/news?page=8'>last »</a></li></ul></div>",
        "/news?page=2", 2,
    ),
    "drupal 10": (
        "/news",
        "<nav class=pager role=navigation aria-labelledby=pagination-heading><h4>Pagination</h4><ul "
        "class='pager__items js-pager__items'>"
        "<li class='pager__item is-active'><a href='?page=0' title='Current page'><span "
        "class=visually-hidden>Current page</span> 1</a></li>"
        "<li class=pager__item><a href='?page=1' title='Go to page 2'><span class=visually-hidden>Page</span> "
        "2</a></li>"
        "<li class='pager__item pager__item--next'><a href='?page=1' title='Go to next page'><span "
        "class=visually-hidden>Next page</span>"
        "<span aria-hidden=true>››</span></a></li></ul></nav>",
        "/news?page=1", 1,
    ),
    "phpbb 2, plain text around": (
        "/viewforum.php?f=2&start=50",
        "<table><tr><td><span class=nav>Goto page <a href='viewforum.php?f=2&start=25'>Previous</a>&nbsp;&nbsp;"
        "<a href='viewforum.php?f=2&start=0'>1</a>, <a href='viewforum.php?f=2&start=25'>2</a>, <b>3</b>, "
        "<a href='viewforum.php?f=2&start=75'>4</a>&nbsp;&nbsp;<a href='viewforum.php?f=2&start=75'>Next</a>"
        "</span></td></tr></table>",
        "/viewforum.php?f=2&start=75", 3,
    ),
    "phpbb 3, with pages of threads": (
        "/viewforum.php?f=2",
        "<dl><dt><a href=viewtopic.php?t=9>A thread</a><div class=pagination><ul><li><a "
        "href='viewtopic.php?t=9'>1</a></li>"
        "<li><a href='viewtopic.php?t=9&start=10'>2</a></li><li><a href='viewtopic.php?t=9&start=20'>3</a>"
        "</li></ul></div></dt></dl>"
        "<div class=action-bar><div class=pagination>80 topics <ul><li class=active><span>1</span></li>"
        "<li><a class=button href='viewforum.php?f=2&start=25'>2</a></li><li><a "
        "href='viewforum.php?f=2&start=50'>3</a></li>"
        "<li class='arrow next'><a rel=next href='viewforum.php?f=2&start=25'><i class='icon fa-chevron-right'></i>"
        "<span class=sr-only>Next</span></a></li></ul></div></div>",
        "/viewforum.php?f=2&start=25", 1,
    ),
    "vbulletin 3": (
        "/forumdisplay.php?f=12&order=desc&page=2",
        "<div class=pagenav><table><tr><td class=vbmenu_control>Page 2 of 30</td><td class=alt1>"
        "<a class=smallfont href='forumdisplay.php?f=12&order=desc' title='Prev Page - Results 1 to 20 of "
        "600'>&lt;</a></td>"
        "<td class=alt1><a href='forumdisplay.php?f=12&order=desc' title='Show results 1 to 20 of 600'>1</a></td>"
        "<td class=alt2><span class=smallfont title='Showing results 21 to 40 of 600'><strong>2</strong></span></td>"
        "<td class=alt1><a href='forumdisplay.php?f=12&order=desc&page=3' title='Show results 41 to 60 of "
        "600'>3</a></td>"
        "<td class=alt1><a href='forumdisplay.php?f=12&order=desc&page=3' title='Next Page - Results 41 to 60 "
        "of 600'>&gt;</a></td>"
        "<td class=alt1><a href='forumdisplay.php?f=12&order=desc&page=30' title='Last Page'>Last "
        "<strong>»</strong></a></td></tr></table></div>",
        "/forumdisplay.php?f=12&order=desc&page=3", 2,
    ),
    "vbulletin with words in addresses": (
        "/forum/f12/",
        "<div class=pagenav><span>Page 1 of 3</span><strong>1</strong><a href=/forum/f12/index2.html>2</a>"
        "<a href=/forum/f12/index3.html>3</a><a href=/forum/f12/index2.html>&gt;</a></div>",
        "/forum/f12/index2.html", 1,
    ),
    "xenforo": (
        "/threads/a-thread.55/page-2",
        "<nav class=pageNavWrapper><div class=pageNav><a class='pageNav-jump pageNav-jump--prev' "
        "href=/threads/a-thread.55/>Prev</a>"
        "<ul class=pageNav-main><li class=pageNav-page><a href=/threads/a-thread.55/>1</a></li>"
        "<li class='pageNav-page pageNav-page--current'><a href=/threads/a-thread.55/page-2>2</a></li>"
        "<li class=pageNav-page><a href=/threads/a-thread.55/page-3>3</a></li></ul>"
        "<a class='pageNav-jump pageNav-jump--next' href=/threads/a-thread.55/page-3>Next</a></div></nav>",
        "/threads/a-thread.55/page-3", 2,
    ),
    "simple machines": (
        "/index.php?board=4.20",
        "<div class=pagelinks>Pages: <a class=navPages href='/index.php?board=4.0'>1</a> [<strong>2</strong>] "
        "<a class=navPages href='/index.php?board=4.40'>3</a> <a class=navPages "
        "href='/index.php?board=4.60'>4</a></div>",
        "/index.php?board=4.40", 2,
    ),
    "discourse, for those without scripts": (
        "/c/help?page=1",
        "<div role=navigation class=topic-list-pagination><span itemprop=name><a rel=prev "
        "href='/c/help?page=0'>← previous page</a></span> "
        "<span itemprop=name><a href='/c/help?page=2'>next page →</a></span></div>",
        "/c/help?page=2", 2,
    ),
    "magento 1": (
        "/lamps.html",
        "<div class=pages><strong>Page:</strong><ol><li class=current>1</li><li><a href='/lamps.html?p=2'>2</a></li>"
        "<li><a class='next i-next' href='/lamps.html?p=2' title=Next><img "
        "src=/skin/images/pager_arrow_right.gif alt=Next></a></li></ol></div>",
        "/lamps.html?p=2", 1,
    ),
    "magento 2": (
        "/lamps.html?p=2",
        "<div class=pages><strong id=paging-label class='label pages-label'>Page</strong><ul class='items "
        "pages-items' aria-labelledby=paging-label>"
        "<li class='item pages-item-previous'><a class='action previous' href='/lamps.html?p=1' "
        "title=Previous><span class=label>Page</span><span>Previous</span></a></li>"
        "<li class=item><a href='/lamps.html?p=1' class=page><span class=label>Page</span><span>1</span></a></li>"
        "<li class='item current'><strong class=page><span class='label'>You're currently reading page</span>"
        "<span>2</span></strong></li>"
        "<li class=item><a href='/lamps.html?p=3' class=page><span class=label>Page</span><span>3</span></a></li>"
        "<li class='item pages-item-next'><a class='action next' href='/lamps.html?p=3' title=Next><span "
        "class=label>Page</span><span>Next</span></a></li></ul></div>",
        "/lamps.html?p=3", 2,
    ),
    "shopify": (
        "/collections/lamps?page=1",
        "<div class=pagination><span class='page current'>1</span><span class=page><a "
        "href='/collections/lamps?page=2'>2</a></span>"
        "<span class=next><a href='/collections/lamps?page=2'>Next »</a></span></div>",
        "/collections/lamps?page=2", 1,
    ),
    "woocommerce": (
        "/shop/",
        "<nav class=woocommerce-pagination><ul class=page-numbers><li><span aria-current=page "
        "class='page-numbers current'>1</span></li>"
        "<li><a class=page-numbers href=/shop/page/2/>2</a></li><li><a class='next page-numbers' "
        "href=/shop/page/2/>→</a></li></ul></nav>",
        "/shop/page/2/", 1,
    ),
    "prestashop": (
        "/11-lamps?page=2",
        "<nav class=pagination><div>Showing 13-24 of 40 item(s)</div><ul class='page-list clearfix'>"
        "<li><a rel=prev href='/11-lamps?page=1' class='previous js-search-link'>Previous</a></li><li><a "
        "href='/11-lamps?page=1'>1</a></li>"
        "<li class=current><a rel=nofollow href='/11-lamps?page=2' class='disabled js-search-link'>2</a></li>"
        "<li><a href='/11-lamps?page=3'>3</a></li>"
        "<li><a href='/11-lamps?page=3' class='next js-search-link'>Next</a></li></ul></nav>",
        "/11-lamps?page=3", 2,
    ),
    "opencart": (
        "/index.php?route=product/category&path=20",
        "<ul class=pagination><li class=active><span>1</span></li><li><a "
        "href='/index.php?route=product/category&path=20&page=2'>2</a></li>"
        "<li><a href='/index.php?route=product/category&path=20&page=2'>&gt;</a></li>"
        "<li><a href='/index.php?route=product/category&path=20&page=9'>&gt;|</a></li></ul>",
        "/index.php?route=product/category&path=20&page=2", 1,
    ),
    "django": (
        "/books/?page=4",
        "<div class=pagination><span class=step-links><a href='?page=1'>&laquo; first</a> <a "
        "href='?page=3'>previous</a> "
        "<span class=current>Page 4 of 9.</span> <a href='?page=5'>next</a> <a href='?page=9'>last &raquo;</a>"
        "</span></div>",
        "/books/?page=5", 4,
    ),
    "will_paginate": (
        "/posts?page=2",
        "<div class=pagination><a class=previous_page href='/posts?page=1'>&#8592; Previous</a> <a "
        "href='/posts?page=1'>1</a> "
        "<em class=current>2</em> <a href='/posts?page=3'>3</a> <a class=next_page href='/posts?page=3'>Next "
        "&#8594;</a></div>",
        "/posts?page=3", 2,
    ),
    "kaminari": (
        "/posts",
        "<nav class=pagination><span class='page current'>1</span><span class=page><a rel=next "
        "href='/posts?page=2'>2</a></span>"
        "<span class=next><a rel=next href='/posts?page=2'>Next ›</a></span><span class=last><a "
        "href='/posts?page=8'>Last »</a></span></nav>",
        "/posts?page=2", 1,
    ),
    "rails with names made by a program": (
        "/posts",
        "<div class=x1a><span class=q8>1</span><a class=q7 href='/posts?page=2'>2</a><a class=q7 "
        "href='/posts?page=3'>3</a></div>",
        "/posts?page=2", 1,
    ),
    "mui": (
        "/inbox?page=6",
        "<nav aria-label='pagination navigation' class=MuiPagination-root><ul><li><a "
        "class='MuiPaginationItem-root' aria-label='Go to previous page' href='?page=5'></a></li>"
        "<li><a aria-label='Go to page 5' href='?page=5'>5</a></li><li><a aria-current=true aria-label='page "
        "6' href='?page=6'>6</a></li>"
        "<li><a aria-label='Go to page 7' href='?page=7'>7</a></li><li><a aria-label='Go to next page' "
        "href='?page=7'></a></li></ul></nav>",
        "/inbox?page=7", 6,
    ),
    "ant design": (
        "/list/2",
        "<ul class=ant-pagination><li title='Previous Page' class=ant-pagination-prev><a href=/list/1></a></li>"
        "<li title=1 class=ant-pagination-item><a href=/list/1>1</a></li><li title=2 "
        "class='ant-pagination-item ant-pagination-item-active'><a href=/list/2>2</a></li>"
        "<li title=3 class=ant-pagination-item><a href=/list/3>3</a></li><li title='Next Page' "
        "class=ant-pagination-next><a href=/list/3></a></li></ul>",
        "/list/3", 2,
    ),
    "mediawiki category": (
        "/index.php?title=Category:Lamps",
        "<div id=mw-pages><p>The following 200 pages are in this category.</p>(previous page) "
        "(<a href='/index.php?title=Category:Lamps&pagefrom=Desk#mw-pages'>next page</a>)</div>",
        "/index.php?title=Category:Lamps&pagefrom=Desk#mw-pages", None,
    ),
    "reddit, old": (
        "/r/lamps/",
        "<span class=nextprev>view more: <span class=next-button><a href='/r/lamps/?count=25&after=t3_4abc' "
        "rel='nofollow'>next ›</a></span></span>",
        "/r/lamps/?count=25&after=t3_4abc", None,
    ),
    "a search engine of old": (
        "/search?q=lamps&start=10",
        "<table id=nav><tr><td><a href='/search?q=lamps&start=0'><span>Previous</span></a></td><td><a "
        "href='/search?q=lamps&start=0'>1</a></td>"
        "<td class=cur>2</td><td><a href='/search?q=lamps&start=20'>3</a></td><td><a "
        "href='/search?q=lamps&start=20'><span>Next</span></a></td></tr></table>",
        "/search?q=lamps&start=20", 2,
    ),
    "asp.net, with a parameter of its own": (
        "/List.aspx?cat=3",
        "<span id=DataPager1>1&nbsp;<a href='/List.aspx?cat=3&amp;lst=2'>2</a>&nbsp;<a "
        "href='/List.aspx?cat=3&amp;lst=3'>3</a>&nbsp;"
        "<a href='/List.aspx?cat=3&amp;lst=2'>Next</a></span>",
        "/List.aspx?cat=3&lst=2", 1,
    ),
    "bitrix": (
        "/news/?PAGEN_1=2",
        "<font class=text>Новости 11 - 20 из 55<br></font><font class=text><a "
        "href='/news/?PAGEN_1=1'>Начало</a> | <a href='/news/?PAGEN_1=1'>Пред.</a> | "
        "<a href='/news/?PAGEN_1=1'>1</a> <b>2</b> <a href='/news/?PAGEN_1=3'>3</a> | <a "
        "href='/news/?PAGEN_1=3'>След.</a> | <a href='/news/?PAGEN_1=6'>Конец</a></font>",
        "/news/?PAGEN_1=3", 2,
    ),
    "japanese": (
        "/list?p=1",
        "<ul class=pageNavi><li class=now>1</li><li><a href='/list?p=2'>2</a></li><li><a href='/list?p=3'>3</a></li>"
        "<li><a href='/list?p=2'>次の20件 &gt;</a></li></ul>",
        "/list?p=2", 1,
    ),
    "chinese": (
        "/list/index.html",
        "<div class=page><a href='javascript:;'>首页</a><span>1</span><a href=/list/index_2.html>2</a><a "
        "href=/list/index_3.html>3</a>"
        "<a href=/list/index_2.html>下一页</a><a href=/list/index_9.html>尾页</a></div>",
        "/list/index_2.html", 1,
    ),
    "korean": (
        "/bbs/list.php?id=a&page=2",
        "<div class=paging><a href='list.php?id=a&page=1'>[1]</a> <b>[2]</b> <a "
        "href='list.php?id=a&page=3'>[3]</a> <a href='list.php?id=a&page=3'>다음</a></div>",
        "/bbs/list.php?id=a&page=3", 2,
    ),
    "arabic": (
        "/news",
            "<div class=pager><b>1</b> <a href='/news?page=2'>2</a> <a href='/news?page=2'>الصفحة "
            "التالية</a></div>", "/news?page=2", 1,
    ),
    "turkish": (
        "/liste?sayfa=2",
            "<div class=sayfalama><a href='?sayfa=1'>1</a> <span class=aktif>2</span> <a "
            "href='?sayfa=3'>3</a> <a href='?sayfa=3'>Sonraki</a></div>",
        "/liste?sayfa=3", 2,
    ),
    "german, words only": (
        "/beitraege/", "<p><a href=/beitraege/seite/2/>Ältere Beiträge »</a></p>", "/beitraege/seite/2/", 1,
    ),
    "offsets in the path": (
        "/reviews-Lamp.html",
        "<div class=unified><a class='nav next' href=/reviews-or10-Lamp.html>Next</a><span "
        "class=current>1</span><a href=/reviews-or10-Lamp.html>2</a>"
        "<a href=/reviews-or20-Lamp.html>3</a></div>",
        "/reviews-or10-Lamp.html", 1,
    ),
    "an icon and no word": (
        "/list?page=1",
            "<div class=pager-box><a href='?page=2'><i class='fa fa-angle-right'></i></a></div>", "/list?page=2", 1,
    ),
    "a picture and no word": (
        "/list?page=3",
            "<a href='?page=2'><img src=/img/prev.gif></a> <a href='?page=4'><img src=/img/next.gif></a>", "/list?page=4", 3,
    ),
    "material icons": (
        "/list",
            "<div class=pagination><a href='?page=2'><i class=material-icons>chevron_right</i></a></div>", "/list?page=2", 1,
    ),
    "names of tests": (
        "/list",
            "<div class=a1><a class=b2 data-testid=PaginationNextLink href='?curpage=2'><svg></svg></a></div>", "/list?curpage=2", 1,
    ),
    "a script's next, and numbers with addresses": (
        "/list?page=1",
        "<div class=pagination><b class=active>1</b><a href='?page=2'>2</a><a href='?page=3'>3</a><a "
        "class=next href='javascript:go(2)'>Next</a></div>",
        "/list?page=2", 1,
    ),
    "more at the end": ("/jobs",
        "<table><tr><td><a class=morelink href='/jobs?p=2'>More</a></td></tr></table>", "/jobs?p=2", 1),
    "a button that a script reads": (
        "/list", "<button class=load-more data-url='/list?page=2'>Show more</button>", "/list?page=2", 1,
    ),
    "endless scrolling": ("/list",
        "<div class=infinite-scroll data-next-url='/list?page=2'></div>", "/list?page=2", 1),
    "all links, the shown one by its address": (
        "/list?page=2",
            "<div><a href='?page=1'>1</a> <a href='?page=2'>2</a> <a href='?page=3'>3</a></div>", "/list?page=3", 2,
    ),
    "all links, on the first page": (
        "/list",
            "<div><a href='?page=1'>1</a> <a href='?page=2'>2</a> <a href='?page=3'>3</a></div>", "/list?page=2", 1,
    ),
    "an offset, and that of the last page": (
        "/list?start=20",
        "<div><a href='?start=0'>&lt;&lt;</a> <a href='?start=10'>&lt;</a> <a href='?start=900'>&gt;&gt;</a>"
        " <a rel=next href='?start=30'>&gt;</a></div>",
        "/list?start=30",
        None,
    ),
    "arrows of offsets": (
        "/list",
        "<div class=pager><a href='?start=10'>&gt;</a> <a class=last href='?start=900'>&gt;&gt;</a></div>",
        "/list?start=10",
        None,
    ),
    "an address that was another before a redirect": (
        "/lamps-c9",
        "<ul class=pagination><li class=next><a href='/catalog/lamps?page=2'>Next</a></li></ul>",
        "/catalog/lamps?page=2",
        None,
    ),
    "a row under another address than the page": (
        "/lamps-c9",
        "<ul class=pagination><li class=active>1</li><li><a href='/catalog/lamps/2'>2</a></li>"
        "<li><a href='/catalog/lamps/3'>3</a></li></ul>",
        "/catalog/lamps/2",
        1,
    ),
    "words in the addresses that count nothing": (
        "/list",
        "<ul class=pagination><li class=active>1</li><li><a href='/list?t=kx9'>2</a></li>"
        "<li><a href='/list?t=bb7q'>3</a></li><li><a class=next href='/list?t=kx9'>Next</a></li></ul>",
        "/list?t=kx9",
        1,
    ),
    "the last page": (
        "/list?page=3",
            "<div class=pagination><a href='?page=2'>Previous</a><a href='?page=1'>1</a><a "
            "href='?page=2'>2</a><b>3</b></div>", None, 3,
    ),
    "the last page of addresses unlike any": (
        "/list?pos=40",
            "<div class=pagination><a href='?pos=0'>1</a><a href='?pos=20'>2</a><b class=current>3</b></div>", None, 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGERS)
def test_the_next_page_of_the_usual_pagers(name: str) -> None:
    url, html, following, number = PAGERS[name]
    found = pagination(html, url)
    assert (found.next.url if found.next else None) == (SITE + following if following else None)
    assert found.number == number


NOT_PAGERS = {
    "the article after this":
        "<nav class=post-navigation><div class=nav-next><a rel=next href=/a-long-story/>Next</a></div></nav>",
    "the article after this, by its name":
        "<a href=/a-long-story/>Next article</a><a rel=next href=/a-long-story/>A long story →</a>",
    "a carousel":
        "<div class='carousel slide'><a class=carousel-control-next href='#carousel'><span "
        "class=sr-only>Next</span></a></div>",
    "a carousel with addresses": "<div class=slick-slider><a class=slick-next href='?slide=2'>Next</a></div>",
    "pictures":
        "<div class=gallery><a href='/photo/2'>Next</a> <a href='/photo/1'>1</a> <a href=/photo/2>2</a></div>",
    "months": "<table class=calendar><tr><th><a href='?month=6'>›</a></th></tr>"
    + "".join(f"<td><a href='/2016/05/{n:02}/'>{n}</a></td>" for n in range(1, 31)) + "</table>",
    "days": "<table><caption>May</caption><tr>" + "".join(
        f"<td><a href='/day/2016-05-{n:02}'>{n}</a></td>" for n in range(1, 31)) + "</table>",
    "sizes": "<ul>" + "".join(f"<li><a href='?size={n}'>{n}</a></li>" for n in range(38, 46)) + "</ul>",
    "things a page":
        "<div>Show <a href='?limit=12'>12</a> <a href='?limit=24'>24</a> <a href='?limit=48'>48</a></div>",
    "stars": "<ul>" + "".join(f"<li><a href='?rating={n}'>{n}</a></li>" for n in range(1, 6)) + "</ul>",
    "years": "<ul>" + "".join(f"<li><a href='/archive/{n}'>{n}</a></li>" for n in range(2010, 2020)) + "</ul>",
    "chapters":
        "<ol class=toc><li><a href=/book/1>1</a></li><li><a href=/book/2>2</a></li></ol><a href=/book/2>Next "
        "chapter</a>",
    "pages of threads":
        "<div><a href='/thread?t=7'>A thread</a> [ <a href='/thread?t=7'>1</a> <a "
        "href='/thread?t=7&start=10'>2</a> "
    "<a href='/thread?t=7&start=20'>3</a> ]</div><div><a href='/thread?t=8'>Other</a> [ <a href='/thread?t=8'>1</a> "
    "<a href='/thread?t=8&start=10'>2</a> ]</div><div>[ <a href='/topic/9'>1</a> <a href='/topic/9/2'>2</a> ]</div>",
    "comments":
        "<nav class='navigation comment-navigation'><a class=next "
        "href='/list/comment-page-2/#comments'>Newer comments</a></nav>",
    "a word in a sentence":
        "<p>See <a href=/whats-next>what is next</a>, or the <a href=/next-steps>next steps</a>.</p>",
    "a script": "<div class=pagination><a class=next href='javascript:void(0)'>Next</a><a href='#'>2</a></div>",
    "what is off": "<ul class=pagination><li><a class='next disabled' href='?page=2'>Next</a></li></ul>",
    "another site": "<div class=pagination><a class=next href='https://other.example/list?page=2'>Next</a></div>",
    "a lesson": "<a class='btn next-lesson' href=/lessons/loops>Next: loops</a>",
    "votes":
        "<div class=related><a href='/q/2012/one'>2</a><a href='/q/2012/one'>One</a><a "
        "href='/q/77/two'>3</a><a href='/q/77/two'>Two</a></div>",
    "more of a section":
        "<section><h2>Chairs</h2><a href=/chairs>More</a></section><section><a href=/tables>See more</a>"
        "</section>",
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_PAGERS)
def test_what_only_looks_like_a_row_of_pages_has_no_next_page(name: str) -> None:
    found = pagination(NOT_PAGERS[name], "/list")
    assert found.next is None
    assert found.number is None


@pytest.mark.parametrize(
    ("row", "number"),
    [
        ("<form class=pagination>Page <input name=page value=2 size=2> of 7</form>", 2),
        ("<div class=pager><a href='?page=1'>Prev</a> <input type=number value=2 max=7> of 7</div>", 2),
        ("<div class=pager><label>Page <input value=7></label> of <span>7</span></div>", 7),
        ("<form>Seite <select><option>1<option selected>2<option>3</select> von 3</form>", 2),
        ("<form class=pagination><input name=seite value=2> <span>von <b>7</b></span></form>", 2),
        ("<div class=pager>2 / 7</div>", 2),
        ("<form>Page <input name=page value=2> of 7</form><form>Page <input name=page value=3> of 7</form>", None),
        ("<form>Quantity <input name=qty value=2> of 7</form>", None),
        ("<form>Results per page <input value=20> of 70</form>", None),
        ("<form class=pagination>Items <input name=limit value=2 type=hidden> of 7</form>", None),
        ("<form class=pagination>Page <input name=page value=9> of 7</form>", None),
        ("<div class=slideshow><input name=page value=2> of 7</div>", None),
        ("<div class=pager>1-5 of 35</div>", None),
        ("<div class=pager>Image 2 of 7</div>", None),
    ],
)
def test_the_number_of_a_page_may_be_in_a_field(row: str, number: int | None) -> None:
    assert pagination(row, "/list").number == number


@pytest.mark.parametrize(
    ("url", "row", "number"),
    [
        ("/list?page=3", "<div class=pagination><a href='/list?page=2'>Previous</a></div>", 3),
        ("/list/page/3/", "<div class=pagination><a href='/list/page/2/'>Previous</a></div>", 3),
        ("/list?page=2", "<div class=pagination><a href='?page=0'>First</a><a href='?page=1'>Previous</a></div>", 3),
        ("/list?page=3", "<div class=pagination><a href='/other?page=2'>Previous</a></div>", None),
        ("/list?page=3", "<p><a href='/list?page=2'>Previous</a></p>", None),
    ],
)
def test_the_last_page_is_known_by_the_link_to_the_one_before(url: str, row: str, number: int | None) -> None:
    assert pagination(row, url).number == number
