"""Extension that writes the documentation for language models: ``llms.txt`` and ``llms-full.txt``.

``llms.txt`` lists all pages in the order of the tables of contents, each with its first sentences
(https://llmstxt.org). ``llms-full.txt`` has the text of all pages in the same order. Both are made of the pages
themselves, for HTML builds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.writers.text import TextTranslator

#: Characters of a page's summary, which ends with a sentence.
SUMMARY = 240
#: Beginning of sentences that say what the reader needs, and not what the page is about.
_SETUP = "The examples use"
_SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z`])")


class Part(NamedTuple):
    """A part of a table of contents: its caption, if it has one, and its pages."""

    caption: str
    pages: Sequence[str]


def write(app: Sphinx, error: Exception | None) -> None:
    """Write both files beside the pages."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    (folder / "llms.txt").write_text("\n".join(_index(app)), "utf-8")
    (folder / "llms-full.txt").write_text("\n".join(_pages(app)), "utf-8")


def _index(app: Sphinx) -> Iterator[str]:
    root = app.config.root_doc
    first, *more = _introduction(app, root)
    yield from (f"# {app.config.project} {app.config.release}", "", f"> {first}", "")
    for paragraph in more:
        yield from (paragraph, "")
    yield f"The text of all pages is in [llms-full.txt]({_address(app, 'llms-full.txt')})."
    for part in _parts(app, root):
        for section in part.pages:
            yield from ("", f"## {_title(app, section)}", "", _entry(app, section))
            for chapter in _parts(app, section):
                if chapter.caption:
                    yield from ("", f"### {chapter.caption}", "")
                for page in chapter.pages:
                    yield from (_entry(app, each) for each in _with_children(app, page))
    yield ""


def _pages(app: Sphinx) -> Iterator[str]:
    for page in _with_children(app, app.config.root_doc):
        address = _address(app, app.builder.get_target_uri(page))
        yield from (f"# {_title(app, page)}", "", f"Page: {address}", "", _text(app, page).strip(), "")


def _with_children(app: Sphinx, page: str) -> Iterator[str]:
    yield page
    for part in _parts(app, page):
        for child in part.pages:
            yield from _with_children(app, child)


def _parts(app: Sphinx, page: str) -> list[Part]:
    """Return the tables of contents of a page."""
    found = app.env.get_doctree(page).findall(addnodes.toctree)
    return [Part(node.get("caption") or "", node["includefiles"]) for node in found]


def _entry(app: Sphinx, page: str) -> str:
    summary = _shortened(" ".join(_introduction(app, page)[:1])) or _sections(app, page)
    link = f"- [{_title(app, page)}]({_address(app, app.builder.get_target_uri(page))})"
    return f"{link}: {summary}" if summary else link


def _title(app: Sphinx, page: str) -> str:
    return " ".join(app.env.titles[page].astext().split())


def _introduction(app: Sphinx, page: str) -> list[str]:
    """Return the paragraphs of a page before anything else, without one that leads to what is not shown here."""
    section = next(_resolved(app, page).findall(nodes.section), None)
    paragraphs: list[str] = []
    for node in section.children if section is not None else ():
        if isinstance(node, nodes.paragraph):
            paragraphs.append(" ".join(node.astext().split()))
        elif paragraphs or isinstance(node, nodes.section):
            break
    return [text for number, text in enumerate(paragraphs) if not (number and text.endswith(":"))]


def _sections(app: Sphinx, page: str) -> str:
    """Return the titles of a page's sections."""
    titles = [" ".join(node.astext().split()) for node in _resolved(app, page).findall(nodes.title)]
    return "; ".join(titles[1:])


def _resolved(app: Sphinx, page: str) -> nodes.document:
    """Return a copy of a page with the titles of the pages that it refers to."""
    doctree = app.env.get_doctree(page)
    app.env.apply_post_transforms(doctree, page)
    return doctree


def _shortened(text: str) -> str:
    """Return the first sentences that fit, at least one."""
    shown = ""
    for sentence in _SENTENCE.split(text):
        if sentence.startswith(_SETUP):
            continue
        if shown and len(shown) + len(sentence) > SUMMARY:
            break
        shown = f"{shown} {sentence}".strip()
    return re.sub(r":$", ".", shown)


def _text(app: Sphinx, page: str) -> str:
    """Return the text of a page below its title."""
    doctree = _resolved(app, page)
    for node in [*doctree.findall(addnodes.toctree), *list(doctree.findall(nodes.title))[:1]]:
        node.parent.remove(node)
    translator = TextTranslator(doctree, app.builder)
    doctree.walkabout(translator)
    return translator.body


def _address(app: Sphinx, path: str) -> str:
    base = app.config.html_baseurl
    return f"{base.rstrip('/')}/{path}" if base else path


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
