"""The example site, in a process of its own, as its user starts it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.eventually import TIMEOUT

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the running site."""
    command = [sys.executable, "-m", "example_project.site", "--port", "0", "--exit-with-stdin"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert line[:1] == ["ready"], f"the site did not start: {line}"
        yield line[1]
        process.stdin.close()
        assert process.wait(timeout=TIMEOUT) == 0
