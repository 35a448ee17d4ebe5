"""The report of a run: a folder with ``report.md``, ``chart.svg``, ``samples.csv``, and logs if something is wrong."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.soak.chart import draw
from tests.soak.flatness import Slope
from tests.soak.harms import Harm
from tests.soak.referee import Verdict
from tests.soak.samples import RULES, Sampler

#: Faults that are listed.
MOST = 100


class Run(NamedTuple):
    """A run that has ended."""

    verdict: Verdict
    command: str
    seconds: float
    figures: Mapping[str, object]
    harms: list[Harm]
    slopes: Mapping[str, Slope]


def write_report(folder: Path, run: Run, sampler: Sampler, logs: Mapping[str, Path]) -> None:
    """Write the report into a folder; ``logs`` of what ran, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    sampler.write(folder / "samples.csv")
    (folder / "chart.svg").write_text(draw(sampler.samples, run.harms))
    (folder / "report.md").write_text("\n".join(_lines(run)) + "\n")
    shutil.rmtree(folder / "logs", ignore_errors=True)
    if run.verdict.faults:
        for name, file in logs.items():
            (folder / "logs").mkdir(exist_ok=True)
            shutil.copyfile(file, folder / "logs" / name)


def _lines(run: Run) -> Iterator[str]:
    yield from ("# Soak", "", f"**{run.verdict.sentence}**", "")
    yield from (f"- {fault}" for fault in run.verdict.faults[:MOST])
    yield from ("", f"Again: `{run.command}`", "", f"{run.seconds / 60:.1f} minutes.", "", "| | |", "| --- | ---: |")
    yield from (f"| {name} | {value} |" for name, value in run.figures.items())
    yield from ("", "## Flatness", "", "![Samples over time](chart.svg)", "")
    yield "Growth in an hour by one line through all lives of a kind, each with a level of its own, after a warm-up;"
    yield "± is twice the standard error. *Grows*: above what is tolerated by more than that. *Flat*: below by as much."
    yield from ("", "| | level | growth an hour | tolerated | minutes | |", "| --- | ---: | ---: | ---: | ---: | --- |")
    for name in RULES:
        if (slope := run.slopes.get(name)) is None:
            yield f"| {name} | | | | | too short to say |"
            continue
        growth = f"{slope.growth:+.1f} ± {2 * slope.error:.1f}"
        numbers = f"{slope.level:.1f} | {growth} | {slope.tolerated:.1f} | {slope.seconds / 60:.1f}"
        yield f"| {name} | {numbers} | {slope.word} |"
    yield from ("", "## Harms", "", "| kind | times | seconds until all was well, median | most |")
    yield "| --- | ---: | ---: | ---: |"
    for kind, times in sorted(Counter(harm.kind for harm in run.harms).items()):
        well = [harm.well for harm in run.harms if harm.kind == kind and harm.well is not None] or [float("nan")]
        yield f"| {kind} | {times} | {median(well):.1f} | {max(well):.1f} |"
    yield from ("", "| second | harm | well again after |", "| ---: | --- | ---: |")
    for harm in run.harms:
        yield f"| {harm.began:.0f} | {harm.description} | {'never' if harm.well is None else f'{harm.well:.1f} s'} |"
