"""Checks the words of code and documents: ``python tools/prose.py [FILE ...]``; without a file, all of the repository.

Docstrings begin with what they describe, not with What, Who, Which, How or Whether; and some words have a plainer one,
which prose.toml names. A line that needs one of them ends with ``# prose: WORD`` (documents: a comment with the same).
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scrapy_ext.compatibility.toml import tomllib

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads(Path(__file__).with_name("prose.toml").read_text("utf-8"))
_OPENER = re.compile(rf"\s*(?:{'|'.join(RULES['openers'])})\b")
_WORDS = {re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): instead for pattern, instead in RULES["words"].items()}
_ALLOWED = re.compile(r"prose: ([\w ,-]+)")
#: Parts of documents that are not prose.
_CODE = re.compile(r"``[^`]*``|`[^`\n]*`|:[\w-]+:`[^`]*`|https?://\S+")


class Finding(NamedTuple):
    """A line that breaks a rule."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.message}"


def findings_of(path: Path) -> Iterator[Finding]:
    """The findings of a file."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    pieces = _python(text) if path.suffix == ".py" else _document(lines)
    for number, piece, is_docstring in pieces:
        if is_docstring and _OPENER.match(piece):
            yield Finding(path, number, f"a docstring begins with {piece.split()[0]}: begin with what it describes")
        for offset, line in enumerate(piece.splitlines() or [piece]):
            plain = _CODE.sub("", line)
            source = lines[min(number + offset, len(lines)) - 1]
            allowed = match[1].lower() if (match := _ALLOWED.search(source)) else ""
            for pattern, instead in _WORDS.items():
                if (found := pattern.search(plain)) and found[0].lower() not in allowed:
                    yield Finding(path, number + offset, f"{found[0]!r}: write {instead}")


def _python(text: str) -> Iterator[tuple[int, str, bool]]:
    """Strings and comments with the line where they begin; whether each is a docstring."""
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.lineno)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: "), False
        elif token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            is_docstring = token.start[0] in docstrings
            yield (
                token.start[0],
                token.string.lstrip("rbfuRBFU").strip("\"'") if is_docstring else token.string,
                is_docstring,
            )


def _document(lines: list[str]) -> Iterator[tuple[int, str, bool]]:
    for number, line in enumerate(lines, 1):
        if not line.startswith(("    ", "\t", "   $", "..")):
            yield number, line, False


def main() -> int:
    """Returns 1 when something is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--count", action="store_true", help="only count, by rule")
    options = parser.parse_args()
    command = ["git", "ls-files", "*.py", "*.rst", "*.md", "*.html"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = options.files or [ROOT / name for name in tracked if not name.startswith("tools/prose")]
    found = [finding for path in files for finding in findings_of(path.resolve())]
    if options.count:
        counts: dict[str, int] = {}
        for finding in found:
            counts[finding.message.lower()] = counts.get(finding.message.lower(), 0) + 1
        for message, count in sorted(counts.items(), key=lambda each: -each[1]):
            print(f"{count:6} {message}")
    else:
        for finding in found:
            print(finding)
    print(f"{len(found)} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
