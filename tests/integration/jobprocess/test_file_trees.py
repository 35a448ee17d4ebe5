"""Trees that code which is not trusted has written are walked and removed whatever their form."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.jobprocess import file_trees

NOBODY = 65534
DEPTH = 3000
LONG = "d" * 200


def deepen(folder: Path, depth: int = DEPTH, name: str = LONG) -> None:
    """Make a folder in a folder and so on, with a file in each hundredth, deeper than a path can be long."""
    here = os.open(folder, os.O_RDONLY)
    for level in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        if level % 100 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Leave this process descriptors for what it does now and a few more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_a_tree_deeper_than_paths_and_recursion_is_walked_and_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    deepen(tree)
    (tree / "beside").mkdir()
    deepen(tree / "beside", 20)
    names = [name for _, name in file_trees.walk(tree)]
    assert (names.count(LONG), names.count("file"), names.count("beside")) == (DEPTH + 20, 31, 1)
    file_trees.remove(tree)
    assert os.listdir(tmp_path) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    other, tree = tmp_path / "other", tmp_path / "tree"
    for folder in (other, tree, tree / "inner"):
        folder.mkdir()
    (other / "kept").touch()
    (tree / "folder").symlink_to(other)
    (tree / "inner" / "file").symlink_to(other / "kept")
    (tree / "inner" / "folder").symlink_to("../..")
    os.mkfifo(tree / "inner" / "pipe")
    (tmp_path / "link").symlink_to(other)
    assert sorted(name for _, name in file_trees.walk(tree)) == ["file", "folder", "folder", "inner", "pipe"]
    for name in ("tree", "link", "never there"):
        file_trees.remove(tmp_path / name)
    assert os.listdir(tmp_path) == ["other"]
    assert os.listdir(other) == ["kept"]


REMOVE = """
import os, sys
from scrapy_ext.jobprocess import file_trees
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
for path in sys.argv[1:]:
    try:
        file_trees.remove(path)
    except OSError as error:
        print(type(error).__name__)
"""


def test_folders_without_rights_are_removed_by_their_owner_and_those_of_others_are_reported(tmp_path: Path) -> None:
    """Root needs no rights, so it is done by another user where the tests are root's."""
    tree, mixed = tmp_path / "closed", tmp_path / "mixed"
    for path in (tree, tree / "a", tree / "a" / "b", tree / "a" / "b" / "c", mixed, mixed / "mine"):
        path.mkdir()
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    (mixed / "other").mkdir()
    (mixed / "other" / "kept").touch()
    for path in (tree / "a" / "b" / "c", tree / "a" / "b", tree / "a", tree):
        path.chmod(0)
    tmp_path.chmod(0o777)
    # By names in its own folder, for the other user may not pass those above.
    command = [sys.executable, "-c", REMOVE, "closed", "mixed"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    if os.geteuid() == 0:
        assert shown.stdout == "PermissionError\n"
        assert os.listdir(mixed) == ["other"]
        assert os.listdir(tmp_path) == ["mixed"]
        file_trees.remove(mixed)  # who may goes on where the other was
    assert os.listdir(tmp_path) == []


def test_what_is_not_removed_in_its_time_goes_on_where_it_was(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    deepen(tree, 50)
    with pytest.raises(TimeoutError):
        file_trees.remove(tree, time.monotonic() - 1)
    assert tree.exists()
    file_trees.remove(tree, time.monotonic() + 60)
    assert not tree.exists()
