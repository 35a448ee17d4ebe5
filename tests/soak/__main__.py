"""``python -m tests.soak``: run the soak, print the referee's sentence, and return 0 if nothing is wrong."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path

# The modules of the tests are imported as pytest does it.
sys.path[:0] = [str(Path(__file__).parents[2])]

from tests.soak.report import MOST  # noqa: E402
from tests.soak.run import soak  # noqa: E402
from tests.soak.system import ENGINES  # noqa: E402
from tests.support.durations import seconds, seed  # noqa: E402


def main() -> int:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="scrapy-ext-soak-"))
    command = f"make soak ENGINE={options.engine} TIME={options.time} SEED={options.seed}"
    print(f"Again: {command}", file=sys.stderr, flush=True)
    try:
        time = seconds(options.time)
        verdict = asyncio.run(soak(folder, options.engine, options.seed, time, options.report, command))
    except asyncio.CancelledError:
        print("Interrupted before the verdict. Everything has ended.", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for fault in verdict.faults[:MOST]:
        print(f"  {fault}")
    print(verdict.sentence)
    print(f"The report: {options.report / 'report.md'}")
    return 1 if verdict.faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--time", type=_checked, default="30m", help="such as 90s, 30m or 4h (default: 30m)")
    parser.add_argument(
        "--seed", type=seed, default=None, help="of what is drawn at random (default: another each time)"
    )
    parser.add_argument("--engine", choices=ENGINES, default="postgresql", help="of the database (default: postgresql)")
    parser.add_argument("--report", type=Path, default=Path("soak-report"), help="folder of the report")
    options = parser.parse_args()
    options.seed = random.randrange(10**6) if options.seed is None else options.seed
    return options


def _checked(text: str) -> str:
    """A time as it was written, for the command that repeats the run."""
    seconds(text)
    return text


if __name__ == "__main__":
    sys.exit(main())
