"""Trees that code which is not trusted has written are walked and removed whatever their form."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.jobprocess import file_trees

#: More than the recursion limit of Python.
DEPTH = 1100
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
    assert (names.count(LONG), names.count("file"), names.count("beside")) == (DEPTH + 20, 12, 1)
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


def test_what_is_not_removed_in_its_time_goes_on_where_it_was(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    deepen(tree, 50)
    with pytest.raises(TimeoutError):
        file_trees.remove(tree, time.monotonic() - 1)
    assert tree.exists()
    file_trees.remove(tree, time.monotonic() + 60)
    assert not tree.exists()
