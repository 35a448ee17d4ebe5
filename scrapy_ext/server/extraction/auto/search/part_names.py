"""What search engines call the parts of their pages: names in the code, and words that readers see."""

from __future__ import annotations

import re
from typing import Final

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5"})
BLOCKS: Final = ("div", "p", "li", "ul", "ol", "table", "tr", "td", "section", "article", "h2", "h3", "h4", "dl", "dd")
TITLE_NAME = re.compile(
    r"(?:^|[\s_-])(?:result|serp)[\w-]*(?:title|link|__a|heading)|(?:^|[\s_-])(?:title"
    r"|heading)(?:[-_]?(?:link|text))?(?:$|\s)"
)
OUTSIDE_TAGS: Final = frozenset({"nav", "footer", "aside", "header", "form"})
OUTSIDE_NAME = re.compile(
    r"(?:^|[\s_-])(?:sidebar|side-bar|footer|nav|navbar|menu|pagination|knowledge[\w-]*|infobox|wikicard"
    r"|entity[\w-]*card|carousel[\w-]*|related[\w-]*"
    r"|people-?also[\w-]*|news-?(?:cards?|carousel)|video-?(?:cards?|carousel|results)|image-?(?:results|block)"
    r"|top-?stories|answers?-?box|featured|rhs|right-?(?:col\w*|rail))(?:$|\s)"
    r"|rhs-block|^(?:\S+ )*(?:wp|kp)-"
)
AD_NAME = re.compile(
    r"(?:^|[\s_-])(?:ads?|adv|advert\w*|sponsor\w*|promoted|paid|commercial-unit\w*|tads\w*|bottomads|pla-unit\w*"
    r"|b_ad\w*|result--ad|adsbygoogle|text-?ads?)(?:$|[\s_-])"
)
AD_LABEL = re.compile(
    r"(?:ads?|advert(?:isement)?|sponsored(?: (?:links?|results?))?|promoted|anzeigen?|gesponsert|annonces?"
    r"|sponsoris[ée]e?s?|anuncios?|patrocinad[oa]s?"
    r"|annunci(?:o)?|sponsorizzat[oi]|advertentie|gesponsord|reklam[ay]?|sponsorowan[ey]|реклама|広告|广告|광고)\s*[·:•]?",
    re.IGNORECASE,
)
AD_LINK = re.compile(
    r"/aclk\b|/pagead/|googleadservices|doubleclick|[?&]ad_(?:domain|provider|type)=|/y\.js\?"
    r"|/aclick\b|adurl=",
    re.IGNORECASE,
)
SHOWN_URL_NAME = re.compile(
    r"(?:^|[\s_-])(?:cite|(?:display|visible|green|result|pretty|site)?[-_]*(?:url|uri"
    r"|domain|path|hostname)|breadcrumbs?|netloc|attribution)(?:$|[\s_-])|__url"
)
LOOKS_LIKE_URL = re.compile(r"(?:https?://)?(?:[\w-]+\.)+[a-z]{2,12}(?:\s*[›/»>].{0,200})?", re.IGNORECASE)
DESCRIPTION_NAME = re.compile(
    r"snippet|desc(?:ription)?|abstract|summary|(?:^|[\s_-])(?:content|caption|body|text"
    r"|excerpt)(?:$|\s)"
)
NO_DESCRIPTION: Final = frozenset({"cite", "button", "nav", "time", "form", "select", "h1", "h2", "h3", "h4", "h5"})
QUERY_KEYS: Final = (
    "q",
    "query",
    "p",
    "text",
    "wd",
    "word",
    "search",
    "search_query",
    "k",
    "keywords",
    "searchterm",
    "s",
    "qs",
)
TOTAL = re.compile(
    r"(\d{1,3}(?:[.,'\s\u00a0\u202f]\d{3})+|\d{1,12})(?:\+|\s)*(?:search |web )?(?:results|ergebnisse|r[ée]sultats"
    r"|resultados|risultati|resultaten|wynik[óo]w|результат\w*|条结果|個結果|件|결과)",
    re.IGNORECASE,
)
