"""The demonstration runs from beginning to end and says what it stored."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from example_project.site import news
from tests.support.servers import without_keys

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a copy of the example project, so that the data of the user's own is left alone."""
    shutil.copytree(ROOT / "example_project", tmp_path / "example_project", ignore=shutil.ignore_patterns(".scrapy"))
    return tmp_path


def demonstrate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "example_project.demo", *arguments],
        cwd=folder,
        env={**without_keys(), "PWD": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_it_shows_its_jobs_and_how_to_look_closer_and_again_at_a_second_run(folder: Path) -> None:
    for run in (1, 2):
        done = demonstrate(folder, "news")
        assert (done.returncode, done.stderr) == (0, "")
        assert re.search(rf"1/1/{run} +news +finished +{news.ARTICLES_PER_SECTION} ", done.stdout)
        assert f"the project has {run}" in done.stdout
        assert re.search(r"job +spider +closed +items +requests +through the frontier +log lines *\n", done.stdout)
        assert "collection scrapy_commits: items of commits under way " in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 200
    assert "with the API key demo" in done.stdout
    command = re.search(r"^  (cd example_project && \S+ platform items)$", done.stdout, re.MULTILINE)
    assert command is not None
    shown = subprocess.run(
        ["bash", "-c", command[1]],
        cwd=folder,
        env=without_keys(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert len(shown.stdout.splitlines()) == news.ARTICLES_PER_SECTION


def test_a_spider_that_it_does_not_have_is_a_usage_error(folder: Path) -> None:
    done = demonstrate(folder, "nothing")
    assert done.returncode == 2
    assert "no such spider: nothing" in done.stderr
