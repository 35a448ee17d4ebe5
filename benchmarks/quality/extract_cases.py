"""Extraction of pages from standard input, as another tree of the sources may do it: a page and an item, each a line.

``fields.py`` starts it with the tree in ``PYTHONPATH``.
"""

from __future__ import annotations

import json
import logging
import sys

from scrapy_ext.server.extraction.auto import extract, preload


def main() -> None:
    logging.disable(logging.CRITICAL)
    preload()
    for line in sys.stdin:
        case = json.loads(line)
        print(json.dumps(extract(case["kind"], case["html"], case["url"])), flush=True)


if __name__ == "__main__":
    main()
