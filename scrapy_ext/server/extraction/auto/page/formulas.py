"""Formulas of a page as text: MathML, and TeX that a script would set.

A formula becomes a ``var`` with the attribute :data:`FORMULA` that holds its TeX between dollar signs, as authors of
pages write it themselves. MathML without TeX is written in a line: ``(a+b)/2``, ``x^(n+1)``. Where a page has a formula
twice, for the eye and for screen readers, the one for the eye is taken off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

#: Attribute of the elements that hold TeX, for what writes it otherwise.
FORMULA: Final = "data-formula"
#: Formulas of a page, and characters of one; longer ones are cut.
MAX_FORMULAS: Final = 5_000
MAX_LENGTH: Final = 2_000

_TEX: Final = frozenset({"application/x-tex", "tex", "latex", "application/x-latex"})
_TEX_SCRIPT: Final = "math/tex"
#: Wikipedia hides its MathML from all but screen readers.
_HIDDEN: Final = re.compile(r"\bmwe-math-mathml")
#: Names of what a script has set of a formula.
_SET: Final = re.compile(r"\bMathJax|\bMJX")
_DISPLAY_STYLE = re.compile(r"^\{\\(?:display|text)style\s+(.*)\}$", re.DOTALL)
_ONE: Final = re.compile(r"\w+|\(.*\)|.?", re.DOTALL)


def write_formulas(tree: HtmlElement) -> None:
    """Replace the formulas of a page by their texts. Scripts must still be in it."""
    for script in islice(list(tree.iter("script")), MAX_FORMULAS):
        if not (script.get("type") or "").lower().startswith(_TEX_SCRIPT) or not (script.text or "").strip():
            continue
        parts = _set_parts(script)
        # MathML has the formula as it is shown; letters in a row have lost its structure.
        is_read = bool(parts) and next(parts[0].iter("math"), None) is not None
        for part in parts[1:] if is_read else parts:
            part.drop_tree()
        if not is_read:
            _replace(script, script.text or "")
    for math in islice(list(tree.iter("math")), MAX_FORMULAS):
        around = math.getparent()
        if around is None:
            continue
        if _HIDDEN.search(around.get("class", "")):
            around.attrib.pop("style", None)
        _take_off_pictures(around)
        if tex := _tex_of(math):
            _replace(math, tex)
        else:
            text = " ".join(_in_line(math)[:MAX_LENGTH].split())
            _empty(math)
            math.text = text


def has_formula(node: HtmlElement) -> bool:
    """Return whether an element is or holds TeX, whose dollar signs are no currency."""
    return any(map(is_formula, node.iter("var")))


def is_formula(node: HtmlElement) -> bool:
    """Return whether an element holds TeX itself."""
    return node.tag == "var" and node.get(FORMULA) is not None


def _take_off_pictures(around: HtmlElement) -> None:
    """Remove what stands for the eye beside MathML that is alone in an element."""
    if len(around) > 1 or (around.text or "").strip() or around.getparent() is None:
        return
    for beside in (around.getprevious(), around.getnext()):
        if beside is not None and beside.get("aria-hidden") == "true" and not beside.tail:
            around.getparent().remove(beside)


def _set_parts(script: HtmlElement) -> list[HtmlElement]:
    """Return what a script has set of a formula, which stands before its TeX, and its preview before that."""
    found: list[HtmlElement] = []
    before = script.getprevious()
    while before is not None and _SET.search(before.get("class", "")) and not (before.tail or "").strip():
        found.append(before)
        before = before.getprevious()
    return found


def _replace(node: HtmlElement, formula: str) -> None:
    text = " ".join(formula[:MAX_LENGTH].split())
    if found := _DISPLAY_STYLE.fullmatch(text):
        text = found[1].strip()
    _empty(node)
    if text:
        node.set(FORMULA, "")
        node.text = f"${text}$"


def _empty(node: HtmlElement) -> None:
    """Make a ``var`` without content of an element."""
    for inner in list(node):
        node.remove(inner)
    node.attrib.clear()
    node.text = None
    node.tag = "var"


def _tex_of(math: HtmlElement) -> str:
    for annotation in math.iter("annotation"):
        if (annotation.get("encoding") or "").lower() in _TEX:
            return annotation.text or ""
    return ""


def _in_line(node: HtmlElement) -> str:
    """Return MathML in a line. The parser bounds the depth of elements, and so of the calls."""
    if node.tag in ("annotation", "annotation-xml"):
        return ""
    parts = [_in_line(child) for child in node]
    write = _WRITTEN.get(str(node.tag))
    if write is not None and len(parts) == _PARTS[str(node.tag)]:
        return write(parts)
    text = f"{(node.text or '').strip()}{''.join(parts)}"
    return f"√{_grouped(text)}" if node.tag == "msqrt" else text


def _grouped(text: str) -> str:
    return text if _ONE.fullmatch(text) else f"({text})"


_WRITTEN: Final[dict[str, Callable[[list[str]], str]]] = {
    "mfrac": lambda parts: f"{_grouped(parts[0])}/{_grouped(parts[1])}",
    "msup": lambda parts: f"{_grouped(parts[0])}^{_grouped(parts[1])}",
    "msub": lambda parts: f"{_grouped(parts[0])}_{_grouped(parts[1])}",
    "msubsup": lambda parts: f"{_grouped(parts[0])}_{_grouped(parts[1])}^{_grouped(parts[2])}",
    "munder": lambda parts: f"{parts[0]}_{_grouped(parts[1])}",
    "mover": lambda parts: f"{parts[0]}^{_grouped(parts[1])}",
    "munderover": lambda parts: f"{parts[0]}_{_grouped(parts[1])}^{_grouped(parts[2])}",
    "mroot": lambda parts: f"{_grouped(parts[0])}^(1/{parts[1]})",
}
_PARTS: Final = {
    "mfrac": 2, "msup": 2, "msub": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3, "mroot": 2,
}  # fmt: skip
