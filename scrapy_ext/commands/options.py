"""Options that several subcommands share, and the types of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.worker_bounds import bounds_of
from scrapy_ext.api.violations import ContractError

#: Adds options to a parser.
AddOptions = Callable[[argparse.ArgumentParser], object]


def argument(*names: str, **options: Any) -> AddOptions:
    """Return a function that adds one argument to a parser."""
    return lambda parser: parser.add_argument(*names, **options)


def repeated(*names: str, help: str, **options: Any) -> AddOptions:
    """Return a function that adds an option that may be repeated, whose value is a list."""
    return argument(*names, action="append", default=[], help=f"{help} (may be repeated)", **options)


# ── types of values ──


def whole_number(text: str) -> int:
    """Parse a whole number, 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)


def positive_number(text: str) -> int:
    """Parse a whole number, 1 or more."""
    number = whole_number(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def project_number(text: str) -> int:
    try:
        return number_of(text, "project")
    except ContractError as error:
        raise argparse.ArgumentTypeError(error.violations[0].rule) from None


def worker_bounds(text: str) -> str:
    """Check bounds of the number of workers of a job, such as ``4..32``."""
    try:
        bounds_of(text)
    except ContractError as error:
        raise argparse.ArgumentTypeError(error.violations[0].rule) from None
    return text


def seconds(text: str) -> float:
    """Parse a length of time in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds over 0, got {text!r}")
    return number


def pair(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


# ── options ──

SETTING: Final = repeated("-s", "--set", metavar="NAME=VALUE", help="set a Scrapy setting")
YES: Final = argument("--yes", action="store_true", help="do not ask for confirmation")
#: One job, for ``selection.selected_job``.
JOB: Final = argument(
    "job",
    nargs="?",
    default="last",
    metavar="JOB",
    help="key of the job, such as 1/2/3; or the last number of the key; or `last`, the newest job (default)",
)
#: Jobs, for ``selection.selected_jobs``.
JOBS: Final = argument(
    "jobs",
    nargs="+",
    metavar="JOB",
    help="key of a job, such as 1/2/3; or the last number of the key; or `last`, the newest job",
)


def output_options(*, csv: bool = False) -> AddOptions:
    """``--json``, and ``--csv`` for records with any fields."""

    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--json", action="store_true", help="JSON lines instead of a table (the default in a pipe)")
        if csv:
            group.add_argument("--csv", action="store_true", help="CSV with a header line")

    return add


def view_options(*, csv: bool = False) -> AddOptions:
    """``--project``, and the options of the output."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--project", type=project_number, metavar="N", help="number of the project (default: PLATFORM_PROJECT)"
        )
        output_options(csv=csv)(parser)

    return add


def paging_options(records: str, *, start: bool = True) -> AddOptions:
    """``--count`` and ``--start``."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--count",
            type=positive_number,
            metavar="N",
            help=f"show N {records} at most (default: 50 in a terminal, else all)",
        )
        if start:
            parser.add_argument(
                "--start", type=whole_number, default=0, metavar="N", help=f"skip the first N {records}"
            )

    return add


def follow_options(records: str) -> AddOptions:
    """``--follow`` and ``--tail``."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "-f", "--follow", action="store_true", help=f"also show new {records}, until the job has ended"
        )
        parser.add_argument(
            "--tail", type=whole_number, metavar="N", help=f"begin with the last N of the stored {records}"
        )

    return add
