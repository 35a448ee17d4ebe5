"""The words that tell what a part of a page is for: in its names, in the heading over it, in the page's address."""

from __future__ import annotations

import re
from typing import Final

# What authors call the parts of their pages, in groups. A part is known by the beginning of a word in a class or id.
NAME_GROUPS: Final = {
    "menu": r"nav(?!y)|menu|masthead|topbar|toolbar|offcanvas|drawer|hamburger",
    "head": r"header",
    "foot": r"foot|colophon|copyright|legal|imprint|disclaimer",
    "side": r"side|aside|widget|rail|complementary",
    "crumbs": r"crumb",
    "consent": r"cookie|consent|gdpr|privacy|ccpa",
    "letter": r"newsletter|subscri|sign-?up|optin|mailing",
    "social": r"social|shar|follow|facebook|twitter|pinterest|whatsapp",
    "modal": r"modal|pop-?up|overlay|dialog|lightbox|toast|tooltip|dropdown|flyout|snackbar",
    "related": r"relat|recommend|similar|also|upsell|cross|recent|popular|trending|suggest|more-"
    r"|read-?next|teaser|discover",
    "promo": r"promo|advert|ads?(?![a-z])|banner|sponsor|cta|announce|notice|alert|offer|campaign",
    "account": r"log-?in|account|auth|register|user|member|profile|avatar",
    "filter": r"filter|facet|refine|sort|swatch|option|variant|select|quantity|qty",
    "pages": r"pag(?:er|in)|load-?more",
    "comment": r"comment|respon|repl(?:y|ies)",
    "review": r"review|rating|star|testimonial|feedback",
    "byline": r"author|byline|meta|date|time|posted|publish|stat(?!e)|count|view",
    "post": r"post|message|thread|topic|discussion|entry",
    "article": r"article|story|blog|news",
    "body": r"content|body|text|copy|rich|prose|markdown|editor|paragraph|desc|summary|excerpt|intro|lead",
    "product": r"product|prod|pdp|item|sku|goods",
    "price": r"price|cart|buy|basket|checkout|shipping|deliver|stock|wish|compare|payment|warranty",
    "card": r"card|tile|grid|list|collection|result|cell",
    "show": r"carousel|slider|slick|swiper|gallery|slide|thumb|zoom|image|img|caption|media|video|player",
    "fold": r"accordion|tab|faq|collaps|toggle|expand|details|panel",
    "action": r"btn|button|action|control|icon|vote|like|bookmark|edit|report|flag|print|link|permalink|tools",
    "skip": r"skip|sr-only|visually-?hidden|screen-?reader|hidden|hide|d-none|invisible|mobile|desktop",
    "hero": r"hero|jumbotron|section|headline|title|heading",
}
# What headings say over what is rarely or only sometimes content.
HEADING_GROUPS: Final = {
    "related": r"related|recommend|you (?:may|might)|also (?:like|bought|viewed)|similar|recently|popular|trending"
    r"|more from|most read|featured|latest|up next|customers who|people also|suggested|other|top stories|sponsored"
    r"|mehr|ähnlich\w*|weitere|das könnte"
    r"|vous aimerez|à lire|articles? similaires?|relacionad[oa]s|te puede|también|correlati|potrebbe",
    "comment": r"comments?|leave a|discussion|responses|join the conversation|kommentare?|commentaires?"
    r"|comentarios|commenti",
    "review": r"reviews?|ratings?|stars?|testimonials|bewertungen|avis|opiniones|recensioni",
    "letter": r"subscribe|newsletter|sign up|inbox|stay (?:up|in)|get in touch|contact|follow us|abonn\w+|suscr\w+",
    "contents": r"contents|on this page|in this article|jump to|inhalt|sommaire|índice",
}
URL_GROUPS: Final = {
    "forum": r"forum|thread|topic|viewtopic|showthread|community|discuss|/t/|/questions/",
    "docs": r"docs?\b|documentation|/api|reference|manual|guide|tutorial|wiki|developer|/learn|help|support",
    "product": r"/products?/|/p/|/dp/|/itm/|/item|/shop/|\.html?$",
    "list": r"categor|collection|/c/|/b/|/t/|department|/tags?/|/topics?/|directory|rank|top|best|list|jobs?"
    r"|events?|search",
    "article": r"blog|news|article|story|post|20[012]\d",
    "service": r"service|solution|about|pricing|platform|features?|consult|software|agency|law|health",
}
URL_SAYS: Final = {name: re.compile(words) for name, words in URL_GROUPS.items()}
NAME_BITS: Final = {name: 1 << place for place, name in enumerate(NAME_GROUPS)}
HEADING_BITS: Final = {name: 1 << place for place, name in enumerate(HEADING_GROUPS)}
#: What is read of names and of headings, in characters.
MAX_LENGTH: Final = 300


def _grouped(groups: dict[str, str], before: str, after: str) -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(f'(?P<{name}>{words})' for name, words in groups.items())}){after}")


_NAMED: Final = _grouped(NAME_GROUPS, r"(?<![a-z])", "")
_SAYS: Final = _grouped(HEADING_GROUPS, r"(?<!\w)", r"(?!\w)")


def name_bits(names: str) -> int:
    """The groups that these names (in lower case) belong to, a bit each."""
    return _bits(_NAMED, NAME_BITS, names)


def heading_bits(text: str) -> int:
    """The groups that the words of a heading belong to, a bit each."""
    return _bits(_SAYS, HEADING_BITS, text.casefold())


def _bits(pattern: re.Pattern[str], bits: dict[str, int], text: str) -> int:
    found = 0
    for match in pattern.finditer(text[:MAX_LENGTH]):
        found |= bits[match.lastgroup or ""]
    return found
