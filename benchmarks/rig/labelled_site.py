"""A site of labelled articles: ``python -m rig.labelled_site FOLDER COUNT`` says its port; ``/N`` is article N."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from quality.data import page, type_of, wcxb_labels

from rig.http1 import head, serve

#: Bytes of the pages that it has.
SIZES = range(60_000, 160_000)


def articles(folder: Path, count: int) -> list[tuple[str, str]]:
    """Return the HTML and URL of the first articles of a sample of WCXB, of a size that is usual."""
    folder = folder / "labelled" if (folder / "labelled").is_dir() else folder
    folder /= "wcxb-dev"
    urls = {name: label["url"] for name, label in wcxb_labels(folder).items() if type_of(label) == "article"}
    read = ((page(folder, name), url) for name, url in sorted(urls.items()))
    return [(html, url) for html, url in read if len(html) in SIZES][:count]


def main(folder: str, count: str) -> None:
    pages = [html.encode() for html, _ in articles(Path(folder), int(count))]
    answers = [[head("200 OK", "text/html; charset=utf-8", len(body)), body] for body in pages]
    asyncio.run(serve(lambda path, _: (0, answers[int(path[1:]) % len(answers)])))


if __name__ == "__main__":
    main(*sys.argv[1:])
