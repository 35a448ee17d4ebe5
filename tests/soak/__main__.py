"""``python -m tests.soak``: run the soak, print the referee's sentence, and return 0 if nothing is wrong."""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

# The modules of the tests are imported as pytest does it.
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from tests.soak.report import MOST  # noqa: E402
from tests.soak.run import soak  # noqa: E402


def main() -> int:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="scrapy-ext-soak-"))
    command = f"make soak TIME={options.time_text} SEED={options.seed}"
    print(f"Again: {command}", file=sys.stderr, flush=True)
    try:
        verdict = asyncio.run(soak(folder, options.seed, options.time, options.report, command))
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
    parser.add_argument(
        "--time", default="30m", help="such as 90s, 30m or 4h; a number alone is minutes (default: 30m)"
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="of what is drawn at random (default: another each time)"
    )
    parser.add_argument("--report", type=Path, default=Path("soak-report"), help="folder of the report")
    options = parser.parse_args()
    options.time_text = options.time
    options.seed = random.randrange(10**6) if options.seed is None else options.seed
    try:
        options.time = seconds_of(options.time)
    except ValueError as error:
        parser.error(str(error))
    return options


def seconds_of(text: str) -> float:
    """The seconds of a time such as 30m; raises ``ValueError``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None:
        raise ValueError(f"--time {text!r} is no time: write a number and s, m or h, such as 30m.")
    return float(found[1]) * {"s": 1, "m": 60, "": 60, "h": 3600}[found[2]]


if __name__ == "__main__":
    sys.exit(main())
