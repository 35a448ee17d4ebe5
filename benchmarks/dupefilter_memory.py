"""Memory (bytes) and time (µs) per fingerprint, of Scrapy's set and of the package's.

Random fingerprints of 20 bytes, in a process for each: the growth of its resident memory by their number, and the time
of adding one, of meeting a known one and of meeting a new one. Scrapy's is the ``set`` of ``bytes`` that its
``RFPDupeFilter`` keeps, without the calls around it, and is filled less, since it would not fit everywhere. Times are
means of blocks, and the median of those; making the fingerprints is not in them.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, Protocol

from rig.observers import resident_bytes
from rig.processes import environment
from rig.rounds import alternate, median, options, report

_BLOCK = 50_000


class Filter(Protocol):
    """Base of both filters."""

    def __contains__(self, fingerprint: object, /) -> bool: ...

    def __len__(self) -> int: ...


def main() -> None:
    given = options(
        __doc__,
        full={"ours": 20_000_000, "scrapys": 5_000_000, "rounds": 1},
        quick={"ours": 2_000_000, "scrapys": 1_000_000, "rounds": 1},
    )
    counts = {"scrapy": given.scrapys, "scrapy_ext": given.ours}
    results = alternate(given.rounds, {name: _process(name, count) for name, count in counts.items()})
    found = {name: {key: _middle(rounds, key) for key in rounds[0]} for name, rounds in results.items()}
    ours, theirs = found["scrapy_ext"], found["scrapy"]
    report(
        "dupefilter_memory",
        **found,
        ratio={key: round(ours[key] / theirs[key], 2) for key in ours if key != "fingerprints"},
    )


def _process(name: str, count: int) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        command = [sys.executable, __file__, "measure", name, str(count)]
        done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, check=True, timeout=900)
        return dict(json.loads(done.stdout))

    return run


def _middle(rounds: list[dict[str, float]], key: str) -> float:
    return round(median(result[key] for result in rounds), 2)


# ── in a separate process ──


def measure(name: str, count: int) -> dict[str, Any]:
    seen, add = _made(name)
    before = resident_bytes()
    adding = [_microseconds(add, block) for block in _blocks(0, count)]
    grown = resident_bytes() - before
    return {
        "fingerprints": len(seen),
        "bytes_each": grown / len(seen),
        "add_us": median(adding),
        "last_add_us": median(adding[-10:]),
        "known_us": median(_microseconds(seen.__contains__, block) for block in _blocks(0, 10 * _BLOCK)),
        "new_us": median(_microseconds(seen.__contains__, block) for block in _blocks(count, 10 * _BLOCK)),
    }


def _made(name: str) -> tuple[Filter, Callable[[bytes], object]]:
    if name == "scrapy":
        scrapys: set[bytes] = set()
        return scrapys, scrapys.add
    from scrapy_ext.crawl.frontier.fingerprint_set import FingerprintSet

    ours = FingerprintSet()
    return ours, ours.add


def _blocks(first: int, count: int) -> Iterator[list[bytes]]:
    """Yield ``count`` fingerprints, the same ones for the same ``first``."""
    for start in range(first, first + count, _BLOCK):
        data = random.Random(start).randbytes(20 * _BLOCK)
        yield [data[at : at + 20] for at in range(0, len(data), 20)]


def _microseconds(call: Callable[[bytes], object], block: list[bytes]) -> float:
    begun = perf_counter()
    for fingerprint in block:
        call(fingerprint)
    return 1e6 * (perf_counter() - begun) / len(block)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        main()
