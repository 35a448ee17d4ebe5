"""Every test that the table of threats names exists, and every surface has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.docs_tables import tables_of

TESTS = Path(__file__).parents[2]
ROWS = tables_of("architecture/threats.rst")["Surfaces"]


def functions(file: str) -> set[str]:
    """The names of the tests of a file; none if there is no such file."""
    path = TESTS / f"{file}.py"
    return (
        {*re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE)}
        if path.exists()
        else set()
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_tests_of_a_surface_exist(row: list[str]) -> None:
    surface, attacker, defence, tests = row
    named = re.findall(r"``([\w/]+)::(\w+)``", tests)
    assert surface
    assert attacker
    assert defence
    assert named
    assert [f"{file}::{name}" for file, name in named if name not in functions(file)] == []


def test_no_surface_is_twice_and_no_other_text_is_among_the_tests() -> None:
    assert len({row[0] for row in ROWS}) == len(ROWS) > 25
    for row in ROWS:
        assert re.sub(r"``[\w/]+::\w+``", "", row[3]).strip(" ,") == "", row[0]


def test_a_test_that_is_gone_is_found() -> None:
    assert "test_a_test_that_is_gone_is_found" in functions("unit/docs/test_threats")
    assert functions("unit/docs/no_such_file") == set()
