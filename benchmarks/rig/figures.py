"""Parts of the documentation whose figures come from the results of the benchmarks (``benchmarks/results``).

The files of ``benchmarks/figures`` are Jinja templates of these parts. In them,
``{% call(r) measured("crawl_rate") %}…{% endcall %}`` is made from the results of the named runs
(``benchmarks/rig/runs.py``); a line on when and how they were measured follows it. A note on the remedy takes the place
of a result that cannot be used. ``chart("crawl_rates", r)`` inserts a picture of :mod:`rig.charts`. The filters
``ratio``, ``figure`` and ``span`` format numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from rig import charts
from rig.results import BENCHMARKS, RESULTS, Result, Run, fault, is_noisy, load
from rig.runs import RUNS

#: Folder of the templates.
TEMPLATES: Final = BENCHMARKS / "figures"
#: Folder of the pictures, below that of the documents.
CHARTS: Final = "_static/charts"
#: Names of contenders in tables that have few of them.
NAMES: Final = {
    "scrapy_tuned": "Scrapy with 8 concurrent items",
    "engine": "Scrapy's engine alone, pages from memory",
    "scrapy_ext": "this package, extraction alone",
    "everything": "this package, everything on",
    "scrapy_zyte_api": "scrapy-zyte-api",
}


class Figures:
    """Templates with the results of runs.

    ``results`` is the folder of the results, ``why`` says why one cannot be used (:func:`rig.results.fault`), and
    ``pictures`` is the folder of the pictures. ``faults`` are those found so far.
    """

    def __init__(
        self,
        runs: Sequence[Run] = RUNS,
        results: Path = RESULTS,
        pictures: Path | None = None,
        why: Callable[[Run, Path], str] = fault,
    ) -> None:
        self._runs = {run.name: run for run in runs}
        self._results, self._pictures, self._why = results, pictures, why
        self.faults: list[str] = []
        self._environment = Environment(
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )
        formats = {"ratio": ratio, "figure": figure, "span": span}
        names = {"contender": charts.contender, "size": charts.size, "stores": charts.stores}
        self._environment.filters |= {**formats, **names}
        self._environment.globals |= {**names, "ratios": ratios, "names": NAMES}
        self._environment.globals |= {"measured": self._measured, "chart": self._chart}

    def render(self, text: str) -> str:
        """Return the text of a template with its figures."""
        return self._environment.from_string(text).render()

    def _measured(self, *names: str, caller: Callable[..., str]) -> str:
        runs = [self._runs[name] for name in names]
        faults = [found for run in runs if (found := self._why(run, self._results))]
        if faults:
            self.faults += faults
            return "\n".join((".. note::", "", *(f"   * {found}" for found in faults), ""))
        found = [result for run in runs if (result := load(run, self._results)) is not None]
        parts = [caller(*(result["result"] for result in found)).rstrip()]
        for run, result in zip(runs, found, strict=True):
            parts += [".. rst-class:: measured", _origin(run, result)]
        return "\n\n".join(parts) + "\n"

    def _chart(self, name: str, *results: Any) -> str:
        with TemporaryDirectory() as temporary:
            folder = self._pictures or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            description = getattr(charts, name)(folder / f"{name}.svg", *results)
        return f".. image:: ../{CHARTS}/{name}.svg\n   :alt: {description}\n   :width: 100%\n"


def unusable(run: Run, results: Path = RESULTS) -> str:
    """Return why no page can have a result, of whatever version of its script; an empty text if they can."""
    found = load(run, results)
    if found is None or found["quick"] or found["arguments"] != dict(run.arguments):
        return fault(run, results)
    return ""


def _origin(run: Run, result: Result) -> str:
    """Return when, how and on what a result was measured."""
    machine, versions = result["machine"], result["versions"]
    command = " ".join((f"benchmarks/{run.script}.py", *run.options()))
    others = f", of which other programs used {machine['used_by_others']:.0%} meanwhile" if is_noisy(result) else ""
    return (
        f"``{command}`` on {result['measured']}: Scrapy {versions['scrapy']}, Python {versions['python']}, "
        f"{machine['cores']} cores{others}."
    )


# ── numbers ──


def ratio(value: float) -> str:
    """Format a ratio: two decimals, one from 10 on."""
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def ratios(found: Mapping[str, Any], what: str, ours: str, theirs: str) -> list[float]:
    """Return the ratio of two contenders by a measure, in each of several circumstances."""
    return [each[what][ours] / each[what][theirs] for each in found.values()]


def figure(value: float, digits: int = 2) -> str:
    """Format a number with so many significant digits: 0.58, 5.8, 58, 5,800."""
    if not value:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    # 9.97 became 10.0.
    places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(places, 0)}f}"


def span(values: Iterable[float], digits: int = 2) -> str:
    """Format the smallest and the largest of some numbers: ``2.5 to 3.3``."""
    ordered = sorted(values)
    ends = list(dict.fromkeys(figure(value, digits) for value in (ordered[0], ordered[-1])))
    return " to ".join(ends)
