"""Version of a benchmark: a digest of the code that decides what it measures.

It covers a script, and the definitions of the modules in ``rig/`` and ``quality/`` that the script uses, and that these
use in turn: by their names, in strings as Scrapy's settings name them (``rig.observers.Times``), or as the names of
spiders. Comments, docstrings, layout and the saving of results do not count. All versions of Python compute the same.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: The folder of the scripts.
BENCHMARKS: Final = Path(__file__).resolve().parents[1]
_MODULE = re.compile(r"(rig|quality)\.(\w+)(?:\.(\w+))?")
_SPIDERS: Final = "rig.spiders"
#: Definitions that only read options and write results.
_REPORTING: Final = {("rig.rounds", "options"), ("rig.rounds", "report")}
#: Fields of the syntax tree without a meaning of their own.
_WITHOUT_MEANING: Final = {"ctx", "kind", "type_comment"}

#: Module and name of a definition; no name for a whole module.
Definition = tuple[str, str]


def digest(script: str, folder: Path = BENCHMARKS) -> str:
    """Return the SHA-256 (hex) of a script, such as ``crawl_rate``."""
    sources, found = _Sources(folder), dict[Definition, Any]()
    waiting: list[Definition] = [(script, "")]
    while waiting:
        if (one := waiting.pop()) in found or one in _REPORTING:
            continue
        module = sources.module(one[0])
        parts = module.parts(one[1])
        found[one] = [_plain(part) for part in parts]
        waiting += (used for part in parts for used in module.used(part))
    return hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()


class _Sources:
    """The modules of the benchmarks, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, _Module] = {}

    def module(self, name: str) -> _Module:
        if name not in self._read:
            self._read[name] = _Module(self, name, self._path(name).read_text("utf-8"))
        return self._read[name]

    def has(self, name: str) -> bool:
        return bool(_MODULE.fullmatch(name)) and self._path(name).exists()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name.replace('.', '/')}.py"


class _Module:
    """A module: its definitions, and the names that it imports."""

    def __init__(self, sources: _Sources, name: str, text: str) -> None:
        self._sources, self._name = sources, name
        self._tree = ast.parse(text)
        self._definitions: dict[str, list[ast.stmt]] = {}
        self._imported: dict[str, Definition] = {}
        for statement in self._tree.body:
            for defined in _defined(statement):
                self._definitions.setdefault(defined, []).append(statement)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self._imported |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._definitions)

    def parts(self, name: str) -> list[ast.stmt]:
        """Return the statements of a definition; without a name, of the whole module."""
        return self._definitions.get(name, []) if name else [part for part in self._tree.body if not _is_text(part)]

    def used(self, part: ast.stmt) -> Iterator[Definition]:
        """Yield the definitions of the benchmarks that a statement uses."""
        for node in ast.walk(part):
            if isinstance(node, ast.Name):
                yield from self._named(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield from self._of_module(node.value.id, node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._written(node.value)

    def _named(self, name: str) -> Iterator[Definition]:
        if name in self._definitions:
            yield self._name, name
        elif (imported := self._imported.get(name)) and self._sources.has(imported[0]):
            yield imported

    def _of_module(self, name: str, attribute: str) -> Iterator[Definition]:
        module = ".".join(self._imported.get(name, ()))
        if self._sources.has(module):
            yield module, attribute

    def _written(self, text: str) -> Iterator[Definition]:
        if (match := _MODULE.fullmatch(text)) and self._sources.has(f"{match[1]}.{match[2]}"):
            yield f"{match[1]}.{match[2]}", match[3] or ""
        elif self._sources.has(_SPIDERS) and text in self._sources.module(_SPIDERS).names:
            yield _SPIDERS, text


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines; those of the benchmarks that it imports are followed instead."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def _plain(value: Any) -> Any:
    """Return a syntax tree as lists, without docstrings and what some versions of Python alone have."""
    if isinstance(value, list):
        return [_plain(each) for each in value if not _is_text(each)]
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = {name: each for name, each in ast.iter_fields(value) if name not in _WITHOUT_MEANING}
    if isinstance(value, ast.JoinedStr):
        # Python 3.12.0 and 3.12.1 have an empty text in some.
        fields["values"] = [each for each in value.values if not (isinstance(each, ast.Constant) and not each.value)]
    return [type(value).__name__, *([name, _plain(each)] for name, each in fields.items() if each not in (None, []))]


def _is_text(part: Any) -> bool:
    """Return True for a statement of text alone, as a docstring is."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)
