"""Check of a release: builds it, installs it as new users do, crawls with it, and writes ``dist/``.

``make release-check``, which installs release-requirements.txt first. The last lines are a table of what passed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bill_of_materials import BillError, licence_table, write_bill
from distributions import (
    ROOT,
    DistributionError,
    Distributions,
    build,
    check_contents,
    check_reproducible,
    contents,
    distributions,
    git,
)
from empty_environment import CommandError, EmptyEnvironment
from metadata_check import check_metadata, minor_versions
from package_index import PackageIndex, usual_index

DIST = ROOT / "dist"


class Row(NamedTuple):
    """A check that ran: its name, seconds, result, and whether it passed."""

    name: str
    seconds: float
    note: str
    passed: bool


class Checks:
    """The checks of a run, in their order. One that fails stops the run."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def run(self, name: str, check: Callable[..., str], *arguments: object) -> None:
        print(f"── {name}", flush=True)
        began = time.monotonic()
        try:
            note, passed = check(*arguments), True
        except (BillError, CommandError, DistributionError, subprocess.SubprocessError) as error:
            note, passed = str(error), False
        self.rows.append(Row(name, time.monotonic() - began, note, passed))
        if not passed:
            self.end()

    def end(self) -> None:
        """Print the table, and exit with 1 when a check failed."""
        width = max(len(row.name) for row in self.rows)
        print(f"\n{'check':{width}}  result  seconds")
        for row in self.rows:
            shown = row.note if row.passed else "see below"
            print(f"{row.name:{width}}  {'passed' if row.passed else 'FAILED'}  {row.seconds:7.1f}  {shown}".rstrip())
        failed = [row for row in self.rows if not row.passed]
        if failed:
            sys.exit(f"\n{failed[0].name}: {failed[0].note}")
        print(f"\n{sum(row.seconds for row in self.rows):.0f} s. In dist/:")
        for path in sorted(DIST.iterdir()):
            print(f"  {path.name}  {path.stat().st_size:,} bytes")


def pythons() -> list[Path]:
    """Return the oldest and the newest Python of this machine that the package supports and that has venv."""
    found = {}
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *sorted(Path.home().glob(".pyenv/versions/*/bin"))]
    for minor in minor_versions():
        for folder in folders:
            path = Path(folder) / f"python3.{minor}"
            code = "import sys, venv, ensurepip; print(sys.version_info[1])"
            if path.exists() and minor not in found:
                done = subprocess.run([str(path), "-c", code], check=False, capture_output=True, text=True, timeout=60)
                if done.stdout.strip() == str(minor):
                    found[minor] = path
    if not found:
        sys.exit(f"None of Python 3.{', 3.'.join(map(str, minor_versions()))} found: put one on PATH")
    ends = dict.fromkeys((min(found), max(found)))
    missing = [f"3.{minor}" for minor in minor_versions() if minor not in found]
    print(f"── Python 3.{' and 3.'.join(map(str, ends))}" + (f"; not here: {', '.join(missing)}" if missing else ""))
    return [found[minor] for minor in ends]


def _tool(*command: object) -> str:
    """Run a module in this environment."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], check=False, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise CommandError(f"{done.stdout}{done.stderr}")
    return ""


def _build_twice(folder: Path) -> str:
    return check_reproducible(build(DIST), build(folder / "again", wheel_from_sdist=False))


def _wheel_of_sdist(python: Path, index: PackageIndex, folder: Path, built: Distributions) -> str:
    """Build a wheel from the sdist of the index, as pip does where no wheel fits, and compare it."""
    environment = EmptyEnvironment(python, folder)
    environment.create()
    pip = (environment.python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-binary", "scrapy-ext")
    environment.run(*pip, "--no-cache-dir", "--index-url", index.url, "--wheel-dir", folder, "scrapy-ext")
    made, ours = contents(folder / built.wheel.name), contents(built.wheel)
    # These two have the version of setuptools, which pip chooses for itself, and hashes.
    differ = [each for each in made.keys() | ours.keys() if made.get(each) != ours.get(each)]
    if differ := [each for each in differ if not each.endswith((".dist-info/WHEEL", ".dist-info/RECORD"))]:
        raise DistributionError(f"pip's wheel of the sdist has another {', '.join(sorted(differ)[:5])}")
    return f"{len(made)} files, as in ours"


def _install(environment: EmptyEnvironment, requirement: str, index: PackageIndex, built: Distributions) -> str:
    environment.install(f"{requirement}=={built.version}", index=index.url)
    if built.wheel.name not in index.served:
        raise CommandError(f"pip did not install {built.wheel.name} of the local index")
    version = environment.check_commands()
    if version != built.version:
        raise CommandError(f"{version} is installed, not {built.version}")
    return f"{environment.size() / 1e6:.0f} MB, pip check and commands"


def _crawl(environment: EmptyEnvironment) -> str:
    output = environment.crawl_example()
    jobs = re.findall(r"(?m)^\s*\d+/\d+/\d+ .*$", output)
    print("\n".join(jobs))
    return f"{len(jobs)} crawls, all items stored"


def _bills(environment: EmptyEnvironment, stem: Path) -> str:
    bill = stem.with_name(f"{stem.name}.cdx.json")
    note = write_bill(environment.python, bill)
    stem.with_name(f"{stem.name}.licences.md").write_text(licence_table(json.loads(bill.read_text("utf-8"))), "utf-8")
    return note


def _check_python(
    checks: Checks, python: Path, index: PackageIndex, folder: Path, built: Distributions, *, with_bills: bool
) -> None:
    """Install into an empty environment of one Python, and crawl."""
    shown = f"Python {python.name.removeprefix('python')}"
    stem = DIST / f"scrapy-ext-{built.version}"
    index.served.clear()
    environment = EmptyEnvironment(python, folder / python.name)
    checks.run(f"{shown}: empty environment", environment.create)
    checks.run(f"{shown}: install scrapy-ext", _install, environment, "scrapy-ext", index, built)
    if with_bills:
        checks.run("SBOM and licences of scrapy-ext", _bills, environment, stem)
    checks.run(f"{shown}: install scrapy-ext[server]", _install, environment, "scrapy-ext[server]", index, built)
    if with_bills:
        checks.run(
            "SBOM and licences of scrapy-ext[server]", _bills, environment, stem.with_name(f"{stem.name}-server")
        )
    checks.run(f"{shown}: crawl the example", _crawl, environment)


def main() -> None:
    if dirty := git("status", "--porcelain").splitlines():
        print(f"── {len(dirty)} files are not committed: this is a rehearsal, not a release", flush=True)
    shutil.rmtree(DIST, ignore_errors=True)
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checks.run("two builds are equal, and wheel of sdist = wheel of tree", _build_twice, folder)
        built = distributions(DIST)
        checks.run("contents: the tracked files, nothing else", check_contents, built)
        checks.run("twine check --strict", _tool, "twine", "check", "--strict", *built)
        checks.run("check-wheel-contents", _tool, "check_wheel_contents", "--toplevel", "scrapy_ext", built.wheel)
        checks.run("metadata", check_metadata, built.wheel)
        found = pythons()
        with PackageIndex(built, others=usual_index()) as index:
            for python in found:
                _check_python(checks, python, index, folder, built, with_bills=python is found[-1])
            checks.run("pip's wheel of the sdist = ours", _wheel_of_sdist, found[-1], index, folder / "sdist", built)
    checks.end()


if __name__ == "__main__":
    main()
