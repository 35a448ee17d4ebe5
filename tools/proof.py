"""Run of all that is promised about one commit: ``make proof``, and the page that shows what ran.

Each step is a make target. A step that has passed on this tree is not run again, one that fails does not end the run,
and one that never ran is shown as such. Results are in ``docs/architecture/proof.json``, to be committed, so that
another machine goes on where one has stopped; the table is written into ``proof.rst`` beside it at the end. Logs are in
``.proof``, which git ignores. ``ONLY=wheel,docs`` chooses steps, ``SCALE=0.01`` shortens those with a duration,
``AGAIN=1`` also runs what has passed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = "docs/architecture/proof.rst"
RESULTS: Final = "docs/architecture/proof.json"
_STATE: Final = ROOT / ".proof"
#: Seconds between two lines of progress, and between the end of a step's time and the kill of its processes.
_PROGRESS: Final = 60.0
_GRACE: Final = 30.0
_HOUR: Final = 3600.0


class Step(NamedTuple):
    """A make target with its variables. ``seconds``: value of its variable ``TIME``."""

    name: str
    target: str
    variables: Mapping[str, str] = {}
    seconds: float = 0.0
    #: Another process uses one core meanwhile.
    beside_load: bool = False
    #: Expression for the counts of a step without pytest: the text in its group, of all matches.
    counts: str = ""

    def words(self, scale: float) -> tuple[str, ...]:
        """Return the command."""
        timed = {"TIME": f"{max(round(self.seconds * scale), 1)}s"} if self.seconds else {}
        return "make", self.target, *(f"{name}={value}" for name, value in {**self.variables, **timed}.items())

    def shown(self, scale: float) -> str:
        """Return the command as the table has it, by which two runs are compared."""
        return " ".join((*self.words(scale), *(["(beside a busy process)"] if self.beside_load else [])))

    def limit(self, scale: float) -> float:
        """Return the seconds after which it is taken for hanging."""
        return 6 * _HOUR + 2 * self.seconds * scale


#: Wirings of Scrapy's own tests; the plain run that they are compared with runs once.
_WIRINGS: Final = (
    ("frontier", "frontier"),
    ("extraction", "extraction --again"),
    ("everything", "everything --again"),
)
_SCRAPY_COUNTS: Final = r"(?m)^   (\d+ .*) in [\d.]+ minutes"
STEPS: Final = (
    Step("check", "check"),
    Step("audit", "audit", counts=r"(?m)^((?:Licences|Weaknesses): [^.]*)\."),
    Step("docs", "docs"),
    Step("figures-check", "figures-check", counts=r"(?m)^(\d+ results)"),
    Step("wheel", "wheel"),
    Step("release-check", "release-check", counts=r"(?m)^── (Python 3[^:]*(?:; not here: .*)?)$"),
    Step("test", "test"),
    Step("test-random", "test", {"ORDER": "1"}),
    Step("test-loaded", "test", beside_load=True),
    Step("test-long", "test-long"),
    *(Step(f"test-full-{lane}", "test-whole", {"LANE": lane}) for lane in ("unit", "integration", "acceptance")),
    Step("crash", "crash"),
    *(Step(f"test-scrapy-{name}", "test-scrapy", {"SCRAPY": words}, counts=_SCRAPY_COUNTS) for name, words in _WIRINGS),
    Step("test-matrix", "test-matrix"),
    Step("test-image", "test-image"),
    Step("fuzz", "fuzz", seconds=_HOUR, counts=r"(?m)^── (\d+ inputs, .*)$"),
    *(
        Step(f"soak-{engine}", "soak", {"ENGINE": engine}, 2 * _HOUR, counts=r"(?m)^(.*acknowledged record.*)\.$")
        for engine in ("sqlite", "postgresql")
    ),
)


class Result(NamedTuple):
    """The last run of a step. ``tree``: digest of the files that it ran on; ``date``: its end (UTC)."""

    command: str
    commit: str
    tree: str
    passed: bool
    counts: str
    seconds: float
    date: str
    machine: str


class ProofError(Exception):
    """A run that cannot begin; the message has the remedy."""


# ── results ──


class Results:
    """The last result of each step, in a file that is replaced as a whole; runs of different steps may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _all(self) -> dict[str, Result]:
        stored: dict[str, list[Any]] = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}
        return {name: Result(*values) for name, values in stored.items()}

    def get(self, step: Step) -> Result | None:
        return self._all().get(step.name)

    def has_passed(self, step: Step, tree: str, scale: float) -> bool:
        """Return true if this command has passed on this tree."""
        result = self.get(step)
        return result is not None and result.passed and result.tree == tree and result.command == step.shown(scale)

    def keep(self, step: Step, result: Result) -> None:
        part = self._path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps({**self._all(), step.name: result}, indent=1) + "\n", "utf-8")
        part.replace(self._path)


def counts_of(step: Step, output: str) -> str:
    """Return what a step counted: tests by their outcome, over all runs of pytest, or what its expression finds."""
    if step.counts:
        return "; ".join(re.findall(step.counts, output))
    counts: Counter[str] = Counter()
    for line in re.findall(r"(?m)^(?:=+ )?(\d+ \w+.*) in [\d.]+s\b", output):
        for number, outcome in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|rerun)\b", line):
            counts[outcome.removesuffix("s") if outcome.startswith("error") else outcome] += int(number)
    return ", ".join(f"{number} {outcome}" for outcome, number in counts.items())


# ── the page ──

_HEAD: Final = """\
=====
Proof
=====

.. Written by ``make proof``.

The steps of ``make proof``: all that is promised, run on one commit. A result is of the commit in its row; "of an older
commit" means that other files have changed since. :doc:`figures` has what was measured.
"""


def page(results: Results, commit: str, tree: str) -> str:
    """Return the page with the table of all steps."""
    rows = [("Command", "Result", "Counts", "Time", "Commit", "Date", "Machine")]
    rows += [_row(step, results.get(step), tree) for step in STEPS]
    lines = [_HEAD, f"This table was written for commit {commit}.", "", ".. list-table::", "   :header-rows: 1"]
    lines += ["   :class: reference-table", ""]
    for row in rows:
        lines += [f"   {'*' if place == 0 else ' '} - {cell}".rstrip() for place, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def _row(step: Step, result: Result | None, tree: str) -> tuple[str, ...]:
    if result is None:
        return f"``{step.shown(1)}``", "not run", "", "", "", "", ""
    outcome = "passed" if result.passed else "**failed**"
    if result.tree != tree:
        outcome += ", of an older commit"
    counts = f"``{result.counts}``" if result.counts else ""
    return (
        *(f"``{result.command}``", outcome, counts, duration(result.seconds)),
        *(result.commit, result.date, result.machine),
    )


def duration(seconds: float) -> str:
    """Return a time for readers."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


# ── the tree ──


def _git(*words: str) -> str:
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def digest_of(listing: str) -> str:
    """Return a digest of what ``git ls-tree -r`` lists, without what a run writes."""
    lines = [line for line in listing.splitlines() if line.partition("\t")[2] not in (PAGE, RESULTS)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _tree() -> str:
    """Return the digest of the committed files."""
    return digest_of(_git("ls-tree", "-r", "HEAD"))


def _changed() -> list[str]:
    """Return the lines of ``git status`` about other files than those that a run writes."""
    return [line for line in _git("status", "--porcelain").splitlines() if line[3:] not in (PAGE, RESULTS)]


def check_is_committed() -> None:
    """Raise :class:`ProofError` if files are not as committed."""
    if changed := _changed():
        others = f" ({len(changed)} files in all)" if len(changed) > 1 else ""
        raise ProofError(f"{changed[0][3:]} is not as committed{others}. A proof is of a commit: commit or remove it.")


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {system}, Python {platform.python_version()}"


# ── running ──


@contextlib.contextmanager
def _load(wanted: bool) -> Iterator[None]:
    """Use one core meanwhile."""
    if not wanted:
        yield
        return
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def _environment() -> dict[str, str]:
    """Return the environment without the variables of the make that runs this."""
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a step and the processes that it started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            return


def run(words: Sequence[str], log: Path, limit: float) -> bool:
    """Run a command with its output in a file; return whether it ended with 0 within its time (seconds)."""
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            while True:
                left = limit - (time.monotonic() - began)
                try:
                    return process.wait(max(min(_PROGRESS, left), 0)) == 0
                except subprocess.TimeoutExpired:
                    if left <= _PROGRESS:
                        output.write(f"\nnot ended within {duration(limit)}\n".encode())
                        return False
                print(f"   {duration(time.monotonic() - began)}: {_last_line(log)[:110]}", flush=True)
        finally:
            if process.returncode is None:
                _end(process)


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def prove(step: Step, scale: float, tree: str) -> Result:
    """Run a step; raise :class:`ProofError` if the committed files changed meanwhile."""
    log = _STATE / f"{step.name}.log"
    before, began = _changed(), time.monotonic()
    with _load(step.beside_load):
        passed = run(step.words(scale), log, step.limit(scale))
    seconds = time.monotonic() - began
    left = [line for line in _changed() if line not in before]
    if _tree() != tree or not all(line.startswith("??") for line in left):
        raise ProofError(
            f"Committed files changed while {step.name} ran, so that its result is of no commit: run again."
        )
    counts = counts_of(step, log.read_text("utf-8", errors="replace"))
    if left:
        passed, counts = False, f"left {left[0][3:]}; {counts}".rstrip("; ")
    commit = _git("rev-parse", "--short=10", "HEAD").strip()
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M")
    return Result(step.shown(scale), commit, tree, passed, counts, seconds, date, _machine())


def _chosen(only: str) -> list[Step]:
    names = [name for name in only.replace(" ", "").split(",") if name]
    known = {step.name: step for step in STEPS}
    if unknown := [name for name in names if name not in known]:
        raise ProofError(f"{unknown[0]!r} is no step. The steps are {', '.join(known)}.")
    return [step for step in STEPS if not names or step.name in names]


def _write_page(results: Results, tree: str) -> None:
    text = page(results, _git("rev-parse", "--short=10", "HEAD").strip(), tree)
    (ROOT / PAGE).write_text(text, "utf-8")


def _prove_each(chosen: Sequence[Step], results: Results, options: argparse.Namespace, tree: str) -> list[str]:
    """Run the steps that are due; return the names of those that failed."""
    failed = []
    for number, step in enumerate(chosen, 1):
        head = f"── {number}/{len(chosen)} {step.name}"
        if not options.again and results.has_passed(step, tree, options.scale):
            print(f"{head}: has passed on this commit", flush=True)
            continue
        print(f"{head}: {step.shown(options.scale)}; log: .proof/{step.name}.log", flush=True)
        result = prove(step, options.scale, tree)
        results.keep(step, result)
        outcome = "passed" if result.passed else "FAILED"
        print(f"   {outcome} in {duration(result.seconds)}  {result.counts}", flush=True)
        failed += [] if result.passed else [step.name]
    return failed


def main() -> int:
    """Run the steps that are due; return 1 when one has failed."""
    parser = argparse.ArgumentParser(prog="make proof", description=__doc__)
    parser.add_argument("--only", default="", metavar="STEP,STEP", help="those alone")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the durations of fuzz and soak")
    parser.add_argument("--again", action="store_true", help="also those that have passed on this commit")
    parser.add_argument("--table", action="store_true", help="write the page, and run nothing")
    options = parser.parse_args()
    results = Results(ROOT / RESULTS)
    check_is_committed()
    tree, chosen = _tree(), _chosen(options.only)
    _STATE.mkdir(exist_ok=True)
    try:
        failed = [] if options.table else _prove_each(chosen, results, options, tree)
    finally:  # also of a run that is interrupted; not before, so that each step finds the files as committed
        _write_page(results, tree)
    print(f"── {PAGE}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ProofError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
