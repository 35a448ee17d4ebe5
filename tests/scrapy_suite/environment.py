"""The environment that Scrapy's tests run in: this one, with what the tests need on top, and the tests themselves.

Both are kept in a folder of this environment, one for each version of Scrapy, so that they go when it goes. Nothing of
Scrapy is part of the repository.
"""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

CACHE: Final = Path(sys.prefix, "scrapy-suite")
#: Modules that the processes of the tests load.
INSIDE: Final = Path(__file__).parent / "inside"
#: For the tests of the images pipeline.
_MORE: Final = ("Pillow",)


class Environment(NamedTuple):
    """Folder of Scrapy's tests, and the Python that runs them."""

    python: Path
    suite: Path


def installed() -> Environment:
    """The tests of the installed version of Scrapy, which are in its source distribution."""
    number = version("scrapy")
    folder = CACHE / number
    return _prepared(folder) or _prepare(folder, _download(folder, f"scrapy=={number}"), install=None)


def newest() -> Environment:
    """The newest version on PyPI, pre-releases included, and its tests."""
    folder = CACHE / "newest"
    shutil.rmtree(folder, ignore_errors=True)
    sdist = _download(folder, "scrapy", "--pre")
    return _prepare(folder, sdist, install=sdist)


def of_source(source: Path) -> Environment:
    """The version of a source distribution, or of a checkout of Scrapy's repository, and its tests."""
    folder = CACHE / "source"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return _prepare(folder, source.resolve(), install=source.resolve())


def _prepared(folder: Path) -> Environment | None:
    environment = _of(folder)
    # The last thing that is made.
    return environment if (environment.suite / "conftest.py").exists() else None


def _of(folder: Path) -> Environment:
    return Environment(folder / "venv" / "bin" / "python", folder / "suite")


def _prepare(folder: Path, source: Path, *, install: Path | None) -> Environment:
    environment = _of(folder)
    for old in ("venv", "suite"):
        shutil.rmtree(folder / old, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        tree = _unpacked(source, Path(scratch))
        _make_venv(folder / "venv")
        _pip(environment.python, "install", *_requirements(tree), *([str(install)] if install else []))
        # Without the package: the tests are to find the one that is installed.
        shutil.copytree(tree, environment.suite, ignore=_is_package(tree))
    return environment


def _is_package(tree: Path) -> shutil._CopyFn:  # type: ignore[name-defined]
    return lambda folder, names: {"scrapy", ".git", ".tox"} & set(names) if Path(folder) == tree else ()


def _unpacked(source: Path, scratch: Path) -> Path:
    if source.is_dir():
        return source
    with tarfile.open(source) as archive:
        archive.extractall(scratch, filter="data")
    (tree,) = scratch.iterdir()
    return tree


def _make_venv(folder: Path) -> None:
    """An environment that has everything of this one, beneath what is installed into it."""
    venv.create(folder, with_pip=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    Path(paths["purelib"], "scrapy_suite.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n{INSIDE}\nimport scrapy_suite_wiring\n",
        encoding="utf-8",
    )


def _requirements(tree: Path) -> list[str]:
    """Requirements of Scrapy's tests, by its own list."""
    tox = configparser.RawConfigParser(inline_comment_prefixes=("#",))
    tox.read(tree / "tox.ini", encoding="utf-8")
    lines = tox["test-requirements"]["deps"].splitlines()
    return [*(line.strip() for line in lines if line.strip()), *_MORE]


def _download(folder: Path, what: str, *options: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _pip(Path(sys.executable), "download", what, "--no-deps", "--no-binary", "scrapy", "--dest", scratch, *options)
        (found,) = Path(scratch).glob("*.tar.gz")
        return found.rename(folder / found.name)


def _pip(python: Path, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)
