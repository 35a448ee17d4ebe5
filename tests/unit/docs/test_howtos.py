"""The how-tos and README are short, and each how-to is in one group."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.docs_tables import DOCS

README = DOCS.parent / "README.md"
HOWTOS = sorted((DOCS / "howto").glob("*.rst"))
#: A table that is written from the code, between two comments.
_WRITTEN = re.compile(r"^\.\. This part is written by .*?^\.\. End of the written part\.$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", HOWTOS, ids=lambda path: path.stem)
def test_a_how_to_is_short_but_for_its_tables_of_the_code(path: Path) -> None:
    assert len(_WRITTEN.sub("", path.read_text("utf-8")).split()) < 800


def test_every_how_to_is_in_one_group() -> None:
    groups = (DOCS / "howto" / "index.rst").read_text("utf-8")
    listed = re.findall(r"^   ([a-z-]+)$", groups, re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in HOWTOS if path.stem != "index")


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").split()) < 700
