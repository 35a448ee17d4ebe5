"""Items of saved pages, as one tree of the package extracts them: run by ``saved_pages.py``, once a tree.

``python benchmarks/quality/saved_items.py DIR KIND...`` prints a JSON line for each page and variant of it: ``kind``,
``file``, ``variant`` (``as it is`` or ``markup off``), ``item`` and ``seconds`` of processor time. The package is that
of PYTHONPATH.
"""

from __future__ import annotations

import gzip
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saved_labels import KINDS, labelled_pages
from w3lib.encoding import html_to_unicode

from scrapy_ext.server.extraction.auto import extract, preload


def main() -> int:
    folder = Path(sys.argv[1])
    logging.disable(logging.CRITICAL)
    preload()
    for kind in sys.argv[2:]:
        for line in _items(folder / kind, kind):
            print(json.dumps(line), flush=True)
    return 0


def _items(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    for page in labelled_pages(folder, kind):
        for variant, file in page.files.items():
            _, html = html_to_unicode(None, gzip.decompress((folder / file).read_bytes()))
            start = time.process_time()
            item = extract(KINDS[kind], html, page.url)
            yield {
                "kind": kind,
                "file": page.name,
                "variant": variant,
                "seconds": time.process_time() - start,
                "item": item,
            }


if __name__ == "__main__":
    sys.exit(main())
