"""Modules of a package as they are read for their messages: classes, functions, imports and calls."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from tests.support.user_messages.texts import Scope

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_WORD: Final = re.compile(r"[A-Za-z]{3}")


class Class(NamedTuple):
    node: ast.ClassDef
    module: Module

    @property
    def init(self) -> Function | None:
        return next((each for each in self.node.body if isinstance(each, Function) and each.name == "__init__"), None)


class Module:
    """Parts of a module: its constants and imports, then its classes, functions and calls with their scope."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path = path
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, tuple[Function, Module]] = {}
        self.partials: dict[str, tuple[ast.Call, Module]] = {}
        self.calls: list[tuple[ast.Call, Scope]] = []
        #: The class in which a call of ``__init__`` is.
        self.within: dict[ast.Call, str] = {}
        #: Names by the module and the name that they are imported from.
        self.imported: dict[str, tuple[str, str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self.imported.update({each.asname or each.name: (node.module, each.name) for each in node.names})
        self.constants = _assigned(tree)
        self._tree = tree

    def read(self, imported: Scope) -> None:
        """Read the rest; ``imported``: the constants that the module imports."""
        self._walk(self._tree, {**imported, **self.constants}, "")

    def constant(self, name: str) -> Sequence[ast.expr] | None:
        return self.constants.get(name)

    def class_(self, name: str) -> Class | None:
        return self.classes.get(name)

    def function(self, name: str) -> tuple[Function, Module] | None:
        return self.functions.get(name)

    def partial(self, name: str) -> tuple[ast.Call, Module] | None:
        return self.partials.get(name)

    def _walk(self, node: ast.AST, scope: Scope, within: str) -> None:
        match node:
            case ast.ClassDef(name=within):
                self.classes[within] = Class(node, self)
                scope = {**scope, **_attributes(node)}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions[node.name] = node, self
                scope = {**scope, **_assigned(node)}
            case ast.Assign(value=ast.Call() as value) | ast.AnnAssign(value=ast.Call() as value):
                if last_name(value.func) == "partial" and value.args:
                    self.partials[target_of(node)] = value, self
            case ast.Call():
                self.calls.append((node, scope))
                self.within[node] = within
        for child in ast.iter_child_nodes(node):
            self._walk(child, scope, within)


def _assigned(node: ast.Module | Function) -> dict[str, list[ast.expr]]:
    """The values of the names that a module or function assigns to; none for its parameters."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    pending: list[ast.AST] = list(node.body)
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            found[target_of(each)].append(each.value)
        if isinstance(each, ast.stmt) and not isinstance(each, Function | ast.ClassDef):
            pending.extend(child for child in ast.iter_child_nodes(each) if not isinstance(child, ast.expr))
        elif isinstance(each, ast.ExceptHandler | ast.match_case):
            pending.extend(each.body)
    if isinstance(node, Function):
        found.update({name: [] for name in parameters_of(node)})
        found.update({f"{name}: type": [kind] for name, kind in _annotations(node).items()})
    return found


def _annotations(function: Function) -> dict[str, ast.expr]:
    given = function.args
    return {each.arg: each.annotation for each in (*given.args, *given.kwonlyargs) if each.annotation}


def _attributes(node: ast.ClassDef) -> dict[str, list[ast.expr]]:
    """The annotations of attributes that are parameters of a class."""
    inits = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    return {
        f"self.{target_of(each)}: type": [kind]
        for init in inits
        for each in ast.walk(init)
        if isinstance(each, ast.Assign | ast.AnnAssign) and isinstance(each.value, ast.Name)
        if (kind := _annotations(init).get(each.value.id))
    }


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def target_of(statement: ast.Assign | ast.AnnAssign) -> str:
    return last_name(statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0])


def parameters_of(function: Function) -> list[str]:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def annotated(function: Function) -> list[ast.expr]:
    """The names in the annotation of what a function returns."""
    named = ast.walk(function.returns) if function.returns else ()
    return [each for each in named if isinstance(each, ast.Name | ast.Attribute)]


def completes(function: Function) -> bool:
    """Return true for a function that makes a sentence of its own with a parameter."""
    parameters = set(parameters_of(function))
    for each in ast.walk(function):
        if isinstance(each, ast.JoinedStr):
            words = "".join(str(part.value) for part in each.values if isinstance(part, ast.Constant))
            used = {name.id for name in ast.walk(each) if isinstance(name, ast.Name)}
            if _WORD.search(words) and used & parameters:
                return True
    return False


def called_in(function: Function) -> set[str]:
    return {last_name(each.func) for each in ast.walk(function) if isinstance(each, ast.Call)}
