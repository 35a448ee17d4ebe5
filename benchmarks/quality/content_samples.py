"""Labelled pages as the models of ``pageContent`` see them: features, truth and words of their blocks."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from block_truth import Words, truths
from data import page, type_of, wcxb_labels
from scores import words

from scrapy_ext.server.extraction.auto.content.blocks import ArticleMarks, Blocks
from scrapy_ext.server.extraction.auto.content.choice import Candidate
from scrapy_ext.server.extraction.auto.content.features import Features
from scrapy_ext.server.extraction.auto.content.page_content import MAX_BLOCKS, candidates
from scrapy_ext.server.extraction.auto.page.page import Page

FOLDS = 5
#: Pages whose right blocks have a smaller share of the expected words are excluded from training.
READABLE = 0.3


@dataclass
class Sample:
    """A labelled page."""

    name: str
    site: str
    kind: str
    names: tuple[str, ...]
    names_of_page: tuple[str, ...]
    of_page: list[float]
    rows: np.ndarray
    truth: np.ndarray
    #: The blocks as the choice sees them, without a chance.
    candidates: list[Candidate]
    blocks: list[Words]
    label: Counter[str]

    @property
    def counts(self) -> np.ndarray:
        return np.array([len(block) for block in self.blocks], dtype=float)

    @property
    def readable(self) -> bool:
        wanted = min(self.label.total(), self.counts.sum())
        return bool(wanted and (self.truth * self.counts).sum() > READABLE * wanted)

    @property
    def fold(self) -> int:
        return fold_of(self.site)


def fold_of(site: str) -> int:
    return int(hashlib.sha256(site.encode()).hexdigest(), 16) % FOLDS


def read_samples(folder: Path) -> list[Sample]:
    samples = []
    for name, label in sorted(wcxb_labels(folder).items()):
        source = Page(page(folder, name), label["url"] or "https://www.example.org/")
        blocks = Blocks(source, MAX_BLOCKS)
        article = ArticleMarks(source, blocks)
        features = Features(source, blocks, article)
        texts = [block.text for block in blocks]
        samples.append(
            Sample(
                name,
                site_of(urlsplit(label["url"] or name).hostname or name),
                type_of(label),
                features.names,
                features.names_of_page,
                features.of_page,
                np.array([row + features.of_page for row in features.rows], dtype=np.float64).reshape(
                    len(blocks), len(features.names)
                ),
                np.array(truths(texts, label["main_content"])),
                candidates(source, blocks, [0.0] * len(blocks), article),
                [words(text) for text in texts],
                Counter(words(label["main_content"])),
            )
        )
    return samples


def site_of(host: str) -> str:
    parts = host.split(".")
    return ".".join(parts[-3:] if len(parts) > 2 and len(parts[-2]) <= 3 else parts[-2:])
