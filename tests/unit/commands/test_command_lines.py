"""The command lines of ``scrapy platform`` in its help, in README.md and in docs/ are accepted by its parsers."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from scrapy_ext.commands.platform import SUBCOMMANDS, load, parser_of

ROOT = Path(__file__).parents[3]
#: A command line, up to a pipe, a redirection or another command.
_LINE = re.compile(
    r"""^ *(?:\$ )?(?:[A-Z_]+=\S+ )*scrapy platform (?!\S+:)(?P<line>(?:"[^"\n]*"|'[^'\n]*'|[^|>&\n])+)""", re.MULTILINE
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


#: The same arguments in other orders.
ORDERS = (
    (
        "frontier",
        "add q a b --spider s",
        ("add q --spider s a b", "--project 3 add q a --spider s b", "add --spider s q a b"),
    ),
    ("tags", "1 2 --add x", ("1 --add x 2", "--add x 1 2")),
    ("delete", "1 2 --yes", ("--yes 1 2", "1 --yes 2")),
    ("versions", "delete 1.0 --yes", ("--yes delete 1.0", "delete --yes 1.0")),
    ("schedule", "delete 1 2 --yes", ("delete 1 --yes 2", "--json delete 1 2 --yes")),
    ("collections", "get books --count 3", ("get --count 3 books", "-s A=b get books --count 3")),
    ("items", "last --count 3", ("--count 3 last", "--count 3")),
)


@pytest.mark.parametrize(
    ("name", "usual", "other"), [(name, usual, one) for name, usual, others in ORDERS for one in others]
)
def test_options_stand_anywhere(name: str, usual: str, other: str) -> None:
    chosen = load(name)
    wanted, found = (vars(parser_of(chosen).parse_args(chosen.with_action(line.split()))) for line in (usual, other))
    given = {"project", "json", "set"}  # of which the other line has more
    assert {key: found[key] for key in wanted if key not in given} == {
        key: value for key, value in wanted.items() if key not in given
    }


def test_what_is_no_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = load("frontier")
    with pytest.raises(SystemExit):
        parser_of(chosen).parse_args(chosen.with_action(["add", "q", "a", "--spidr", "s", "b"]))
    assert "did you mean '--spider'?" in capsys.readouterr().err


def test_there_are_many() -> None:
    assert len(LINES) > 150


@cache
def parser_named(name: str) -> ArgumentParser:
    return parser_of(load(name))


@pytest.mark.parametrize("line", LINES)
def test_it_is_accepted(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = shlex.split(line, comments=True)
    chosen = load(name)
    if chosen.takes_script and "--" in rest:
        rest = rest[: rest.index("--")]
    parser_named(name).parse_args(chosen.with_action(rest))
