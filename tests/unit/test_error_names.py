"""Names of errors: a traceback and an ``except`` clause name one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import scrapy_ext


def test_no_two_errors_have_one_name() -> None:
    found = defaultdict[str, list[str]](list)
    for module in Path(scrapy_ext.__file__).parent.rglob("*.py"):
        text = module.read_text("utf-8")
        if "Error(" in text or "Exception" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                    found[node.name].append(module.name)
    assert found
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
