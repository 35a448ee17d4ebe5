"""Fuzz every parser of untrusted input for a while: ``python -m tests.fuzz [--time 10m] [--target NAME] [--seed N]``.

The time is shared by the targets, each in a process of its own, as many at once as there are processors. Starting one
takes some ten seconds more. What breaks one is saved in ``tests/fuzz/corpus``, from where
``tests/integration/fuzz/test_corpus.py`` runs it again; the exit status is 1 then. ``--input FILE`` runs one input
alone.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.target import CORPUS, Target, all_targets
from tests.support.durations import seconds, seed

#: Of one input, before it counts as one that never ends.
_HANG_SECONDS = 30
_MEMORY_MB = 2048
#: Beside its time, for starting and for the last input, on a machine that does much else.
_GRACE_SECONDS = 900
_NEEDED = "Fuzzing needs atheris, which is there for Linux on x86-64: pip install -e '.[dev]'"


class Outcome(NamedTuple):
    """Result of fuzzing one target."""

    runs: int
    covered: int
    finding: Path | None
    output: str


def fuzz(found: Target, seconds: int, seed: int) -> Outcome:
    """Fuzz a target for some seconds."""
    kept = CORPUS / found.name
    with tempfile.TemporaryDirectory(prefix="scrapy-ext-fuzz-") as folder:
        inputs, findings = Path(folder, "inputs"), Path(folder, "findings")
        inputs.mkdir()
        findings.mkdir()
        for name, data in found.entries():
            (inputs / name).write_bytes(data)
        options = [
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-max_len={found.longest}",
            f"-timeout={_HANG_SECONDS}",
            f"-rss_limit_mb={_MEMORY_MB}",
            f"-artifact_prefix={findings}/",
        ]
        command = [sys.executable, "-m", "tests.fuzz.one", found.name, *options, str(inputs)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + _GRACE_SECONDS, check=False
        )
        output = done.stdout.decode(errors="replace")
        broken = sorted(findings.iterdir())
        if done.returncode and not broken:
            raise RuntimeError(f"{' '.join(command)} failed\n{output[-4000:]}")
        finding = None
        if broken:
            kept.mkdir(parents=True, exist_ok=True)
            finding = kept / broken[0].name
            finding.write_bytes(broken[0].read_bytes())
    return Outcome(_last(r"^#(\d+)\s", output), _last(r"\bcov: (\d+)", output), finding, output)


def _last(pattern: str, text: str) -> int:
    numbers = re.findall(pattern, text, re.MULTILINE)
    return int(numbers[-1]) if numbers else 0


def run(chosen: list[Target], seconds: float, seed: int) -> int:
    """Fuzz targets, as many at once as there are processors; returns how many of them broke."""
    at_once = min(os.cpu_count() or 1, len(chosen))
    share = max(1, int(seconds * at_once / len(chosen)))
    print(f"── {len(chosen)} targets, {share} s each and some ten to start, {at_once} at once, seed {seed}", flush=True)
    with ThreadPoolExecutor(at_once) as pool:
        return _report(chosen, pool.map(lambda found: fuzz(found, share, seed), chosen), share, seed)


def _report(chosen: list[Target], outcomes: Iterable[Outcome], share: int, seed: int) -> int:
    """Print each outcome as it comes; returns how many targets broke."""
    broken = runs = 0
    for number, (found, outcome) in enumerate(zip(chosen, outcomes, strict=True), 1):
        runs += outcome.runs
        state = "FOUND" if outcome.finding else "held"
        place = f"[{number}/{len(chosen)}] {found.name}"
        print(f"{place:<32} {state:<6} {outcome.runs:>9} inputs, {outcome.covered:>5} branches", flush=True)
        if outcome.finding is not None:
            broken += 1
            print(outcome.output[-3000:])
            print(f"   again: python -m tests.fuzz --target {found.name} --input {outcome.finding}")
            print(f"   search again: python -m tests.fuzz --target {found.name} --time {share}s --seed {seed}")
    print(f"── {runs} inputs, {broken} of {len(chosen)} targets broke")
    return broken


def main() -> int:
    """Read the command line; returns the exit status."""
    targets = all_targets()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--time", type=seconds, default="10m", help="of all targets together, such as 90s (default: %(default)s)"
    )
    parser.add_argument("--target", action="append", choices=targets, help="one of them; may be repeated")
    parser.add_argument("--seed", type=seed, default=None, help="of libFuzzer (default: a new one)")
    parser.add_argument("--input", type=Path, help="run this file alone, with one --target")
    given = parser.parse_args()
    chosen = [targets[name] for name in given.target or targets]
    if given.input is not None:
        if len(chosen) != 1:
            parser.error("--input needs one --target")
        chosen[0].check(given.input.read_bytes())
        print(f"{chosen[0].name} holds")
        return 0
    if find_spec("atheris") is None:
        parser.error(_NEEDED)
    return min(1, run(chosen, given.time, given.seed or random.randrange(1, 2**31)))


if __name__ == "__main__":
    sys.exit(main())
