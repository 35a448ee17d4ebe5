"""``python -m scrapy_ext.server``: the server by itself, without Scrapy; with the word ``worker``, a worker."""

from __future__ import annotations

import argparse
import os
import sys

from scrapy_ext.jobprocess import handover
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.config.options import add_options, config_from
from scrapy_ext.server.config.worker_options import add_worker_options, worker_config_from
from scrapy_ext.server.starting import start


def main() -> int:
    """Run the server, or a worker, with the options of the command line."""
    words = sys.argv[1:]
    worker = words[:1] == ["worker"]
    if worker:
        told = "Runs jobs of a server's database on this machine, too."
        parser = argparse.ArgumentParser(prog="python -m scrapy_ext.server worker", description=told)
        add_worker_options(parser)
    else:
        told = "The extraction API and the crawling platform, on one port. The word worker first: a worker."
        parser = argparse.ArgumentParser(prog="python -m scrapy_ext.server", description=told)
        add_options(parser)
    options = parser.parse_args(words[1:] if worker else words)
    try:
        config = (worker_config_from if worker else config_from)(options, handover.with_variables(os.environ))
    except ConfigError as error:
        parser.error(str(error))
    return start(config)


if __name__ == "__main__":
    sys.exit(main())
