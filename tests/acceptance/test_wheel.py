"""The wheel works without this checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.acceptance.test_crawl_end_to_end import SPIDERS
from tests.support.crawls import Project

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def tracked(*paths: str) -> list[str]:
    """The files of the repository below some paths."""
    command = ["git", "ls-files", *paths]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # From a copy: a build in the checkout would leave files there, and find those of an earlier one.
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in tracked("scrapy_ext", "pyproject.toml", "README.md", "LICENSE"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"scrapy_ext", wheel.name.split("-py3")[0] + ".dist-info"}
    assert set(tracked("scrapy_ext")) <= names, "every file of the package is in the wheel"
    licence = [name for name in names if name.endswith("LICENSE")]
    assert licence


def test_the_installed_wheel_crawls(wheel, tmp_path, site):
    installed = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(installed), str(wheel)]
    subprocess.run(command, check=True, timeout=300)
    project = Project(tmp_path / "project", SPIDERS, f"SERVER_ALLOW_HOSTS = [{site.host!r}]\nROBOTSTXT_OBEY = False\n")
    crawl = project.crawl("pages", "-a", f"site={site.url}", environment={"PYTHONPATH": str(installed)})
    assert (crawl.returncode, crawl.reason, crawl.stat("item_scraped_count")) == (0, "finished", site.pages + 1)
    found = subprocess.run(
        [sys.executable, "-c", "import scrapy_ext; print(scrapy_ext.__file__)"],
        env={"PYTHONPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(installed)), "the crawl ran the wheel, not the checkout"
