"""Marks of the rules for articles on a page of any kind: which blocks they would take, and which they would leave out.

On an article these rules are more precise than the model of blocks. On other pages they say where the prose is.
"""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.articles.body_lines import runs_of, text_runs
from scrapy_ext.server.extraction.auto.articles.prose import ArticleBox
from scrapy_ext.server.extraction.auto.content.blocks import Blocks
from scrapy_ext.server.extraction.auto.fields.headings import headline_of
from scrapy_ext.server.extraction.auto.page import Focus, Page


class ArticleMarks:
    """Marks of the blocks of a page, each a list with a value for each block."""

    def __init__(self, page: Page, blocks: Blocks, focus: Focus | None = None) -> None:
        focus = focus or Focus(page, page.meta("og:title", "twitter:title"), page.title)
        ends = page.outline.ends
        article = ArticleBox(page, focus)
        runs = text_runs(runs_of(page, article.box, article.noise), focus.heading, headline_of(page, None, focus) or "")
        taken = {2 * position for run in runs for position in run.texts}
        taken.update(2 * position + 1 for run in runs for position in run.tails)
        box = range(article.box, ends[article.box])
        noise: set[int] = set()
        for position in article.noise:
            noise.update(range(position, ends[position]))
        starts = [block.pieces[0] // 2 for block in blocks]
        #: Whether the page itself names the box an article.
        self.is_marked = article.marked
        #: The share of the pieces of text of the block that are of the article.
        self.shares = [len(taken.intersection(block.pieces)) / len(block.pieces) for block in blocks]
        #: Whether the block begins in the box of the article.
        self.inside = [start in box for start in starts]
        #: Whether the block begins in an element that the rules leave out as a whole.
        self.noise = [start in noise for start in starts]
