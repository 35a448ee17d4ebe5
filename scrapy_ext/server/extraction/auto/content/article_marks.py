"""Marks of the rules for articles on a page of any kind: what they would take of it, and what they would leave out.

On an article these rules are more precise than the model of blocks. On other pages they say where the prose is.
"""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.articles.body_lines import runs_of, text_of, text_runs
from scrapy_ext.server.extraction.auto.articles.prose import ArticleBox
from scrapy_ext.server.extraction.auto.content.blocks import Blocks, TextBlock
from scrapy_ext.server.extraction.auto.fields.headings import headline_of
from scrapy_ext.server.extraction.auto.page import Focus, Page


class ArticleMarks:
    """The text that the rules for articles take, and the box that they read it in."""

    def __init__(self, page: Page, focus: Focus | None = None) -> None:
        focus = focus or Focus(page, page.meta("og:title", "twitter:title"), page.title)
        ends = page.outline.ends
        article = ArticleBox(page, focus)
        runs = text_runs(runs_of(page, article.box, article.noise), focus.heading, headline_of(page, None, focus) or "")
        #: Whether the page itself names the box an article.
        self.is_marked = article.marked
        self.text = text_of(runs)
        self._pieces = {2 * position for run in runs for position in run.texts}
        self._pieces.update(2 * position + 1 for run in runs for position in run.tails)
        self._box = range(article.box, ends[article.box])
        self._noise: set[int] = set()
        for position in article.noise:
            self._noise.update(range(position, ends[position]))

    def share_of(self, block: TextBlock) -> float:
        """Return the share of the pieces of text of a block that are of the article."""
        return len(self._pieces.intersection(block.pieces)) / len(block.pieces)

    def is_around(self, block: TextBlock) -> bool:
        """Return whether a block begins in the box of the article."""
        return block.pieces[0] // 2 in self._box

    def is_noise(self, block: TextBlock) -> bool:
        """Return whether a block begins in an element that the rules leave out as a whole."""
        return block.pieces[0] // 2 in self._noise

    def taken(self, blocks: Blocks) -> list[bool]:
        """Return for each block whether most of it is of the article."""
        return [2 * self.share_of(block) > 1 for block in blocks]
