"""``--where`` and ``--search`` of commands, in the language of pages, reads and agents (``api.platform.where``)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from scrapy_ext.api.platform.conditions import EVERYWHERE, RecordFilter, condition_of, filter_of
from scrapy_ext.api.platform.where import parse_where
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.options import AddOptions, argument


def condition_options(noun: str, example: str) -> tuple[AddOptions, AddOptions]:
    return (
        argument(
            "--where",
            action="append",
            type=_typed,
            metavar="CONDITIONS",
            help=f"only {noun} that meet conditions such as '{example}'; may be repeated",
        ),
        argument("--search", metavar="TEXT", help=f"only {noun} with this text in any field, whatever its case"),
    )


def _typed(text: str) -> list[list[Any]]:
    try:
        return [clause.form for clause in parse_where(text)]
    except ContractError as error:
        raise argparse.ArgumentTypeError(". ".join((error.violations[0].rule, error.violations[0].remedy))) from None


def conditions_of(options: argparse.Namespace) -> list[list[Any]]:
    """Return the conditions of ``--where`` and ``--search``."""
    typed = [condition for conditions in options.where or () for condition in conditions]
    return typed + ([[EVERYWHERE, "hastext", [options.search]]] if options.search else [])


def filter_by(conditions: Sequence[Sequence[Any]]) -> RecordFilter | None:
    return filter_of([condition_of(list(condition), "--where") for condition in conditions])
