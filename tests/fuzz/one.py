"""One target, fuzzed in this process; libFuzzer ends the process. ``python -m tests.fuzz`` starts it."""

from __future__ import annotations

import logging
import sys
import warnings

import atheris

#: Packages in which coverage is measured: ours, and those in Python that read pages for us.
MEASURED = ["scrapy_ext", "stdnum", "html_text", "w3lib"]


def main() -> None:
    """``NAME OPTION...``, the options being libFuzzer's."""
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=MEASURED, enable_loader_override=False):
        from tests.fuzz.target import all_targets

        found = all_targets()[name]
    logging.disable()
    warnings.simplefilter("ignore")
    atheris.Setup([sys.argv[0], *options], found.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
