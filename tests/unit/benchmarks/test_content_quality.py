"""The measure of the main content: averages by type of page, their mix, and the gain over another version."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

# A folder of programs, not a package.
sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "quality"))

from block_truth import scores_of
from content_tables import PageScore, read_scores, table_of, write_scores

BEFORE = [
    PageScore("a", "one.example", "article", 0.8, 0.9, 0.8),
    PageScore("b", "two.example", "article", 0.8, 0.9, 0.6),
    PageScore("c", "two.example", "forum", 0.5, 0.5, 0.4),
]
AFTER = [score._replace(f1=score.f1 + 0.1) for score in BEFORE]


def test_types_have_an_average_each_and_the_mix_has_their_shares() -> None:
    table = table_of(BEFORE)
    assert [table[kind]["f1"] for kind in ("all", "article", "forum")] == [0.6, 0.7, 0.4]
    # Half of the pages of the mix are articles, and a tenth are forums.
    assert table["mix"]["f1"] == pytest.approx((5 * 0.7 + 0.4) / 6, abs=0.0001)
    assert table["product"]["pages"] == 0


def test_a_gain_that_all_pages_have_is_certain() -> None:
    row = table_of(AFTER, BEFORE)["mix"]
    assert row["gain"] == pytest.approx(0.1)
    assert row["gain_95"] == pytest.approx([0.1, 0.1])
    assert row["f1_95"][0] < row["f1"] <= row["f1_95"][1]


def test_scores_of_pages_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_scores(tmp_path / "scores", BEFORE)
    assert read_scores(tmp_path / "scores") == BEFORE


def test_words_count_as_often_as_they_are_there() -> None:
    label = Counter({"rope": 2, "line": 1})
    blocks = [("rope", "rope"), ("line", "sail")]
    assert scores_of([True, False], blocks, label) == (1.0, pytest.approx(2 / 3), pytest.approx(0.8))
    assert scores_of([False, False], blocks, label) == (0.0, 0.0, 0.0)
    assert scores_of([False], [("rope",)], Counter()) == (1.0, 1.0, 1.0)
