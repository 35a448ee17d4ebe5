"""A project without content in the source, whose number is probably wrong."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.commands.importing.context import PARTS, ImportOptions, ProjectImport
from scrapy_ext.commands.importing.project import _is_empty


def project(parts: tuple[str, ...] = PARTS, since: int | None = None) -> ProjectImport:
    nobody: Any = None
    options = ImportOptions(frozenset(parts), since, 1000, resume_periodic=False, dry_run=False)
    made = ProjectImport(nobody, nobody, (7, 7), options, nobody)
    for part in parts:
        made.row(part)
    return made


def test_an_import_of_everything_that_finds_nothing_is_noticed():
    made = project()
    made.note("activity", "a part that is never copied", number=0)
    assert _is_empty(made)


@pytest.mark.parametrize("field", ["copied", "copied_before", "would_copy"])
def test_a_project_with_content_is_not_empty(field):
    made = project()
    setattr(made.row("jobs"), field, 1)
    assert not _is_empty(made)


def test_a_project_with_content_that_cannot_be_copied_is_not_empty():
    made = project()
    made.note("running jobs", "a later run copies them")
    assert not _is_empty(made)


@pytest.mark.parametrize("made", [project(PARTS[:3]), project(since=1)])
def test_an_import_of_a_part_says_nothing_about_the_rest(made):
    assert not _is_empty(made)
