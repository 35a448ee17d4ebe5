"""Trees that code which is not trusted has written are walked and removed whatever their form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scrapy_ext.jobprocess import file_trees

NOBODY = 65534


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
