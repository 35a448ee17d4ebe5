"""``scrapy platform completion``."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.shells.fish import fish
from scrapy_ext.commands.shells.posix import bash, zsh
from scrapy_ext.commands.shells.tree import Place, places
from scrapy_ext.commands.subcommand import OK, Subcommand

_SHELLS: Final = {"bash": bash, "zsh": zsh, "fish": fish}


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help="the shell to print it for")


def _run(_settings: BaseSettings, options: argparse.Namespace) -> int:
    from scrapy_ext.commands.platform import SUBCOMMANDS

    found: list[Place] = []
    for name, summary in SUBCOMMANDS.items():
        subcommand: Subcommand = importlib.import_module(f"scrapy_ext.commands.subcommands.{name}").SUBCOMMAND
        found += places(subcommand, summary)
    sys.stdout.write(_SHELLS[options.shell](found, sys.executable))
    return OK


SUBCOMMAND: Final = Subcommand(
    name="completion",
    examples=(
        ('eval "$(scrapy platform completion bash)"', "in this shell; with zsh likewise"),
        ("scrapy platform completion fish | source", "in fish"),
    ),
    add_options=_add_options,
    run=_run,
)
