"""Roles and directives for settings, meta keys, stats and close reasons, and a role for values from the code.

``.. setting:: NAME`` describes a setting and ``:setting:`NAME``` links to it, or to Scrapy's documentation, which has
the same roles for Scrapy's names. ``:value:`module:NAME``` inserts a constant of the package, or the default of a
record's field (``module:Record.field``), so that the documents never repeat a number of the code.
"""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

KINDS = {
    "setting": "setting",
    "reqmeta": "request meta key",
    "stat": "stat",
    "reason": "close reason",
}


class ValueRole(SphinxRole):
    """Constant of the code: numbers with their thousands apart, whole mebibytes with their unit."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        module, _, name = self.text.partition(":")
        try:
            value: Any = importlib.import_module(module)
            self.env.note_dependency(value.__file__)
            for part in name.split("."):
                value = defaults(value).get(part) or getattr(value, part)
        except (ImportError, AttributeError) as error:
            message = self.inliner.reporter.error(f"{self.text}: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [nodes.Text(shown(value))], []


def defaults(value: Any) -> dict[str, Any]:
    """Return the defaults of a record's fields; an empty dict for a value that is not a record."""
    if not isinstance(value, type) or not issubclass(value, msgspec.Struct):
        return {}
    return {field.name: field.default for field in msgspec.structs.fields(value)}


def shown(value: Any) -> str:
    """Format a value for readers."""
    if isinstance(value, int) and value >= 2**20 and value % 2**20 == 0:
        return f"{value // 2**20} MiB"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if isinstance(value, (tuple, list)):
        return ", ".join(map(shown, value))
    if isinstance(value, (set, frozenset)):
        return ", ".join(map(shown, spans(value)))
    return str(value)


def spans(numbers: set[int] | frozenset[int]) -> list[str]:
    """Return the numbers in order, with consecutive ones as a span."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [str(first) if first == last else f"{first} to {last}" for first, last in found]


def setup(app: Sphinx) -> dict[str, Any]:
    for name, title in KINDS.items():
        app.add_object_type(name, name, indextemplate=f"pair: %s; {title}")
    app.add_role("value", ValueRole())
    return {"parallel_read_safe": True}
