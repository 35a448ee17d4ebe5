"""Results pages in the shapes that search engines give them, with words and addresses of our own."""

# ruff: noqa: E501 (pages as they are written)

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import quote

RESULTS = [
    ("How to trim a wick", "https://lamps.example.org/wicks/trim", "Cut it a finger wide, straight, and never when it is hot."),
    ("Wick - a short history", "https://history.example.net/wick?id=7&lang=en", "From reed to cotton: what burned in lamps and why it did."),
    ("Wick trimmers for lamps", "https://shop.example.com/trimmers", "Trimmers of steel and brass, made in a small workshop."),
    ("The keeper's handbook", "https://harbour.example.edu/handbook.pdf", "All that a keeper of lamps has to know in one volume."),
]  # fmt: skip
AD = (
    "Cheap wicks here",
    "https://ads.example.biz/wicks",
    "The cheapest wicks that money can buy, today only, act now.",
)


class SerpPage(NamedTuple):
    html: str
    url: str
    page_number: int
    total: int | None = None
    #: How many results have a text that stands for their address.
    shown_urls: int = 4


def _shown(url: str) -> str:
    host, _, path = url.removeprefix("https://").partition("/")
    return f"https://{host} › {path[:12]}"


def _page(query: str, body: str) -> str:
    return f"""<!doctype html><html lang=en><head><title>{query} - Search</title></head><body>
    <header><form><input name=q value="{query}"></form><nav><a href=/images>Images</a>
    <a href=https://other.example.com/><h3>Apps
    </h3></a></nav></header>{body}<footer><a href=https://about.example.com/><h3>About us all</h3></a></footer></body></html>"""


def _redirected() -> str:
    def block(name: str, url: str, text: str, more: str = "") -> str:
        return f"""<div class="g Ww4">{more}<div class=kv><a href="/url?q={quote(url, safe="")}&sa=U&ved=2ah">
    <h3 class=LC2>{name}</h3>
        <div class=TbW><cite>{_shown(url)}</cite></div></a></div><div class=VwiC><div><span>{text}</span></div></div></div>"""

    ad = block(*AD, more="<span>Sponsored</span>")
    return f"""<div id=result-stats>About 1,230,000 results<nobr> (0.41 seconds)</nobr></div><div id=search>
    <div id=rso>{ad}
    {"".join(block(*result) for result in RESULTS)}<div class=related-question-pair>
    <div role=heading>Is a wick a rope?</div></div>
    </div></div><div id=rhs><div class=kp-wholepage><a href=https://wiki.example.org/Wick><h3>Wick</h3></a></div>
    </div>
    <table id=nav><tr><td>1</td><td><a href="/search?q=trim+wick&start=10">2</a></td></tr></table>"""


def _encoded() -> str:
    def block(name: str, url: str, text: str, kind: str = "b_algo") -> str:
        code = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        return f"""<li class={kind}><div class=b_tpcn><a class=tilk href="/ck/a?!&&p=1&u=a1{code}&ntb=1">
    <cite>{_shown(url)}</cite></a></div>
        <h2><a href="/ck/a?!&&p=2&u=a1{code}&ntb=1">{name}</a></h2><div class=b_caption><p class=b_lineclamp2>{text}</p></div></li>"""

    return f"""<main><span class=sb_count>4 results</span><ol id=b_results>{block(*AD, kind="b_ad")}
    {"".join(block(*result) for result in RESULTS)}<li class=b_pag><nav><a href="/search?q=trim+wick&first=21">3</a></nav></li></ol></main>"""


def _without_script() -> str:
    def block(name: str, url: str, text: str, kind: str = "results_links") -> str:
        link = f"//search.example/l/?uddg={quote(url, safe='')}&rut=1"
        return f"""<div class="result {kind} web-result"><div class="links_main result__body"><h2 class=result__title>
        <a class=result__a href="{link}">{name}</a></h2><div class=result__extras><a class=result__url href="{link}">
        {url.removeprefix("https://")}</a></div><a class=result__snippet href="{link}">{text}</a></div></div>"""

    return f"<div id=links>{block(*AD, kind='result--ad')}{''.join(block(*result) for result in RESULTS)}</div>"


def _in_the_path() -> str:
    def block(name: str, url: str, text: str) -> str:
        link = f"https://r.search.example/_ylt=A1;_ylu=B/RV=2/RE=17/RO=10/RU={quote(url, safe='')}/RK=2/RS=x-"
        return f"""<li><div class="dd algo algo-sr"><div class=compTitle><h3 class=title>
    <a href="{link}">{name}</a></h3>
        <span class=url>{_shown(url)}</span></div><div class=compText><p>{text}</p></div></div></li>"""

    ad = f'<ol class="searchCenterTopAds ads"><li><h3 class=title><a href="{AD[1]}">{AD[0]}</a></h3><p>{AD[2]}</p></li></ol>'
    return f"<div id=main>{ad}<ol class=searchCenterMiddle>{''.join(block(*result) for result in RESULTS)}</ol></div>"


def _direct() -> str:
    def block(name: str, url: str, text: str) -> str:
        return f"""<article class="result result-default"><a href="{url}" class=url_header>
    <span class=url_o1>{_shown(url)}</span></a>
        <h3><a href="{url}" rel=noreferrer>{name}</a></h3><p class=content>{text}</p><div class=engines><span>one</span></div></article>"""

    return f"""<main id=main_results><div id=urls>{"".join(block(*result) for result in RESULTS)}</div>
    <aside id=sidebar><article class=infobox><h3><a href=https://wiki.example.org/Wick>Wick</a></h3></article></aside></main>"""


def _without_headings() -> str:
    def block(name: str, url: str, text: str) -> str:
        return f"""<div class=snippet data-pos=1><a href="{url}" class=heading-serpresult>
    <div class=site-name>{_shown(url)}</div>
        <div class="title result-title">{name}</div></a><div class=snippet-content><div class=snippet-description>{text}</div></div></div>"""

    return f"<div id=results>{''.join(block(*result) for result in RESULTS)}</div>"


def _hidden() -> str:
    def block(number: int, name: str, url: str, text: str) -> str:
        return f"""<div class="result c-container" id={number}><h3 class=t>
    <a href="/link?url=k{number}XyZ">{name}</a></h3>
        <div class=c-abstract>{text}</div><span class=c-showurl>{url.removeprefix("https://").partition("/")[0]}/</span></div>"""

    return f"<div id=content_left>{''.join(block(number, *result) for number, result in enumerate(RESULTS))}</div>"


QUERY = "trim wick"
PAGES: dict[str, SerpPage] = {
    "redirects with the address in q": SerpPage(_page(QUERY, _redirected()), "https://search.example/search?q=trim+wick", 1, 1_230_000),
    "redirects with the address encoded": SerpPage(_page(QUERY, _encoded()), "https://search.example/search?q=trim+wick&first=11", 2, 4),
    "made for readers without scripts": SerpPage(_page(QUERY, _without_script()), "https://search.example/html/?q=trim+wick", 1),
    "redirects with the address in the path": SerpPage(_page(QUERY, _in_the_path()), "https://search.example/search?p=trim+wick", 1),
    "links that lead there directly": SerpPage(_page(QUERY, _direct()), "https://meta.example/search?q=trim+wick&pageno=3", 3),
    "titles that are no headings": SerpPage(_page(QUERY, _without_headings()), "https://search.example/search?q=trim+wick", 1),
}  # fmt: skip
HIDDEN = SerpPage(_page(QUERY, _hidden()), "https://search.example/s?wd=trim+wick&pn=10", 2)
