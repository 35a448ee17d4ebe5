"""What on the page of an article is not its text, by the names and the words that pages use for it."""

from __future__ import annotations

import re
from typing import Final

# Names are those of ``class``, ``id`` and ``itemprop`` in lower case. Words that are part of many others count between
# borders only.

_START: Final = r"(?:^|[\s_-])"
_END: Final = r"(?:$|[\s_-])"

#: Parts where readers talk.
TALK = re.compile(rf"comment(?!ary|at)|disqus|livefyre|{_START}respond{_END}|{_START}replies{_END}|discussion")
#: Parts about other things: menus, suggestions, forms to subscribe, notices.
OTHER_THINGS = re.compile(
    rf"sidebar|side-bar|breadcrumb|outbrain|taboola|zergnet|revcontent|recirc|related|recommend|trending|yarpp"
    rf"|newsletter|subscri(?:be|ption)|sign-?up|mc_embed|optin|opt-in|cookie|consent|gdpr|popup|paywall"
    rf"|most-?(?:read|viewed|popular|shared)|popular|you-?may|also-?(?:like|read|see)|read-?(?:more|next|also)"
    rf"|more-?(?:stories|news|from|articles|posts|like)|up-?next|next-?up|see-?also|(?:latest|recent)-?(?:news|posts|stories|articles)"
    rf"|post-?nav|prev-?next|pagination|similar-?(?:posts|articles|stories)|page-?links|next-?(?:post|article|story)|prev(?:ious)?-?(?:post|article|story)"
    rf"|{_START}(?:footer|nav|navbar|navigation|menu|masthead|modal|rel_?blc?k|crumbs?|rail|tease[rs]?){_END}|rail__"
)
#: Parts that tell of the article, or of its pictures, and buttons.
ABOUT_IT = re.compile(
    rf"{_START}(?:ads?|adbox|ad-?(?:unit|slot|block|label)|dfp|sponsor\w*|promo\w*|cta|bio|captions?|credits?|toc|sr-only|metadata"
    rf"|dateline|datetime|timestamp|pubdate|tag(?:s|list|cloud)|topics|keywords|labels|categories|kicker|eyebrow|shar(?:e|es|ing)|socials?"
    rf"|tools?|toolbar|ratings?|votes?|poll|survey|player|carousel|slideshow|gallery|lightbox|feedback|avatar|bylines?|by-line"
    rf"|copyright|no-?print|tooltip|pull-?quotes?|pullout|callouts?|highlights|donat\w*|follow(?:-?us|-?me)?|avatar){_END}"
    rf"|(?:post|entry|article|story)[-_]*(?:info|meta|tags?|header|footer|tools?|actions?|authors?|date|labels?|utility|share|sharing|duration|count)(?:$|[\s_-])"
    rf"|(?:author|user|staff)[-_]*(?:bio|info|box|name|description|details|card|about|block|profile|meta|image|area|section|line)|about-?(?:the-?)?author|byline"
    rf"|(?:^|\s)(?:widgets?|widget-area|is-hidden|hidden)(?:$|\s)(?!.*:(?:block|flex|grid))|standfirst|{_START}(?:dek|deck|subdeck){_END}"
    rf"|caption|{_START}[a-z]+[-_]{{1,2}}(?:credits?|attribution){_END}|(?:image|photo|media)[-_]*(?:credit|source|photographer|details|count|description)"
    rf"|share-?(?:bar|button|this|link|box|tool|icon|list|post|article)|sharedaddy|sharethis|addthis|addtoany|sociable|social[-_]*(?:share|link|icon|media|bar|button|list)"
    rf"|advert|adsense|google-?ad|{_START}ads?[-_]|[a-z][-_]ads?{_END}|pull-?quote|promo-?(?:small|box|item|unit)|table-?of-?contents"
    rf"|inline-?(?:story|promo)|inset--|calloutbox|video-?(?:player|container|wrapper|js|title)|embed-report|(?:gallery|slide)-?count"
    rf"|read(?:ing)?-?time|time-?to-?read|word-?count|print-?(?:link|button|only)|screen-?reader|visually-?hidden|back-?to-?top|skip-?(?:to|link)"
)
#: Names of the box around the text of an article.
TEXT_BOX = re.compile(
    rf"articlebody|{_START}(?:article|post|entry|story|news|blog|content)[-_]*(?:body|content|text|copy)|{_START}(?:body|rich)[-_]?(?:copy|text|content)"
    rf"|{_START}(?:prose|wysiwyg|e-content){_END}"
)


def is_other(names: str) -> bool:
    """Whether the names of an element are those of something else than text, by what it is about or what it is."""
    return bool(OTHER_THINGS.search(names) or ABOUT_IT.search(names))
