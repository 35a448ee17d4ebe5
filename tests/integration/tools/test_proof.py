"""``make proof``: the run of one step."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import proof


@pytest.mark.parametrize(
    ("code", "passed"), [("print('all of it')", True), ("print('some'); raise SystemExit(3)", False)]
)
def test_a_step_passes_by_its_exit_code_and_leaves_its_output(tmp_path: Path, code: str, passed: bool) -> None:
    log = tmp_path / "log"
    assert proof.run([sys.executable, "-c", code], log, 600) is passed
    assert log.read_text().strip() in ("all of it", "some")


def test_a_step_that_does_not_end_is_ended_and_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "_PROGRESS", 0.2)
    log = tmp_path / "log"
    code = "import time; print('begun', flush=True); time.sleep(3600)"
    assert proof.run([sys.executable, "-c", code], log, 1.5) is False
    assert "not ended within 2 s" in log.read_text()
    assert "s: begun" in capsys.readouterr().out


def test_a_busy_process_is_there_during_a_step_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    popen = proof.subprocess.Popen
    monkeypatch.setattr(
        proof.subprocess, "Popen", lambda *args, **kwargs: begun.append(popen(*args, **kwargs)) or begun[-1]
    )
    with proof._load(wanted=True):
        assert begun[0].poll() is None
    assert begun[0].returncode is not None
    with proof._load(wanted=False):
        assert len(begun) == 1
