"""The comparison of runs of Scrapy's tests counts each difference, and its list of exceptions cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scrapy_suite.__main__ import PROOFS
from tests.scrapy_suite.comparison import KNOWN_DIFFERENCES, Difference, KnownDifference, differences, judge, read_known
from tests.scrapy_suite.runs import Run

PLAIN = Run(Path(), {"a.py::one": "passed", "a.py::two[x]": "passed", "b.py::three": "failed", "b.py::four": "skipped"})


def wired(**outcomes: str) -> Run:
    names = {test.rpartition("::")[2].partition("[")[0]: test for test in PLAIN.outcomes}
    return Run(Path(), PLAIN.outcomes | {names[name]: outcome for name, outcome in outcomes.items()})


def test_the_list_of_exceptions_can_be_read() -> None:
    assert all(entry.reason for entry in read_known(KNOWN_DIFFERENCES, PROOFS))


def test_what_fails_in_plain_scrapy_too_is_no_difference() -> None:
    assert differences(PLAIN, wired(three="passed")) == differences(PLAIN, wired()) == []


@pytest.mark.parametrize("outcome", ["failed", "skipped"])
def test_a_test_that_ends_otherwise_is_a_difference(outcome: str) -> None:
    assert differences(PLAIN, wired(one=outcome)) == [Difference("a.py::one", "passed", outcome)]


def test_a_test_that_does_not_run_is_a_difference() -> None:
    run = wired()
    del run.outcomes["b.py::four"]
    assert differences(PLAIN, run) == [Difference("b.py::four", "skipped", "not run")]


def test_a_difference_on_the_list_is_explained() -> None:
    found = differences(PLAIN, wired(two="failed"))
    assert judge(found, PLAIN, [KnownDifference("frontier", "a.py::two[*]", "why")]).explained == found


def test_a_difference_that_is_not_on_the_list_is_not_explained() -> None:
    found = differences(PLAIN, wired(two="failed"))
    assert judge(found, PLAIN, [KnownDifference("frontier", "a.py::two", "why")]).unexplained == found


@pytest.mark.parametrize("pattern", ["a.py::one", "a.py::gone", "*::two[y]"])
def test_an_entry_of_the_list_that_is_about_no_difference_is_stale(pattern: str) -> None:
    entry = KnownDifference("frontier", pattern, "why")
    assert judge(differences(PLAIN, wired(two="failed")), PLAIN, [entry]).stale == [entry]


def test_an_entry_about_a_test_that_fails_in_plain_scrapy_too_stays() -> None:
    assert judge([], PLAIN, [KnownDifference("frontier", "b.py::three", "why")]).stale == []


@pytest.mark.parametrize(
    "entry",
    [
        'wirings = ["frontier"]\ntests = ["a.py::one"]',
        'wirings = ["frontier"]\ntests = ["a.py::one"]\nreason = " "',
        'wirings = ["platform"]\ntests = ["a.py::one"]\nreason = "why"',
        'wirings = []\ntests = ["a.py::one"]\nreason = "why"',
        'wirings = ["frontier"]\ntests = ["a.py::one"]\nreason = "why"\nuntil = "2027"',
    ],
)
def test_an_entry_that_is_not_whole_is_refused(entry: str, tmp_path: Path) -> None:
    file = tmp_path / "known_differences.toml"
    file.write_text(f"[[known_difference]]\n{entry}\n")
    with pytest.raises(ValueError, match="needs wirings"):
        read_known(file, PROOFS)


def test_the_outcome_of_a_test_is_the_worst_of_its_phases(tmp_path: Path) -> None:
    phases = [("ends_badly", "setup", "passed"), ("ends_badly", "call", "passed"), ("ends_badly", "teardown", "failed")]
    phases += [
        ("left_out", "setup", "skipped"),
        ("left_out", "teardown", "passed"),
        ("never_called", "setup", "passed"),
    ]
    lines = [{"test": test, "when": when, "outcome": outcome, "why": ""} for test, when, outcome in phases]
    (tmp_path / "outcomes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert Run.read(tmp_path).outcomes == {"ends_badly": "failed", "left_out": "skipped"}
