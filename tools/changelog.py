"""Check and use of CHANGELOG.md, whose form is that of Keep a Changelog.

``python tools/changelog.py`` checks the form. ``--version X`` prints the section of a version, ``--since REF`` fails
when the package has changed since a commit and no entry is new, ``--tag vX`` fails unless the tag, the version in
pyproject.toml and the newest section are the same, and ``--release X`` turns the section Unreleased into that of X.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
PYPROJECT = ROOT / "pyproject.toml"
UNRELEASED = "Unreleased"
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
#: Folder whose changes a user can notice.
PACKAGE = "scrapy_ext"
#: In the message of the newest commit: this change needs no line.
NO_LINE = "Changelog: none"

_HEADING = re.compile(r"## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?")
#: The form of a version here: 1.2.3, or 1.2.3rc1 before it.
_NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")
_PROJECT_VERSION = re.compile(r'(?m)^version = "([^"]+)"$')


class ChangelogError(Exception):
    """Fault of the changelog, with its place and what to write instead."""


class Section(NamedTuple):
    """The section of one version: number of its heading's line, and the lines below it."""

    version: str
    date: dt.date | None
    line: int
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()

    @property
    def entries(self) -> list[str]:
        """The entries, each as one line."""
        found: list[str] = []
        for line in self.lines:
            if line.startswith("- "):
                found.append(line)
            elif line.startswith("  ") and found:
                found[-1] += f" {line.strip()}"
        return found


def numbers_of(version: str) -> tuple[int, int, int, str, int]:
    """Return the numbers of a version in an order that compares as versions do."""
    match = _NUMBERS.fullmatch(version)
    if match is None:
        raise ChangelogError(f"{version} is not a version: write 1.2.3, or 1.2.3rc1 before it")
    major, minor, patch, stage, number = match.groups()
    # "z" is above "a", "b" and "rc": the version itself comes after what was before it.
    return int(major), int(minor), int(patch), stage or "z", int(number or 0)


def sections(text: str) -> list[Section]:
    """Return the sections of a changelog, the newest first."""
    found: list[Section] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            match = _HEADING.fullmatch(line)
            if match is None:
                raise ChangelogError(f"line {number}: {line!r}: write '## [{UNRELEASED}]' or '## [1.2.3] - 2026-01-31'")
            try:
                date = dt.date.fromisoformat(match["date"]) if match["date"] else None
            except ValueError as error:
                raise ChangelogError(f"line {number}: {match['date']} is no date of the calendar") from error
            found.append(Section(match["version"], date, number, []))
        elif found:
            found[-1].lines.append(line)
    return found


def faults(text: str) -> list[str]:
    """Return what does not have the form, as sentences with the number of the line."""
    try:
        found = sections(text)
    except ChangelogError as error:
        return [str(error)]
    lines = []
    if not text.startswith("# Changelog\n"):
        lines.append("line 1: begin with '# Changelog'")
    if not found or found[0].version != UNRELEASED:
        lines.append(f"the first section has to be '## [{UNRELEASED}]', also when it is empty")
    newest: Section | None = None
    for section in found:
        lines += _faults_of(section)
        if section.version == UNRELEASED:
            if section is not found[0]:
                lines.append(
                    f"line {section.line}: a second or late section {UNRELEASED}: there is one, above all others"
                )
            continue
        try:
            numbers = numbers_of(section.version)
        except ChangelogError as error:
            lines.append(f"line {section.line}: {error}")
            continue
        if newest is not None and numbers >= numbers_of(newest.version):
            lines.append(f"line {section.line}: {section.version} is below {newest.version}: the newest comes first")
        elif newest is not None and section.date and newest.date and section.date > newest.date:
            lines.append(f"line {section.line}: {section.version} is later than {newest.version}, above it")
        newest = section
    return lines


def _faults_of(section: Section) -> list[str]:
    """Return the faults inside of one section."""
    found = []
    if section.version == UNRELEASED and section.date:
        found.append(f"line {section.line}: {UNRELEASED} has no date")
    if section.version != UNRELEASED and not section.date:
        found.append(f"line {section.line}: {section.version} needs its date: '## [{section.version}] - 2026-01-31'")
    if section.version != UNRELEASED and not section.entries:
        found.append(f"line {section.line}: {section.version} has no entry")
    kinds: dict[str, int] = {}
    kind = None
    for number, line in enumerate(section.lines, section.line + 1):
        if line.startswith("### "):
            kind = line.removeprefix("### ")
            if kind not in KINDS:
                found.append(f"line {number}: {kind!r}: write one of {', '.join(KINDS)}")
            if kind in kinds:
                found.append(f"line {number}: a second part {kind!r} of {section.version}: join them")
            kinds[kind] = 0
        elif line.startswith("- ") and kind is None:
            found.append(f"line {number}: an entry above the first part: put '### Added', or another, above it")
        elif line.startswith("- ") and kind is not None:
            kinds[kind] += 1
        elif line.startswith(("* ", "#")):
            found.append(f"line {number}: {line.split()[0]!r}: an entry begins with '- ', a part with '### '")
    found += [
        f"line {section.line}: {kind} of {section.version} has no entry" for kind, count in kinds.items() if not count
    ]
    return found


def section_of(text: str, version: str) -> Section:
    """Return the section of a version, or raise ChangelogError."""
    found = sections(text)
    for section in found:
        if section.version == version:
            return section
    raise ChangelogError(f"no section '## [{version}]'; there are: {', '.join(each.version for each in found)}")


def project_version(text: str) -> str:
    """Return the version in pyproject.toml, the one place that has it."""
    found: list[str] = _PROJECT_VERSION.findall(text)
    if len(found) != 1:
        raise ChangelogError(f'pyproject.toml: {len(found)} lines of the form version = "1.2.3": there has to be one')
    return found[0]


def check_tag(tag: str, changelog: str, pyproject: str) -> str:
    """Return the version of a tag, or raise ChangelogError when something else has another version."""
    version = project_version(pyproject)
    if tag != f"v{version}":
        raise ChangelogError(f"the tag is {tag!r} and pyproject.toml has {version}: the tag has to be 'v{version}'")
    newest = next((each for each in sections(changelog) if each.version != UNRELEASED), None)
    if newest is None or newest.version != version:
        other = newest.version if newest else "no version"
        raise ChangelogError(
            f"the newest section is of {other}, not of {version}: python tools/changelog.py --release {version}"
        )
    return version


def released(text: str, version: str, today: str) -> str:
    """Return a changelog whose entries of Unreleased are those of a version, and Unreleased is empty."""
    section = section_of(text, UNRELEASED)
    if not section.entries:
        raise ChangelogError(f"{UNRELEASED} has no entry: there is nothing to release")
    if any(each.version == version for each in sections(text)):
        raise ChangelogError(f"{version} has its section already: choose the next version")
    heading = f"## [{UNRELEASED}]"
    made = text.replace(f"{heading}\n", f"{heading}\n\n## [{version}] - {today}\n", 1)
    if wrong := faults(made):
        raise ChangelogError("; ".join(wrong))
    return made


def without_line(changed: Sequence[str], before: str, now: str, message: str) -> list[str]:
    """Return the changed files of the package when no entry is new and the commit does not say that none is needed."""
    files = [name for name in changed if name.startswith(f"{PACKAGE}/")]
    known = {entry for section in sections(before) for entry in section.entries}
    new = any(entry not in known for section in sections(now) for entry in section.entries)
    return [] if new or NO_LINE in message else files


def _git(*arguments: str) -> str:
    git = shutil.which("git") or "git"
    done = subprocess.run([git, *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ChangelogError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def check_since(ref: str) -> None:
    """Raise ChangelogError when the package has changed since a commit, and the changelog has no new entry."""
    start = _git("merge-base", "--end-of-options", ref, "HEAD").strip()
    changed = _git("diff", "--name-only", start, "--").splitlines()
    before = _git("show", f"{start}:CHANGELOG.md")
    message = _git("log", "--format=%B", f"{start}..HEAD")
    if files := without_line(changed, before, CHANGELOG.read_text("utf-8"), message):
        shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
        raise ChangelogError(
            f"{shown} changed since {ref}, and CHANGELOG.md has no new entry. A user can notice it: add a line. "
            f"Nobody can: write '{NO_LINE}' into the commit's message"
        )


def release(version: str) -> None:
    """Write a version into pyproject.toml and CHANGELOG.md."""
    numbers_of(version)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    changelog = released(CHANGELOG.read_text("utf-8"), version, today)
    pyproject = PYPROJECT.read_text("utf-8")
    project_version(pyproject)
    CHANGELOG.write_text(changelog, "utf-8")
    PYPROJECT.write_text(_PROJECT_VERSION.sub(f'version = "{version}"', pyproject), "utf-8")
    print(f"CHANGELOG.md and pyproject.toml have {version}. Commit both, and push the tag v{version}.")


def main() -> int:
    """Return 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--version", help="print the section of this version")
    one.add_argument("--since", metavar="REF", help="fail when scrapy_ext/ changed since this commit without an entry")
    one.add_argument("--tag", help="fail unless this tag, the version and the newest section are the same")
    one.add_argument("--release", metavar="VERSION", help="move the entries of Unreleased to this version")
    options = parser.parse_args()
    text = CHANGELOG.read_text("utf-8")
    wrong = faults(text)
    try:
        if not wrong and options.version:
            print(section_of(text, options.version).text)
        elif not wrong and options.since:
            check_since(options.since)
        elif not wrong and options.tag:
            print(check_tag(options.tag, text, PYPROJECT.read_text("utf-8")))
        elif not wrong and options.release:
            release(options.release)
    except ChangelogError as error:
        wrong = [str(error)]
    for line in wrong:
        print(f"CHANGELOG.md: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
