"""Names of settings, meta keys, stats and close reasons, which other pages refer to by roles.

The pages of :data:`DESCRIBED` describe them in definition lists: each term that is one piece of code is a name.
``:setting:`NAME``` links to it, or to Scrapy's documentation, which has the same roles for Scrapy's names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.util.nodes import make_id

KINDS: Final = {
    "setting": "setting",
    "reqmeta": "request meta key",
    "stat": "stat",
    "reason": "close reason",
}
#: Kind of the names that a page describes, in the section with a title, or in all sections.
DESCRIBED: Final = {
    ("reference/settings", ""): "setting",
    ("reference/stats", ""): "stat",
    ("reference/meta", "Meta keys"): "reqmeta",
    ("reference/errors", "Close reasons"): "reason",
}


def note_names(app: Sphinx, doctree: nodes.document) -> None:
    """Make each name that a page describes one that roles find, with an entry in the index."""
    page = app.env.docname
    for (described, title), kind in DESCRIBED.items():
        if described == page:
            for term in _terms(doctree, title):
                _note(app, doctree, kind, term)


def _terms(doctree: nodes.document, title: str) -> Iterator[nodes.term]:
    for section in doctree.findall(nodes.section):
        heading = section.next_node(nodes.title)
        if heading is not None and (not title or heading.astext() == title):
            yield from (term for term in section.findall(nodes.term) if _is_name(term))
            return


def _is_name(term: nodes.term) -> bool:
    return len(term.children) == 1 and isinstance(term.children[0], nodes.literal)


def _note(app: Sphinx, doctree: nodes.document, kind: str, term: nodes.term) -> None:
    name = term.astext()
    place = make_id(app.env, doctree, kind, name)
    term["ids"].append(place)
    term.insert(0, addnodes.index(entries=[("pair", f"{name}; {KINDS[kind]}", place, "", None)]))
    cast("StandardDomain", app.env.get_domain("std")).note_object(kind, name, place, location=term)


def setup(app: Sphinx) -> dict[str, Any]:
    for name, title in KINDS.items():
        app.add_object_type(name, name, indextemplate=f"pair: %s; {title}")
    app.connect("doctree-read", note_names)
    return {"parallel_read_safe": True}
