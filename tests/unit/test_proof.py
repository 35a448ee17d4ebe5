"""``make proof``: which steps are due, what of their output is kept, and the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import proof
from tools.proof import STEPS, ProofError, Result, Results, Step

STEP = Step("wheel", "wheel")
PASSED = Result("make wheel", "abc1234567", "tree", True, "3 passed", 61.0, "2026-01-02 03:04", "2 cores")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results.json")


def row_of(page: str, command: str) -> list[str]:
    """Return the cells of a row."""
    rows = [re.findall(r"(?m)^   [* ] -(?: (.*))?$", row) for row in re.split(r"(?m)^(?=   \* -)", page)]
    (found,) = [row for row in rows if row and row[0] == f"``{command}``"]
    return found


def test_a_step_that_passed_on_this_tree_is_not_due(results: Results) -> None:
    assert not results.has_passed(STEP, "tree", 1)
    results.keep(STEP, PASSED)
    assert results.has_passed(STEP, "tree", 1)
    assert not results.has_passed(STEP, "another tree", 1)


def test_a_step_that_failed_is_due_again(results: Results) -> None:
    results.keep(STEP, PASSED)
    results.keep(STEP, PASSED._replace(passed=False))
    assert not results.has_passed(STEP, "tree", 1)


def test_a_shorter_run_is_not_taken_for_a_whole_one(results: Results) -> None:
    fuzz = Step("fuzz", "fuzz", seconds=3600)
    assert fuzz.words(1) == ("make", "fuzz", "TIME=3600s")
    assert fuzz.words(0.01) == ("make", "fuzz", "TIME=36s")
    results.keep(fuzz, PASSED._replace(command=fuzz.shown(0.01)))
    assert results.has_passed(fuzz, "tree", 0.01)
    assert not results.has_passed(fuzz, "tree", 1)
    assert row_of(proof.page(results, "abc", "tree"), "make fuzz TIME=36s")[1] == "passed"


def test_results_are_there_in_the_next_process(results: Results, tmp_path: Path) -> None:
    results.keep(STEP, PASSED)
    assert Results(tmp_path / "results.json").get(STEP) == PASSED
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_two_runs_of_different_steps_keep_the_results_of_both(results: Results, tmp_path: Path) -> None:
    other = Results(tmp_path / "results.json")
    results.keep(STEP, PASSED)
    other.keep(STEPS[0], PASSED._replace(command="make check"))
    assert results.get(STEPS[0]) is not None
    assert other.get(STEP) == PASSED


def test_each_step_has_a_row_and_one_without_a_result_is_not_run(results: Results) -> None:
    results.keep(STEP, PASSED)
    page = proof.page(results, "abc1234567", "tree")
    assert "written for commit abc1234567" in page
    for step in STEPS:
        cells = row_of(page, step.shown(1))
        assert (cells[1] == "not run") == (step != STEP)
        assert len(cells) == 7
    assert row_of(page, "make wheel") == [
        *("``make wheel``", "passed", "``3 passed``", "1 min", "abc1234567", "2026-01-02 03:04", "2 cores"),
    ]


@pytest.mark.parametrize(("passed", "shown"), [(True, "passed"), (False, "**failed**")])
def test_a_result_of_other_files_is_shown_as_older(results: Results, passed: bool, shown: str) -> None:
    results.keep(STEP, PASSED._replace(passed=passed))
    assert row_of(proof.page(results, "abc", "tree"), "make wheel")[1] == shown
    assert row_of(proof.page(results, "abc", "another"), "make wheel")[1] == f"{shown}, of an older commit"


@pytest.mark.parametrize("path", [proof.PAGE, proof.RESULTS])
def test_what_a_run_writes_is_no_part_of_the_tree(path: str) -> None:
    listing = f"100644 blob aaa\tREADME.md\n100644 blob {{}}\t{path}\n"
    assert proof.digest_of(listing.format("bbb")) == proof.digest_of(listing.format("ccc"))
    assert proof.digest_of(listing.format("bbb")) != proof.digest_of(listing.format("bbb").replace("aaa", "ddd"))


@pytest.mark.parametrize(
    ("name", "output", "counts"),
    [
        ("test", "3 passed in 2.00s\n== 1 failed, 4 passed, 2 warnings in 70.1s (0:01:10) ==", "7 passed, 1 failed"),
        ("test", "2 errors in 0.1s", "2 error"),
        ("test", "no tests ran in 0.1s", ""),
        ("fuzz", "── 20 targets, 3 s each\n── 50 inputs, 0 of 20 targets broke\n", "50 inputs, 0 of 20 targets broke"),
        ("test-scrapy-frontier", "   9 passed in 1.2 minutes; x\n   2 passed in 0.1 minutes; y", "9 passed; 2 passed"),
        (
            "audit",
            "Licences: 200 packages, none not accepted.\nWeaknesses: NOT CHECKED. Because of that.\n",
            "Licences: 200 packages, none not accepted; Weaknesses: NOT CHECKED",
        ),
        ("audit", "", ""),
        (
            "release-check",
            "── Python 3.10 and 3.13; not here: 3.14\n── Python 3.10: crawl\n",
            "Python 3.10 and 3.13; not here: 3.14",
        ),
        ("release-check", "── Python 3.10 and 3.14\n── Python 3.10: crawl\n", "Python 3.10 and 3.14"),
    ],
)  # fmt: skip
def test_what_was_counted_is_read_from_the_output(name: str, output: str, counts: str) -> None:
    (step,) = (step for step in STEPS if step.name == name)
    assert proof.counts_of(step, output) == counts


def test_steps_are_chosen_by_name() -> None:
    assert proof._chosen("") == list(STEPS)
    assert [step.name for step in proof._chosen("docs, wheel")] == ["docs", "wheel"]
    with pytest.raises(ProofError, match=r"'whel' is no step. The steps are check, audit"):
        proof._chosen("whel")


def test_each_target_exists_and_names_are_unique() -> None:
    makefile = (proof.ROOT / "Makefile").read_text("utf-8")
    assert all(re.search(rf"(?m)^{step.target}:", makefile) for step in STEPS)
    assert len({step.name for step in STEPS}) == len({step.shown(1) for step in STEPS}) == len(STEPS)


@pytest.mark.parametrize(("seconds", "shown"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min"), (14500, "4 h 2 min")])
def test_times_are_for_readers(seconds: float, shown: str) -> None:
    assert proof.duration(seconds) == shown


def test_a_failure_ends_nothing_and_the_next_run_repeats_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing, ran = {"wheel"}, []

    def prove(step: Step, scale: float, tree: str) -> Result:
        ran.append(step.name)
        return PASSED._replace(command=step.shown(scale), tree=tree, passed=step.name not in failing)

    (tmp_path / "docs/architecture").mkdir(parents=True)
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    monkeypatch.setattr(proof, "_STATE", tmp_path / ".proof")
    monkeypatch.setattr(proof, "_git", lambda *words: "" if words[0] == "status" else "abc1234567\n")
    monkeypatch.setattr(proof, "prove", prove)
    monkeypatch.setattr("sys.argv", ["proof", "--only", "check,wheel,docs"])
    assert proof.main() == 1
    assert ran == ["check", "docs", "wheel"]
    failing.clear()
    assert proof.main() == 0
    assert ran == ["check", "docs", "wheel", "wheel"]
    assert "check: has passed on this commit" in capsys.readouterr().out
    page = (tmp_path / proof.PAGE).read_text("utf-8")
    assert [row_of(page, f"make {target}")[1] for target in ("wheel", "crash")] == ["passed", "not run"]


def test_files_that_are_not_committed_are_no_part_of_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        proof,
        "_git",
        lambda *_: " M docs/architecture/proof.rst\n?? docs/architecture/proof.json\n?? new.py\n M old.py\n",
    )
    with pytest.raises(ProofError, match=r"new\.py is not as committed \(2 files in all\).*commit or remove it"):
        proof.check_is_committed()


@pytest.mark.parametrize(
    ("after", "passed", "counts"), [("", True, "5 passed"), ("?? left.txt\n", False, "left left.txt; 5 passed")]
)
def test_a_step_that_leaves_a_file_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, passed: bool, counts: str
) -> None:
    status = iter(["", after])
    monkeypatch.setattr(proof, "_git", lambda *words: next(status) if words[0] == "status" else "abc\n")
    monkeypatch.setattr(proof, "_STATE", tmp_path)
    monkeypatch.setattr(proof, "run", lambda _, log, __: bool(log.write_text("5 passed in 1.0s")))
    result = proof.prove(STEP, 1, proof.digest_of("abc\n"))
    assert (result.passed, result.counts) == (passed, counts)


@pytest.mark.parametrize(("tree", "after"), [("another", ""), (proof.digest_of("abc\n"), " M changed.py\n")])
def test_a_step_during_which_committed_files_change_has_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: str, after: str
) -> None:
    status = iter(["", after])
    monkeypatch.setattr(proof, "_git", lambda *words: next(status) if words[0] == "status" else "abc\n")
    monkeypatch.setattr(proof, "_STATE", tmp_path)
    monkeypatch.setattr(proof, "run", lambda _, log, __: bool(log.write_text("5 passed in 1.0s")))
    with pytest.raises(ProofError, match="Committed files changed while wheel ran"):
        proof.prove(STEP, 1, tree)


def test_a_run_that_is_interrupted_writes_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prove(step: Step, scale: float, tree: str) -> Result:
        if step.name == "docs":
            raise KeyboardInterrupt
        return PASSED._replace(command=step.shown(scale), tree=tree)

    (tmp_path / "docs/architecture").mkdir(parents=True)
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    monkeypatch.setattr(proof, "_STATE", tmp_path / ".proof")
    monkeypatch.setattr(proof, "_git", lambda *words: "" if words[0] == "status" else "abc1234567\n")
    monkeypatch.setattr(proof, "prove", prove)
    monkeypatch.setattr("sys.argv", ["proof", "--only", "check,docs"])
    with pytest.raises(KeyboardInterrupt):
        proof.main()
    page = (tmp_path / proof.PAGE).read_text("utf-8")
    assert [row_of(page, f"make {target}")[1] for target in ("check", "docs")] == ["passed", "not run"]
