"""Probability that a page is of the kind that a request is for, or lists things of this kind.

It is the logistic function of a sum of weights of signs, which a logistic regression fits on labelled pages
(``benchmarks/quality/train_probabilities.py``, which writes ``probability.json``): of those that the extraction of the
kind found, and those of the page (``page/signs.py``). The values are calibrated on the mix of these pages, and go no
further than these pages are many (docs/architecture/extraction-quality.rst). They are numbers, so a weight of 0.7 makes
the odds twice as high.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page.signs import page_signs

DATA: Final = "probability.json"
#: The least and the highest value: each kind has a few hundred labelled pages.
LEAST: Final = 0.02
MOST: Final = 0.98


def of(kind: str, page: Page, found: Mapping[str, float]) -> float:
    """Return the probability of a kind of ``probability.json``, by the signs that its extraction found and those of
    the page."""
    signs, weights = {**page_signs(page), **found}, weights_of_kinds()[kind]
    total = weights[""] + sum(weight * signs[name] for name, weight in weights.items() if name)
    return round(min(MOST, max(LEAST, 1 / (1 + math.exp(-max(-30.0, min(30.0, total)))))), 2)


@cache
def weights_of_kinds() -> dict[str, dict[str, float]]:
    """Return the weights of the signs of each kind; "" has that of no sign."""
    weights: dict[str, dict[str, float]] = json.loads(files(__package__).joinpath(DATA).read_text("utf-8"))
    return weights
