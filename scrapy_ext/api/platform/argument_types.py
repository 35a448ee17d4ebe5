"""Types of spiders' arguments, read from annotations, and checks of the texts that are given for them.

An annotation is text of somebody's code: one that is not understood gives an argument that takes any text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.versions import SpiderArgument
from scrapy_ext.api.violations import Violation

#: Names of types that the texts are checked against.
_KINDS: Final = ("int", "float", "bool")
#: Annotations in quotes, and unions in unions, that are followed.
_DEPTH: Final = 8
#: Maximum characters of a value, and choices, in an error.
_SHOWN: Final = 60
_NAMED: Final = 20
#: Prefix of the field of an argument in violations.
FIELD: Final = "argument."


class ArgumentType(NamedTuple):
    """``kind`` is ``int``, ``float``, ``bool``, or "" for any text; ``choices``: the only values, if there are any."""

    kind: str = ""
    choices: tuple[str, ...] = ()


def type_of(annotation: str | None) -> ArgumentType:
    """Return the type of an annotation such as ``int``, ``float | None``, ``Optional[bool]``, ``Literal['a']``."""
    # An escape that is none would be a warning of the parser, in the log of the server.
    if not annotation or "\\" in annotation:
        return ArgumentType()
    try:
        found = list(_types(ast.parse(annotation.strip(), mode="eval").body, 0))
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return ArgumentType()
    if found and all(each.choices for each in found):
        return ArgumentType("", tuple(dict.fromkeys(choice for each in found for choice in each.choices)))
    return found[0] if len(found) == 1 else ArgumentType()


def _types(node: ast.expr, depth: int) -> Iterator[ArgumentType]:
    """Yield the types of a union; that of None is left out."""
    if depth > _DEPTH:
        raise ValueError("the annotation is too deep")
    match node:
        case ast.Constant(value=None):
            return
        case ast.Constant(value=str(text)):
            yield from _types(ast.parse(text.strip(), mode="eval").body, depth + 1)
        case ast.BinOp(op=ast.BitOr()):
            yield from _types(node.left, depth + 1)
            yield from _types(node.right, depth + 1)
        case ast.Subscript():
            yield from _of_subscript(_name(node.value), node.slice, depth)
        case _:
            name = _name(node)
            yield ArgumentType(name if name in _KINDS else "")


def _of_subscript(name: str, inner: ast.expr, depth: int) -> Iterator[ArgumentType]:
    members = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "Literal":
        # A value that is no literal, as of an enumeration, raises: then nothing is known of the choices.
        values = [ast.literal_eval(each) for each in members]
        yield ArgumentType("", tuple(str(value) for value in values if value is not None))
    elif name in ("Optional", "Union"):
        for each in members:
            yield from _types(each, depth + 1)
    elif name == "Annotated":
        yield from _types(members[0], depth + 1)
    else:
        yield ArgumentType()


def _name(node: ast.expr) -> str:
    """Return the last part of a dotted name, "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def argument_faults(known: Sequence[SpiderArgument], given: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of the arguments of a job by what its code declares.

    A job may be started in spite of them: a spider may set an argument by other means than its declaration says.
    """
    for argument in known:
        field, value = FIELD + argument.name, given.get(argument.name)
        if argument.name not in given:
            if argument.required:
                yield Violation(field, "is required: the spider has no default for it", f"Write {argument.name}=VALUE.")
        elif value is not None and (rule := _broken(type_of(argument.annotation), str(value))):
            yield Violation(field, rule, "Write such a value.")


def _broken(wanted: ArgumentType, value: str) -> str:
    """Return the rule that a text breaks, "" for none."""
    if wanted.choices and value not in wanted.choices:
        more = f" and {len(wanted.choices) - _NAMED} more" if len(wanted.choices) > _NAMED else ""
        return f"must be one of {', '.join(wanted.choices[:_NAMED])}{more}, got {value[:_SHOWN]!r}"
    numbers = {"int": (int, "a whole number"), "float": (float, "a number")}
    if wanted.kind in numbers:
        parse, words = numbers[wanted.kind]
        try:
            parse(value)
        except ValueError:
            return f"must be {words}, got {value[:_SHOWN]!r}"
    return ""
