"""The soak itself, scaled down: it comes to a verdict, also when it is interrupted, and leaves nothing behind."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from scrapy_ext.jobprocess.proc import table
from tests.soak.nodes import command_of

REPOSITORY = Path(__file__).parents[3]
#: Seconds for the whole of it on a machine that does much else.
TIMEOUT = 800


def start(report: Path, temporary: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.soak", "--seed", "7", "--report", str(report), *options]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.fixture
def temporary() -> Path:
    """A folder for what the soak keeps, which PostgreSQL's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="soak-test-"))
    folder.chmod(0o755)
    return folder


def assert_nothing_is_left(temporary: Path) -> None:
    assert not list(temporary.iterdir())
    assert not [pid for pid in table() if str(temporary) in command_of(pid)]
    temporary.rmdir()


def interrupted(report: Path, temporary: Path) -> subprocess.Popen[str]:
    """A soak that was at work when it was interrupted."""
    soak = start(report, temporary, "--time", "1h")
    assert soak.stdout is not None
    while "acknowledged" not in (line := soak.stdout.readline()):
        assert line, "it ended early"
    soak.send_signal(signal.SIGINT)
    return soak


@pytest.mark.full
@pytest.mark.timeout(TIMEOUT)
def test_a_minute_of_harms_loses_and_doubles_nothing_and_is_reported(tmp_path: Path, temporary: Path) -> None:
    soak = start(tmp_path / "report", temporary, "--time", "60s")
    said, _ = soak.communicate(timeout=TIMEOUT)
    assert soak.returncode == 0, said[-3000:]
    assert "nothing lost, nothing doubled." in said
    assert "make soak TIME=60s SEED=7" in said
    assert "nothing lost, nothing doubled." in (tmp_path / "report" / "report.md").read_text()
    ET.parse(tmp_path / "report" / "chart.svg")
    with (tmp_path / "report" / "samples.csv").open() as file:
        assert {row["what"] for row in csv.DictReader(file)} >= {"descriptors of a worker", "rows of attempts"}
    assert_nothing_is_left(temporary)


@pytest.mark.full
@pytest.mark.timeout(TIMEOUT)
def test_an_interrupted_soak_says_what_there_is_and_leaves_nothing(tmp_path: Path, temporary: Path) -> None:
    soak = interrupted(tmp_path / "report", temporary)
    said, _ = soak.communicate(timeout=TIMEOUT)
    assert soak.returncode == 0, said[-3000:]
    assert "nothing lost, nothing doubled." in said
    assert "Interrupted after " in said.splitlines()[-2]
    assert "Interrupted after " in (tmp_path / "report" / "report.md").read_text()
    assert_nothing_is_left(temporary)


@pytest.mark.full
@pytest.mark.timeout(TIMEOUT)
def test_a_soak_that_is_interrupted_twice_ends_at_once_and_leaves_nothing(tmp_path: Path, temporary: Path) -> None:
    soak = interrupted(tmp_path / "report", temporary)
    time.sleep(0.5)  # two signals at once would be one
    soak.send_signal(signal.SIGINT)
    said, _ = soak.communicate(timeout=TIMEOUT)
    assert soak.returncode == 130, said[-3000:]
    assert_nothing_is_left(temporary)
