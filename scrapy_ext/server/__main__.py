"""``python -m scrapy_ext.server``: the server without Scrapy, or, with ``worker`` as the first argument, a worker."""

from __future__ import annotations

import os
import sys

from scrapy_ext.server.config.command_line import SuggestingParser, add_options, config_from
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.config.option import Role
from scrapy_ext.server.launch import start

_DESCRIPTIONS = {
    Role.SERVER: "The extraction API and the crawling platform, on one port; with worker as first argument, a worker.",
    Role.WORKER: "Run jobs of a server's database on this machine.",
}


def main() -> int:
    """Run the server, or a worker, with the options of the command line."""
    words = sys.argv[1:]
    role = Role.WORKER if words[:1] == ["worker"] else Role.SERVER
    prog = "python -m scrapy_ext.server"
    if role is Role.WORKER:
        prog = f"{prog} {words.pop(0)}"
    parser = SuggestingParser(prog=prog, description=_DESCRIPTIONS[role])
    add_options(parser, role)
    options = parser.parse_args(words)
    try:
        config = config_from(options, os.environ, role=role)
    except ConfigError as error:
        parser.error(str(error))
    return start(config)


if __name__ == "__main__":
    sys.exit(main())
