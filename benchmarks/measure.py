"""Measure what the documentation shows: run the benchmarks of ``rig/runs.py`` in order, and save their results.

A run whose result is of this version of its script, of these arguments and of a quiet machine is left out. One that
fails does not stop the others. Needs a quiet machine: what other programs used meanwhile is saved with each result.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from rig.processes import BENCHMARKS, end_with_signal
from rig.results import Run, fault, is_noisy, load
from rig.runs import RUNS

#: A run is ended after this multiple of the time that it takes on a quiet machine, and some minutes.
_PATIENT_FACTOR, _PATIENT_SECONDS = 4, 300


def main() -> int:
    end_with_signal()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of scripts or of results, with commas")
    parser.add_argument("--again", action="store_true", help="measure those too whose results can be used")
    parser.add_argument(
        "--check", action="store_true", help="measure nothing; say which results cannot be used, and why"
    )
    parser.add_argument("--labelled", default="", help="folder of labelled pages, for the runs that need one")
    given = parser.parse_args()
    if given.check:
        return check()
    runs = chosen([name for name in given.only.split(",") if name])
    due = [run for run in runs if given.again or reason(run)]
    if left_out := [run.name for run in due if run.folder and not given.labelled]:
        print(f"── Left out without --labelled: {', '.join(left_out)}")
    due = [run for run in due if not run.folder or given.labelled]
    print(f"── {len(due)} of {len(runs)} to measure, about {sum(run.minutes for run in due):g} minutes", flush=True)
    outcomes, began = {}, time.monotonic()
    for number, run in enumerate(due, 1):
        print(f"── {number}/{len(due)} {run.name}, about {run.minutes:g} minutes", flush=True)
        outcomes[run.name] = _measured(run, given.labelled)
        print(f"   {outcomes[run.name]}", flush=True)
    print(f"── Ended after {(time.monotonic() - began) / 60:.0f} minutes")
    failed = [name for name, outcome in outcomes.items() if outcome.startswith("FAILED")]
    if failed:
        print(f"── Failed: {', '.join(failed)}")
    return 1 if failed or left_out else 0


def check() -> int:
    """Print which results cannot be used, and which were measured beside other programs; fail for the first kind."""
    faults = [found for run in RUNS if (found := fault(run))]
    noisy = [run.name for run in RUNS if (found := load(run)) is not None and is_noisy(found)]
    if noisy:
        print(f"Measured beside other programs, and due again at the next make figures: {', '.join(noisy)}")
    print("\n".join(faults) or f"{len(RUNS)} results are of this version of their scripts")
    return 1 if faults else 0


def chosen(names: Sequence[str]) -> list[Run]:
    """Return the runs of these names, or all."""
    known = {name for run in RUNS for name in (run.name, run.script)}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(
            f"no run has the name {', '.join(unknown)}: write one of {', '.join(run.name for run in RUNS)}"
        )
    return [run for run in RUNS if not names or run.name in names or run.script in names]


def reason(run: Run) -> str:
    """Return why a run is due; an empty text for one that is not."""
    found = load(run)
    return fault(run) or ("the machine was not quiet" if found is not None and is_noisy(found) else "")


def _measured(run: Run, labelled: str) -> str:
    """Return the outcome of a run."""
    folder = [f"--{run.folder}", labelled] if run.folder else []
    command = [sys.executable, str(BENCHMARKS / f"{run.script}.py"), *run.options(), *folder, "--save"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.monotonic()
    process = subprocess.Popen(
        command + [run.variant] * bool(run.variant),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    try:
        output, _ = process.communicate(timeout=60 * run.minutes * _PATIENT_FACTOR + _PATIENT_SECONDS)
    except subprocess.TimeoutExpired:
        output = f"it has not ended within {time.monotonic() - began:.0f} s"
        process.terminate()
        process.communicate()
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate()
    seconds = time.monotonic() - began
    if process.returncode or (why := fault(run)):
        lines = output.strip().splitlines()[-20:] if process.returncode else [why]
        return f"FAILED after {seconds:.0f} s:\n" + "\n".join(f"   | {line}" for line in lines)
    found = load(run)
    assert found is not None
    others = found["machine"]["used_by_others"]
    return f"{seconds:.0f} s" + (f"; other programs used {others:.0%} of the machine" if is_noisy(found) else "")


if __name__ == "__main__":
    sys.exit(main())
