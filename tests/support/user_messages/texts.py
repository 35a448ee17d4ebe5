"""Texts that an expression may have: literals, with ``{expression}`` for each value in them."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

#: The expressions that are assigned to a name, and the annotation of a parameter as ``name: type``.
Scope: TypeAlias = Mapping[str, Sequence[ast.expr]]

#: Most texts that the alternatives of one message are combined to.
MOST: Final = 24
#: Types whose name is not shown with a value.
_PLAIN: Final = ("str", "int", "float", "object", "Exception", "bytes", "str | None", "int | None", "Any", "Path")
_CONVERSION: Final = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d.*]*([a-zA-Z%])")


def shown(node: ast.expr | None, scope: Scope) -> list[str]:
    """The texts of an expression, or the expression itself in braces."""
    if node is None:
        return [""]
    return texts_of(node, scope) or [f"{{{source_of(node, scope)}}}"]


def source_of(node: ast.expr, scope: Scope) -> str:
    """The source of an expression; for a parameter with its type, unless that is a text or a number."""
    source = ast.unparse(node)
    kind = next((ast.unparse(each) for each in scope.get(f"{source}: type", ())), "")
    return f"{source}: {kind}" if kind and kind not in _PLAIN else source


def texts_of(node: ast.expr, scope: Scope) -> list[str]:
    """The texts that an expression may have; none for one whose texts cannot be known."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return _joined([shown(part, scope) for part in parts])
        case ast.FormattedValue(value=value):
            return shown(value, scope)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            known = texts_of(left, scope) or texts_of(right, scope)
            return _joined([shown(left, scope), shown(right, scope)]) if known else []
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            values = right.elts if isinstance(right, ast.Tuple) else [right]
            return [filled(text, values, scope) for text in texts_of(left, scope)]
        case ast.IfExp(body=body, orelse=other):
            return (
                [*shown(body, scope), *shown(other, scope)] if texts_of(body, scope) or texts_of(other, scope) else []
            )
        case ast.Subscript(value=value, slice=ast.Slice()):
            return texts_of(value, scope)
        case ast.Call(func=ast.Attribute(value=value, attr="format" | "rstrip" | "replace")):
            return texts_of(value, scope)
        case ast.Name(id=name):
            without = {**scope, name: ()}
            return [text for value in scope.get(name, ()) for text in texts_of(value, without)]
    return []


def _joined(parts: Iterable[Sequence[str]]) -> list[str]:
    return ["".join(chosen) for chosen in itertools.islice(itertools.product(*parts), MOST)]


def filled(text: str, values: Sequence[ast.expr], scope: Scope) -> str:
    """The text with the source of a value in place of each conversion."""
    if not values:
        return text
    left = iter(values)

    def value(found: re.Match[str]) -> str:
        node = None if found[1] == "%" else next(left, None)
        return "%" if node is None else f"{{{source_of(node, scope)}}}"

    return _CONVERSION.sub(value, text)
