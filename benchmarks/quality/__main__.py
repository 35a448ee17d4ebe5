"""Quality of automatic extraction on labelled real pages, beside trafilatura on the same pages.

``python benchmarks/quality DATA_DIR [KIND...]`` prints one JSON line a kind: scores, and milliseconds of processor
time a page. ``DATA_DIR`` holds ``products/`` (``labels.json``, ``html/*.html.gz``; as scrapinghub/product-extraction-
benchmark labels them) and ``wcxb-dev/`` (``labels.json.gz``, ``html/*.html.gz``; as the WCXB of Murrough Foley does),
or a folder ``labelled`` with both. Without a folder nothing is measured.

Fields are right when they equal a label (prices as numbers; brands, titles and authors without regard to case and
signs; dates by the day), and F1 counts a wrong value against precision and recall both, as that product benchmark
does. Products are measured beside extruct, which reads markup alone, and with their markup taken off. Texts have the
F1 of their bags of words, averaged over pages, as WCXB does; those of articles also the F1 of their runs of four
tokens, as scrapinghub/article-extraction-benchmark does. A folder ``real-pages`` beside ``labelled`` (pages, and their
addresses in ``index.json``) adds articles whose markup has the text, which is taken off and looked for.

Of threads of forums the truth is the markup of the pages that have posts in theirs, which is taken off before.

PDFs are printed of the articles by the browser that the service uses, so their text is known; without a browser, give
the other kinds by name.

Jobs and pages of results are not among the labelled pages: those that the tests have written in the shapes of usual
boards and engines show what the rules do, and real pages of other types how often something is taken for one. Real
postings, pages of results and threads are measured by ``saved_pages.py``, and lists with labels.

Lists have no labels of their own here. What is measured of them: on how many pages of the types that hold lists one is
found, and which part of the names in it occurs in the labelled content. The truth for next pages is what pages say by
``rel=next``, which is taken off before; on articles, products and documentation, where that is the next article, any
next page counts as wrong.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from article import measure_article
from data import type_of, wcxb_labels
from forum_thread import measure_thread
from job_posting import measure_job
from lists import measure_list
from next_page import measure_next_page
from page_content import measure_content, measure_markdown
from pdf import measure_pdf
from product import measure_product, measure_product_by_rules, products_of
from serp import measure_serp

from scrapy_ext.server.extraction.auto import preload


def main() -> int:
    if len(sys.argv) < 2:
        print(json.dumps({"benchmark": "quality", "measured": False, "give": "the folder of labelled pages"}))
        return 0
    data = Path(sys.argv[1])
    real = data / "real-pages"
    data = data / "labelled" if (data / "labelled").is_dir() else data
    logging.disable(logging.CRITICAL)
    preload()
    for kind, measure in measures(data / "products", data / "wcxb-dev", real).items():
        if not sys.argv[2:] or kind in sys.argv[2:]:
            print(json.dumps(measure()), flush=True)
    return 0


def measures(products: Path, wcxb: Path, real: Path) -> dict[str, Callable[[], dict[str, Any]]]:
    """Measurements by kind."""
    labels = wcxb_labels(wcxb)

    def of_type(kind: str) -> dict[str, Any]:
        return {name: label for name, label in labels.items() if type_of(label) == kind}

    return {
        "product": lambda: measure_product(products),
        "productByRules": lambda: measure_product_by_rules(wcxb, products_of(labels)),
        "article": lambda: measure_article(wcxb, of_type("article"), real),
        "pageContent": lambda: measure_content(wcxb, labels),
        "markdown": lambda: measure_markdown(wcxb, labels),
        "pdf": lambda: measure_pdf(wcxb, of_type("article")),
        "productList": lambda: measure_list(wcxb, "productList", "products", "name", of_type("collection")),
        "articleList": lambda: measure_list(wcxb, "articleList", "articles", "headline", of_type("listing")),
        "forumThread": lambda: measure_thread(wcxb, of_type("forum")),
        "jobPosting": lambda: measure_job(wcxb, labels),
        "serp": lambda: measure_serp(wcxb, labels),
        "nextPage": lambda: measure_next_page(wcxb, labels),
    }


if __name__ == "__main__":
    sys.exit(main())
