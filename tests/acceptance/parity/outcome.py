"""Comparison of two runs of a spider, field by field."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.acceptance.parity.site import OTHER

#: Stats that Scrapy does not have, or that measure the machine, or how Scrapy works inside.
_UNCOMPARED: Final = re.compile(
    r"(platform|frontier|extract_api|memusage|memdebug)/|.*bytes|elapsed_time|.*_per_minute|finish_reason|(start|finish)_time"
    r"|scheduler/(de|en)queued/|scheduler/unserializable|log_count/(DEBUG|INFO)|.*latency"
)
_OURS: Final = re.compile(r"\w+ scrapy_ext")
#: Memory addresses, and IDs that Scrapy makes.
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{6,}")


def differences(plain: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Fields that are not the same, with both values, the first of plain Scrapy."""
    found = {name: (plain.get(name), other.get(name)) for name in {**plain, **other}}
    return {name: pair for name, pair in found.items() if pair[0] != pair[1]}


def fields(written: str, visits: Sequence[str], port: int, folder: str) -> dict[str, Any]:
    """All that is compared of a spider, of what ``run`` has written down and of the requests that the site got."""
    for host in ("localhost", OTHER):
        written = written.replace(f"{host}:{port}", host)
    written_outcome = json.loads(_ADDRESS.sub("0x0", written.replace(folder, "FOLDER")))
    found: dict[str, Any] = {"files": written_outcome["files"]}
    for number, run in enumerate(written_outcome["runs"]):
        prefix = f"run {number}: " if len(written_outcome["runs"]) > 1 else ""
        found |= {prefix + name: value for name, value in _of_run(run)}
    # One at a time for the one host that most spiders visit is enough for the site.
    in_order = all(1 in run["settings"].values() for run in written_outcome["runs"])
    found["hits"] = dict(Counter(visits))
    if in_order:
        found["order of hits"] = list(visits)
    return found


def _of_run(run: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    in_order = run["settings"]["CONCURRENT_REQUESTS"] == 1
    for name in ("raised", "reason"):
        yield name, run[name]
    for name in ("items", "notes"):
        yield name, _sorted(run[name])
        if in_order:
            yield f"order of {name}", run[name]
    by_signal: dict[str, dict[str, int]] = {}
    for sent, count in run["signals"].items():
        name, _, detail = sent.partition(" ")
        by_signal.setdefault(name, {})[detail] = count
    for name, counts in by_signal.items():
        yield f"signal {name}", counts
    for name, value in run["stats"].items():
        if not _UNCOMPARED.match(name):
            yield f"stat {name}", value
    if run["stored"] is not None and _sorted(run["stored"]) != _sorted(run["storable"]):
        yield "items of the platform that are not those of the spider", _sorted(run["stored"])
    yield "log", {line: count for line, count in run["log"].items() if not _OURS.match(line)}
    yield "log of scrapy_ext", {line: count for line, count in run["log"].items() if _OURS.match(line)}


def _sorted(values: list[Any] | None) -> list[Any] | None:
    return values and sorted(values, key=lambda value: json.dumps(value, sort_keys=True))
