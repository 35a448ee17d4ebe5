"""Benchmarks save their results, and one command makes those that are due."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
SCRIPT = '''"""A benchmark."""

from rig.rounds import options, report

given = options(__doc__, full={"rounds": 3, "data": ""}, quick={"rounds": 1, "data": ""})
report("counting", rounds=given.rounds, value=42)
'''
RUNS = """from rig.results import Run

RUNS = (Run("failing"), Run("counting", {"rounds": 2}, variant="two"), Run("counting", folder="data", variant="data"))
"""


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """A folder with two scripts, one of which fails."""
    shutil.copytree(BENCHMARKS / "rig", tmp_path / "rig", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(BENCHMARKS / "measure.py", tmp_path)
    (tmp_path / "rig" / "runs.py").write_text(RUNS)
    (tmp_path / "counting.py").write_text(SCRIPT)
    (tmp_path / "failing.py").write_text('raise SystemExit("no redis-server")\n')
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def saved(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "results" / f"{name}.json").read_text())
    return content


def test_a_result_says_how_it_was_measured_and_not_where(benchmarks: Path) -> None:
    done = run(benchmarks, str(benchmarks / "counting.py"), "--quick", "--data", str(benchmarks), "--save")
    assert json.loads(done.stdout) == {"benchmark": "counting", "rounds": 1, "value": 42}
    found = saved(benchmarks, "counting")
    assert found["result"] == {"rounds": 1, "value": 42}
    assert found["quick"] is True
    assert found["arguments"] == {}
    assert {"python", "scrapy", "scrapy-ext"} <= set(found["versions"])
    assert 0 <= found["machine"]["used_by_others"] <= 1
    text = (benchmarks / "results" / "counting.json").read_text()
    assert str(benchmarks) not in text
    assert socket.gethostname() not in text


def test_one_command_measures_what_is_due_and_goes_on_after_a_failure(benchmarks: Path) -> None:
    done = run(benchmarks, "measure.py")
    assert done.returncode == 1
    assert "FAILED after" in done.stdout
    assert "no redis-server" in done.stdout
    assert "Left out without --labelled: counting-data" in done.stdout
    assert saved(benchmarks, "counting-two")["result"] == {"rounds": 2, "value": 42}
    again = run(benchmarks, "measure.py", "--only", "counting", "--labelled", str(benchmarks))
    assert again.returncode == 0
    assert "counting-data, about" in again.stdout
    assert saved(benchmarks, "counting-data")["arguments"] == {}
    check = run(benchmarks, "measure.py", "--check")
    assert check.returncode == 1
    assert check.stdout == "benchmarks/results/failing.json is missing: make figures ONLY=failing\n"


def test_what_is_of_this_version_and_of_a_quiet_machine_is_left_out(benchmarks: Path) -> None:
    run(benchmarks, str(benchmarks / "counting.py"), "--rounds", "2", "--save", "two")
    path = benchmarks / "results" / "counting-two.json"
    for others, due in ((0.0, "0 of 1"), (0.5, "1 of 1")):
        content = json.loads(path.read_text())
        content["machine"]["used_by_others"] = others
        path.write_text(json.dumps(content))
        assert f"── {due} to measure" in run(benchmarks, "measure.py", "--only", "counting-two").stdout
    quiet = {**content, "machine": {**content["machine"], "used_by_others": 0.0}}
    path.write_text(json.dumps(quiet))
    assert "── 1 of 1 to measure" in run(benchmarks, "measure.py", "--only", "counting-two", "--again").stdout
