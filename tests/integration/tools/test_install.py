"""Setting up an environment: progress of what pip does, and its errors."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools/install.py"
LINES = """\
WARNING: Location 'elsewhere' is ignored
Collecting scrapy (from scrapy-ext)
  Downloading scrapy-2.19-py3-none-any.whl (300 kB)
Collecting playwright (from scrapy-ext)
  Downloading playwright-1.50-py3-none-any.whl (44.7 MB)
Requirement already satisfied: lxml
Installing collected packages: scrapy, playwright, scrapy-ext
Successfully installed scrapy-2.19 playwright-1.50 scrapy-ext-0.1.0
"""


def test_packages_and_megabytes_are_counted_and_warnings_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("install", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.follow(iter(LINES.splitlines(keepends=True)), []) == (3, pytest.approx(45.0))
    assert "installing 3 packages, 45 MB downloaded" in (shown := capsys.readouterr().out)
    assert "WARNING" not in shown


@pytest.mark.long
def test_what_pip_cannot_install_is_shown_with_its_error_and_without_warnings(tmp_path: Path) -> None:
    # No index and no links: pip finds nothing, and warns of a folder that does not exist.
    environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "nowhere"), "PATH": os.environ["PATH"]}
    command = [sys.executable, TOOL, tmp_path / "venv", "server"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "ERROR: " in done.stderr
    assert "Not installed: " in done.stderr
    assert "WARNING" not in done.stdout + done.stderr


@pytest.mark.long
def test_an_environment_that_cannot_be_used_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    old = tmp_path / "venv/bin/python"
    old.write_text("#!/bin/sh\necho 3 9 18\n")
    old.chmod(0o700)
    (tmp_path / "venv/old").touch()
    environment = {"PIP_NO_INDEX": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, TOOL, tmp_path / "venv", "server"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert f"with Python {'.'.join(map(str, sys.version_info[:3]))} " in done.stdout
    assert not (tmp_path / "venv/old").exists()


def test_a_python_that_is_too_old_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    code = f"import runpy, sys; sys.version_info = (3, 9, 18); sys.argv = {['', str(tmp_path / 'venv'), 'server']!r};"
    code += f"runpy.run_path({str(TOOL)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, (tmp_path / "venv").exists()) == (1, False)
    assert done.stderr.startswith("Python 3.10 or later is needed, and this is 3.9.18: ")
    assert "PYTHON=" in done.stderr
