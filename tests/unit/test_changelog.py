"""``tools/changelog.py``: the form of CHANGELOG.md, and the sections that a release takes from it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("changelog", ROOT / "tools/changelog.py")
changelog = importlib.util.module_from_spec(spec)
spec.loader.exec_module(changelog)

GOOD = """# Changelog

The form.

## [Unreleased]

### Added

- A command
  of two lines.

## [0.2.0] - 2026-03-01

### Changed

- One thing.

### Fixed

- Another.

## [0.1.0] - 2026-01-31

The first.

### Added

- All.
"""
PYPROJECT = '[project]\nname = "scrapy-ext"\nversion = "0.2.0"\ndependencies = ["other>=1"]\n'


def test_this_repositorys_changelog_has_the_form():
    assert changelog.faults((ROOT / "CHANGELOG.md").read_text("utf-8")) == []


def test_a_changelog_of_the_form_has_no_faults():
    assert changelog.faults(GOOD) == []
    assert changelog.faults("# Changelog\n\n## [Unreleased]\n") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# Changelog", "# History", "line 1: begin with '# Changelog'"),
        ("## [Unreleased]", "## Unreleased", "line 5: '## Unreleased': write '## [Unreleased]'"),
        ("## [Unreleased]", "## [0.3.0] - 2026-04-01", "the first section has to be '## [Unreleased]'"),
        ("## [Unreleased]", "## [Unreleased] - 2026-04-01", "Unreleased has no date"),
        ("## [0.2.0] - 2026-03-01", "## [0.2.0]", "0.2.0 needs its date"),
        ("## [0.2.0] - 2026-03-01", "## [0.2.0] - 2026-02-31", "2026-02-31 is no date"),
        ("## [0.2.0]", "## [next]", "next is not a version"),
        ("## [0.2.0]", "## [0.0.9]", "0.1.0 is below 0.0.9: the newest comes first"),
        ("## [0.2.0] - 2026-03-01", "## [0.2.0] - 2025-03-01", "0.1.0 is later than 0.2.0"),
        ("## [0.1.0] - 2026-01-31", "## [Unreleased]", "a second or late section Unreleased"),
        ("### Fixed", "### Mended", "'Mended': write one of Added, Changed"),
        ("### Fixed", "### Changed", "a second part 'Changed' of 0.2.0"),
        ("- Another.", "", "Fixed of 0.2.0 has no entry"),
        ("- Another.", "* Another.", "an entry begins with '- '"),
        ("The first.", "- The first.", "an entry above the first part"),
    ],
)
def test_a_fault_of_form_is_named_with_its_remedy(old, new, message):
    found = changelog.faults(GOOD.replace(old, new, 1))
    assert any(message in each for each in found), found


def test_versions_are_in_the_order_of_their_numbers():
    order = ["0.9.9", "0.10.0a1", "0.10.0a2", "0.10.0b1", "0.10.0rc1", "0.10.0", "1.0.0"]
    assert sorted(sorted(order), key=changelog.numbers_of) == order
    for other in ("1.0", "1.0.0-rc1", "v1.0.0", "1.0.0.post1", "1.0.0\n"):
        with pytest.raises(changelog.ChangelogError, match="is not a version"):
            changelog.numbers_of(other)


def test_the_section_of_a_version_is_its_text_alone():
    assert changelog.section_of(GOOD, "0.2.0").text == "### Changed\n\n- One thing.\n\n### Fixed\n\n- Another."
    with pytest.raises(changelog.ChangelogError, match=r"no section '## \[0.9\]'; there are: Unreleased, 0.2.0, 0.1.0"):
        changelog.section_of(GOOD, "0.9")


def test_tag_version_and_newest_section_are_the_same():
    assert changelog.check_tag("v0.2.0", GOOD, PYPROJECT) == "0.2.0"
    for tag in ("0.2.0", "v0.2.1", "v0.2.0; id", "refs/tags/v0.2.0"):
        with pytest.raises(changelog.ChangelogError, match=r"the tag has to be 'v0.2.0'"):
            changelog.check_tag(tag, GOOD, PYPROJECT)
    with pytest.raises(changelog.ChangelogError, match=r"the newest section is of 0.2.0, not of 0.3.0"):
        changelog.check_tag("v0.3.0", GOOD, PYPROJECT.replace("0.2.0", "0.3.0"))
    with pytest.raises(changelog.ChangelogError, match="of no version"):
        changelog.check_tag("v0.2.0", "# Changelog\n\n## [Unreleased]\n", PYPROJECT)


def test_the_version_has_one_line_of_pyproject():
    assert changelog.project_version((ROOT / "pyproject.toml").read_text("utf-8"))
    with pytest.raises(changelog.ChangelogError, match="0 lines"):
        changelog.project_version("[project]\n")


def test_a_release_moves_the_entries_of_unreleased_to_its_version():
    made = changelog.released(GOOD, "0.3.0", "2026-04-01")
    assert changelog.section_of(made, "0.3.0").entries == ["- A command of two lines."]
    assert changelog.section_of(made, "Unreleased").text == ""
    assert changelog.check_tag("v0.3.0", made, PYPROJECT.replace("0.2.0", "0.3.0")) == "0.3.0"
    with pytest.raises(changelog.ChangelogError, match="nothing to release"):
        changelog.released(made, "0.4.0", "2026-04-01")
    with pytest.raises(changelog.ChangelogError, match="has its section already"):
        changelog.released(GOOD, "0.2.0", "2026-04-01")
    with pytest.raises(changelog.ChangelogError, match="newest comes first"):
        changelog.released(GOOD, "0.1.5", "2026-04-01")


def test_a_change_of_the_package_needs_a_new_entry():
    code, other = ["scrapy_ext/addon.py", "README.md"], ["README.md", "tests/scrapy_ext.py"]
    new = GOOD.replace("- A command", "- A setting.\n- A command")
    assert changelog.without_line(code, GOOD, GOOD, "Add it") == ["scrapy_ext/addon.py"]
    assert changelog.without_line(code, GOOD, new, "Add it") == []
    assert changelog.without_line(other, GOOD, GOOD, "Mend it") == []
    assert changelog.without_line(code, GOOD, GOOD, "Rename\n\nChangelog: none\n") == []


def test_an_entry_that_only_moved_is_not_new():
    moved = changelog.released(GOOD, "0.3.0", "2026-04-01")
    assert changelog.without_line(["scrapy_ext/addon.py"], GOOD, moved, "Release 0.3.0") == ["scrapy_ext/addon.py"]
