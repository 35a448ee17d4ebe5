"""``scrapy platform worker``."""

from __future__ import annotations

from typing import Final

from scrapy_ext.commands.subcommand import Subcommand
from scrapy_ext.commands.subcommands.serve import options_of, run_as
from scrapy_ext.server.config.option import Role

SUBCOMMAND: Final = Subcommand(
    name="worker",
    examples=(
        ("scrapy platform worker --database postgresql://USER@HOST/DATABASE", "run jobs until Ctrl-C"),
        ("scrapy platform worker --units 4 --tags gpu,eu", "with SERVER_DATABASE: four at once, also those that ask"),
    ),
    add_options=options_of(Role.WORKER),
    run=run_as(Role.WORKER),
)
