"""Articles: news, posts, guides and other prose."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.articles.body import (
    ARTICLE_TYPES,
    ArticleBody,
    article_body,
    body_html,
    main_article,
)
from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.authors import authors_of
from scrapy_ext.server.extraction.auto.fields.dates import modified_on, published_on
from scrapy_ext.server.extraction.auto.fields.headings import breadcrumbs_of, headline_of
from scrapy_ext.server.extraction.auto.items import Article, Audio, DetailsMetadata, Image, Video
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, now
from scrapy_ext.server.extraction.auto.page.text import first, plain

MAX_MEDIA: Final = 50
#: Shortest text of an article, in characters.
SHORT: Final = 400
_VIDEO_PLAYER = re.compile(r"youtube(?:-nocookie)?\.com/embed|player\.vimeo\.com|dailymotion\.com/embed|/video/|wistia")


def extract(page: Page) -> Article:
    """Return the article of a page. Only ``url`` and ``metadata`` are always present."""
    focus = Focus(page, page.meta("og:title", "twitter:title"), page.title)
    thing = main_article(page, focus)
    headline = headline_of(page, thing, focus)
    authors = authors_of(page, thing, focus)
    published = published_on(page, thing, focus)
    modified = modified_on(page, thing, focus)
    known = [author.name or "" for author in authors or ()] + [date.raw for date in (published, modified) if date]
    body = article_body(page, focus, headline, known, thing)
    page.sources.note("articleBody", "main text")
    page.sources.note("articleBodyHtml", "main text")
    described = page.meta("og:description", "description", "twitter:description", "dc.description")
    pictures = _images(page, thing, body)
    videos = [Video(url=url) for url in _media(page, thing, body, "video", "VideoObject")]
    audios = [Audio(url=url) for url in _media(page, thing, body, "audio", "AudioObject")]
    return Article(
        url=page.url,
        canonicalUrl=page.canonical_url,
        headline=headline,
        datePublished=published.iso if published else None,
        datePublishedRaw=published.raw if published else None,
        dateModified=modified.iso if modified else None,
        dateModifiedRaw=modified.raw if modified else None,
        authors=authors,
        breadcrumbs=breadcrumbs_of(page),
        inLanguage=page.language_of(thing),
        mainImage=pictures[0] if pictures else None,
        images=pictures,
        description=first((plain(described), thing.text("description") if thing else None)),
        articleBody=body.text or None,
        articleBodyHtml=body_html(page, body),
        videos=videos,
        audios=audios,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=_probability(thing, body, published is not None)),
    )


def _images(page: Page, thing: Thing | None, body: ArticleBody) -> list[Image]:
    main = images.of_metas(page)[:1] or images.of_thing(page, thing)[:1]
    shown = images.of_nodes(page, (node for node in body.media if node.tag == "img"))
    return images.merged(main, images.of_thing(page, thing), shown)


def _media(page: Page, thing: Thing | None, body: ArticleBody, tag: str, type_name: str) -> list[str]:
    found: list[str] = []
    players: list[str] = []
    for media in thing.things(tag, "associatedMedia") if thing else ():
        if type_name in media.types:
            found += media.texts("contentUrl", "embedUrl")[:1]
    for node in body.media:
        if node.tag == tag:
            found += [source for each in (node, *node.iter("source")) if (source := each.get("src"))][:1]
        elif node.tag == "iframe" and tag == "video":
            players.append(node.get("src") or node.get("data-src") or "")
    found += filter(_VIDEO_PLAYER.search, players)
    urls = dict.fromkeys(url for reference in found if (url := page.link(reference)))
    return list(urls)[:MAX_MEDIA]


def _probability(thing: Thing | None, body: ArticleBody, dated: bool) -> float:
    marked = thing is not None and not thing.types.isdisjoint(ARTICLE_TYPES)
    if len(body.text) < SHORT:
        return 0.5 if marked else 0.1
    return 0.98 if marked else 0.85 if dated else 0.6
