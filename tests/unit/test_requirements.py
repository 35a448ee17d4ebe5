"""Modules that the tests import come with the extra ``dev``, not by chance with something else that is installed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
#: Imports in source text that is data: spiders, components and scripts of cases.
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", re.M)


def _requirements_of(name: str, extras: frozenset[str], found: set[tuple[str, frozenset[str]]]) -> None:
    """Add the distribution and all that it needs here, with the extras that are asked for."""
    if (name, extras) in found:
        return
    found.add((name, extras))
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            _requirements_of(canonicalize_name(needed.name), frozenset(needed.extras), found)


def _imported(path: Path) -> Iterator[str]:
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]
    yield from _IMPORT.findall(text)


@pytest.fixture(scope="module")
def declared() -> set[str]:
    found: set[tuple[str, frozenset[str]]] = set()
    _requirements_of("scrapy-ext", frozenset({"dev"}), found)
    return {name for name, _ in found}


def test_each_imported_module_is_required(declared: set[str]) -> None:
    owners = {
        module: {canonicalize_name(name) for name in names}
        for module, names in metadata.packages_distributions().items()
        if module != "scrapy_ext"
    }
    paths = [path for suffix in ("*.py", "*.toml") for path in sorted((ROOT / "tests").rglob(suffix))]
    missing = {
        f"{module} in {path.relative_to(ROOT)}"
        for path in paths
        for module in _imported(path)
        if module in owners and not owners[module] & declared
    }
    assert not missing, "add these to the extra dev in pyproject.toml"
