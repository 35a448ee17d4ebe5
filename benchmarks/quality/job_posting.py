"""``jobPosting``: fields on written pages in the shapes of job boards, and how sure it is of real pages of other types.

The written pages show that the rules do what they are meant to do; ``saved_pages.py`` measures real postings.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from data import page, timed
from scores import count, median_ms, scored

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.job_pages import PAGES, flat_item

#: Minimum probability at which a page counts as a job.
SURE = 0.5


def measure_job(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for written in PAGES.values():
        item = flat_item(timed("jobPosting", written.html, written.url)[0])
        for field, value in written.truth.items():
            found = item.get(field)
            count(counts, {_hashable(value)} - {None}, _hashable(found))
    taken, times = 0, []
    for name, label in sorted(labels.items()):
        item, spent = timed("jobPosting", page(folder, name), label["url"])
        times.append(spent)
        taken += item["metadata"]["probability"] >= SURE
    return {
        "kind": "jobPosting",
        "written_pages": len(PAGES),
        "fields_of_written_pages": scored(counts),
        "pages_of_other_types": len(labels),
        "taken_for_jobs": taken,
        "ms": median_ms(times),
    }


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
