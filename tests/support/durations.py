"""Lengths of time on the command line of what runs for as long as it is asked to: 90s, 30m or 4h."""

from __future__ import annotations

import argparse
import re

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """The seconds of a time such as 30m, for :mod:`argparse`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(
            f"TIME must be a number above 0 with its unit, such as 90s, 30m or 4h, got {text!r}"
        )
    return float(found[1]) * _SECONDS[found[2]]


def seed(text: str) -> int:
    """The seed of what is drawn at random, for :mod:`argparse`."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"SEED must be a whole number, 0 or more, got {text!r}")
    return int(text)
