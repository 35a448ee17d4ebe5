"""The documentation shows figures of this version of the benchmarks alone."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCHMARKS = ROOT / "benchmarks"
# Programs, not a package.
sys.path.append(str(BENCHMARKS))

from rig import figures, results  # noqa: E402
from rig.digest import digest  # noqa: E402
from rig.results import Run, fault  # noqa: E402
from rig.runs import RUNS  # noqa: E402

TEMPLATES = {path.stem: path.read_text("utf-8") for path in sorted(figures.TEMPLATES.glob("*.rst"))}
RUN = Run("crawl_rate", {"rounds": 3})
TEMPLATE = """Before.

{% call(r) measured("crawl_rate") %}
{{ r.ours | figure }} by {{ r.theirs | figure }} pages a second: {{ (r.ours / r.theirs) | ratio }}.
{% endcall %}

After.
"""

Save = Callable[..., None]


@cache
def unchanged(script: str) -> str:
    return digest(script)


@pytest.fixture(autouse=True)
def digests_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute the digest of a script once where nothing changes it."""
    monkeypatch.setattr(
        results, "digest", lambda script, folder: unchanged(script) if folder == BENCHMARKS else digest(script, folder)
    )


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a result of the run, with some members changed."""

    def write(**changed: Any) -> None:
        content = {
            "benchmark": RUN.script,
            "variant": "",
            "arguments": dict(RUN.arguments),
            "quick": False,
            "measured": "2026-01-31",
            "seconds": 60,
            "versions": {"python": "3.13.1", "scrapy": "2.19.0"},
            "machine": {"cores": 2, "load": [0.1, 1.0], "used_by_others": 0.02},
            "script": unchanged(RUN.script),
            "result": {"ours": 5720.5, "theirs": 2000},
        }
        (tmp_path / f"{RUN.name}.json").write_text(json.dumps(content | changed))

    return write


def rendered(folder: Path) -> tuple[str, list[str]]:
    page = figures.Figures([RUN], folder)
    return page.render(TEMPLATE), page.faults


# ── pages ──


def test_a_page_has_the_figures_of_the_results_and_how_they_were_measured(tmp_path: Path, save: Save) -> None:
    save()
    text, faults = rendered(tmp_path)
    assert faults == []
    assert "5,700 by 2,000 pages a second: 2.86." in text
    assert "``benchmarks/crawl_rate.py --rounds 3`` on 2026-01-31: Scrapy 2.19.0, Python 3.13.1, 2 cores." in text
    assert text.startswith("Before.")
    assert text.endswith("After.\n")


def test_a_page_says_that_other_programs_used_the_machine(tmp_path: Path, save: Save) -> None:
    save(machine={"cores": 2, "load": [4.0, 5.0], "used_by_others": 0.35})
    assert "2 cores, of which other programs used 35% meanwhile." in rendered(tmp_path)[0]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (None, "benchmarks/results/crawl_rate.json is missing: make figures ONLY=crawl_rate"),
        (
            {"script": "0" * 64},
            "benchmarks/crawl_rate.py has changed since its figures were measured: make figures ONLY=crawl_rate",
        ),
        (
            {"quick": True},
            "benchmarks/results/crawl_rate.json is of a quick run, which shows only that it works: "
            "make figures ONLY=crawl_rate",
        ),
        (
            {"arguments": {"rounds": 1}},
            "benchmarks/results/crawl_rate.json is of other arguments than in benchmarks/rig/runs.py: "
            "make figures ONLY=crawl_rate",
        ),
    ],
)
def test_a_result_that_cannot_be_used_is_replaced_by_what_to_do(
    tmp_path: Path, save: Save, changed: dict[str, Any] | None, expected: str
) -> None:
    if changed is not None:
        save(**changed)
    text, faults = rendered(tmp_path)
    assert faults == [expected]
    assert expected in text
    assert "pages a second" not in text
    assert "After." in text


def test_a_template_that_names_what_a_result_has_not_fails(tmp_path: Path, save: Save) -> None:
    save(result={"ours": 1})
    with pytest.raises(jinja2.UndefinedError, match="theirs"):
        rendered(tmp_path)


def test_every_run_is_shown_and_every_figure_has_a_run() -> None:
    shown = set()
    for template in TEMPLATES.values():
        for names in re.findall(r"measured\(([^)]*)\)", template):
            shown |= set(re.findall(r'"([^"]+)"', names))
    assert shown == {run.name for run in RUNS}
    assert len(RUNS) == len(shown)
    assert all((BENCHMARKS / f"{run.script}.py").exists() for run in RUNS)


def test_every_template_is_a_part_of_a_page() -> None:
    pages = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.rst"))
    assert set(re.findall(r": figures (\S+)\.$", pages, re.MULTILINE)) == TEMPLATES.keys()


def test_the_pictures_are_those_of_the_results(tmp_path: Path) -> None:
    drawn = figures.Figures(pictures=tmp_path, why=figures.unusable)
    for template in TEMPLATES.values():
        drawn.render(template)
    pictures = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    written = {path.name: path.read_text("utf-8") for path in (ROOT / "docs" / figures.CHARTS).iterdir()}
    assert pictures == written, "run: python -m tools.tables --write"


@pytest.mark.parametrize("changed", [{"script": "0" * 64}, {"quick": True}, {"arguments": {}}], ids=str)
def test_a_page_keeps_the_figures_of_a_script_that_has_changed(
    tmp_path: Path, save: Save, changed: dict[str, Any]
) -> None:
    save(**changed)
    assert (figures.unusable(RUN, tmp_path) == "") == ("script" in changed)
    assert figures.unusable(Run("jobs"), tmp_path).startswith("benchmarks/results/jobs.json is missing")


def test_no_result_is_kept_that_no_page_needs() -> None:
    kept = {path.stem for path in (BENCHMARKS / "results").glob("*.json")}
    assert kept <= {run.name for run in RUNS}


# ── numbers ──


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0584, "0.058"), (0.58, "0.58"), (5.84, "5.8"), (58.4, "58"), (5840, "5,800"), (9.97, "10"), (0.0, "0")],
)
def test_figures_have_two_significant_digits(value: float, expected: str) -> None:
    assert figures.figure(value) == expected


def test_ratios_have_two_decimals() -> None:
    assert [figures.ratio(value) for value in (0.4049, 1.0, 9.996, 12.34)] == ["0.40", "1.00", "10.0", "12.3"]


def test_ratios_of_contenders_are_of_the_same_circumstances() -> None:
    found = {"10": {"cpu_us": {"ours": 500, "theirs": 1000}}, "100": {"cpu_us": {"ours": 900, "theirs": 1200}}}
    assert figures.ratios(found, "cpu_us", "ours", "theirs") == [0.5, 0.75]


def test_ranges_go_from_the_smallest_to_the_largest() -> None:
    assert figures.span([3.31, 2.52, 2.9]) == "2.5 to 3.3"
    assert figures.span([2.51, 2.52]) == "2.5"


# ── versions of a script ──


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """A copy of the benchmarks that a test may change."""
    folder = tmp_path / "benchmarks"
    shutil.copytree(BENCHMARKS, folder, ignore=shutil.ignore_patterns("__pycache__", "results"))
    return folder


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_result_is_of_another_version_after_a_change_of_its_script(
    tmp_path: Path, save: Save, benchmarks: Path
) -> None:
    save()
    assert fault(RUN, tmp_path, benchmarks) == ""
    replace(benchmarks / "crawl_rate.py", '"SitePages"', '"Chains"')
    assert fault(RUN, tmp_path, benchmarks).startswith("benchmarks/crawl_rate.py has changed")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("rig/contenders.py", '"ROBOTSTXT_OBEY": False', '"ROBOTSTXT_OBEY": True'),  # what it imports uses it
        ("rig/site.py", "20", "21"),  # a process that it starts
        ("rig/spiders.py", "page_items = 1", "page_items = 2"),  # a spider that it names
    ],
)
def test_what_a_script_uses_is_part_of_its_version(benchmarks: Path, module: str, old: str, new: str) -> None:
    replace(benchmarks / module, old, new)
    assert digest("crawl_rate", benchmarks) != unchanged("crawl_rate")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("crawl_rate.py", "def main() -> None:", "# A comment.\n\n\ndef main() -> None:"),
        ("crawl_rate.py", '"""Pages per second', '"""The pages per second'),
        ("rig/contenders.py", '"ZYTE_API_KEY": "0"', '"ZYTE_API_KEY": "1"'),  # of other scripts
        ("rig/spiders.py", 'name = "burst"', 'name = "another"'),
        ("rig/rounds.py", "within a minute", "soon"),  # options and results
        ("rig/results.py", "meanwhile", "at the same time"),
    ],
)
def test_what_a_script_does_not_measure_is_not(benchmarks: Path, module: str, old: str, new: str) -> None:
    replace(benchmarks / module, old, new)
    assert digest("crawl_rate", benchmarks) == unchanged("crawl_rate")


def test_the_version_is_the_same_on_every_version_of_python(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(
        '"""A script."""\n\nimport json\n\n\ndef shown(*values, end="\\n", **more):\n    """Print."""\n'
        '    found = [f"{value!r:>{10}} of {{}}" "and" for value in values if value is not None]\n'
        "    print(json.dumps(found), 1e9, b'x', end=end)  # so that it ends\n\n\nclass A: ...\n"
    )
    assert digest("made", tmp_path) == "a980dd7d76ac792952c3baff081536e73cce79141ca876cc4b9ccff0fcfd7e68"
