"""``python -m scrapy_ext.server``: the server by itself, without Scrapy."""

from __future__ import annotations

import argparse
import os
import sys

from scrapy_ext.server.config import ConfigError
from scrapy_ext.server.options import add_options, config_from
from scrapy_ext.server.serve import serve


def main() -> int:
    """Run the server with the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m scrapy_ext.server", description="The extraction API and the crawling platform, on one port."
    )
    add_options(parser)
    options = parser.parse_args()
    try:
        config = config_from(options, os.environ)
    except ConfigError as error:
        parser.error(str(error))
    return serve(config)


if __name__ == "__main__":
    sys.exit(main())
