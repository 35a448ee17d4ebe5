"""The server that all tests of a run share. It may fetch any port of this machine: mock servers get free ones.

Its first argument is the descriptor of its keys, which are JSON.
"""

from __future__ import annotations

import argparse
import json
import sys

from scrapy_ext.jobprocess import handover
from scrapy_ext.server.config.command_line import add_options, config_from
from scrapy_ext.server.config.option import Role
from scrapy_ext.server.net import guard


class _Localhost(frozenset[tuple[str, int]]):
    """Every port of ``localhost``."""

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and pair[0] == "localhost"


class _Guard(guard.Guard):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self._allowed = _Localhost()


if __name__ == "__main__":
    guard.Guard = _Guard  # type: ignore[misc]
    # Only now, for the modules of the server take the class by its name.
    from scrapy_ext.server.serve import serve

    keys = json.loads(handover.take(int(sys.argv.pop(1))))
    parser = argparse.ArgumentParser()
    add_options(parser)
    sys.exit(serve(config_from(parser.parse_args(), keys, role=Role.SERVER)))
