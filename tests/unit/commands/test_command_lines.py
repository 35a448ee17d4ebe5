"""The command lines of ``scrapy platform`` in its help, in README.md and in docs/ are accepted by its parsers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.commands.platform import SUBCOMMANDS, load, parser_of

ROOT = Path(__file__).parents[3]
#: A command line, up to a pipe, a redirection or another command, which may stand in double quotes.
_LINE = re.compile(
    r"""^ *(?:\$ )?(?:[A-Z_]+=\S+ )*scrapy platform (?!\S+:)(?P<line>(?:"[^"\n]*"|[^|>&\n"])+)""", re.MULTILINE
)
#: Names that stand for values, as in a list of commands.
_PLACEHOLDER = re.compile(r"[A-Z]{3,}(?![\w=/:.])|…|\.\.\.|\[")


def _of_help() -> Iterator[str]:
    for name in SUBCOMMANDS:
        for example, _ in load(name).examples:
            if found := _LINE.match(example):
                yield found["line"]


def _of_docs() -> Iterator[str]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.rst"))):
        if "_build" in path.parts:
            continue
        text = path.read_text().replace("\\\n", " ")
        for found in _LINE.finditer(text):
            line = found["line"].strip()
            if "``" not in line and not _PLACEHOLDER.search(line):
                yield line


LINES = sorted({*_of_help(), *_of_docs()})


def test_there_are_many() -> None:
    assert len(LINES) > 150


@pytest.mark.parametrize("line", LINES)
def test_it_is_accepted(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = shlex.split(line, comments=True)
    chosen = load(name)
    if chosen.takes_script and "--" in rest:
        rest = rest[: rest.index("--")]
    parser_of(chosen).parse_args(chosen.with_action(rest))
