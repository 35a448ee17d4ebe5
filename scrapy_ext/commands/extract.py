"""``scrapy extract``: URLs in, what the extraction service makes of them out.

Scrapy loads this module for every ``scrapy`` command there is, so it imports what does the work only to do it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from scrapy_ext.commands.extraction.execute import ExtractCall

EXAMPLES: Final = (
    ("scrapy extract https://example.com", "a page, as JSON"),
    ("scrapy extract https://example.com --field product", "the product on it"),
    ("scrapy extract -i urls.txt -o pages.jsonl", "many pages"),
    ("scrapy extract -i urls.txt --check", "are all lines right?"),
    ("grep shop urls.txt | scrapy extract -i - --browser", "in a browser"),
)
DESCRIPTION: Final = """\
Send URLs to the extraction service, and write its answers as JSON lines.
The settings of a project hold as in a crawl. When --output has records, lines
that are in it are not done again: the same command goes on where it stopped."""


class Command(ScrapyCommand):
    """The command as Scrapy runs it."""

    requires_crawler_process = False
    # What is told goes to standard error in single lines; a log would bury it.
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """The form of a call."""
        return "[URL ...] [options]"

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Send URLs to the extraction service"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The options of the command, above Scrapy's own."""
        parser.description = DESCRIPTION
        add_options(parser)
        super().add_options(parser)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read the options; raises :class:`UsageError`."""
        super().process_options(args, opts)
        unknown = next((each for each in args if each.startswith("-")), None)
        if unknown is not None:
            raise UsageError(f"unknown option {unknown}")
        try:
            opts.call = _call(args, opts)
        except KeyboardInterrupt:  # While modules are loaded.
            raise SystemExit(130) from None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do it."""
        from scrapy_ext.commands.extraction.execute import execute

        settings = cast("Settings", self.settings)
        if opts.call.has_log:
            from scrapy.utils.log import configure_logging

            configure_logging(settings)
        self.exitcode = execute(settings, opts.call)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(example) for example, _ in EXAMPLES)
    examples = "\n".join(f"  {example:<{width}}  {meaning}" for example, meaning in EXAMPLES)
    parser.epilog = f"examples:\n{examples}"
    lines = parser.add_argument_group("What to extract")
    lines.add_argument(
        "-i", "--input", metavar="FILE", help="lines to extract, - for standard input; a line is a URL, or a JSON "
        'object of fields: {"url": ..., "browserHtml": true}'
    )  # fmt: skip
    lines.add_argument(
        "-f", "--field", action="append", default=[], metavar="NAME", help="set a field to true (may be repeated)"
    )
    lines.add_argument("--browser", action="store_true", help="the same as --field browserHtml")
    lines.add_argument("--params", metavar="JSON", help="an object of fields for every line; those of the line win")
    lines.add_argument("--check", action="store_true", help="check every line against the rules, and send nothing")
    records = parser.add_argument_group("What to write")
    records.add_argument(
        "-o", "--output", metavar="FILE", help="write records there; if it has some, go on where they end"
    )
    records.add_argument("--retry-failed", action="store_true", help="do the lines again that failed before")
    records.add_argument("--decode", action="store_true", help="write a body that is text as text, not as Base64")
    records.add_argument("--bodies", metavar="DIR", help="write bodies to files, and their names into the records")
    records.add_argument("--screenshots", metavar="DIR", help="write screenshots to files, likewise")
    pace = parser.add_argument_group("How to go about it")
    pace.add_argument(
        "--concurrency", type=_number, metavar="N", help="requests in flight, in all and for one site (default: "
        "CONCURRENT_REQUESTS and CONCURRENT_REQUESTS_PER_DOMAIN)"
    )  # fmt: skip
    pace.add_argument("-q", "--quiet", action="store_true", help="show nothing but errors on standard error")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= 10_000 and len(text) < 9):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 10000, got {text!r}")
    return int(text)


def _call(urls: list[str], opts: argparse.Namespace) -> ExtractCall:
    from scrapy_ext.commands.extraction.execute import ExtractCall
    from scrapy_ext.commands.extraction.input_lines import Source
    from scrapy_ext.commands.extraction.records import Recorder

    if bool(urls) == bool(opts.input):
        raise UsageError("give URLs, or a file of them with --input (- is standard input)")
    if opts.decode and opts.bodies:
        raise UsageError("--decode and --bodies exclude each other: a file has the body as it is")
    output = None if opts.output == "-" else opts.output
    if opts.retry_failed and output is None:
        raise UsageError("--retry-failed needs the --output of the run before")
    path = None if opts.input == "-" else opts.input
    if path is not None and output is not None and _is_same_file(path, output):
        raise UsageError("--input and --output are the same file")
    return ExtractCall(
        Source(urls, path),
        _fields(opts),
        Recorder(opts.decode, opts.bodies, opts.screenshots),
        output=output,
        concurrency=opts.concurrency,
        retry_failed=opts.retry_failed,
        check=opts.check,
        quiet=opts.quiet,
        has_log=bool(opts.logfile or opts.loglevel),
    )


def _is_same_file(path: str, other: str) -> bool:
    import os

    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _fields(opts: argparse.Namespace) -> dict[str, Any]:
    """The fields for every line."""
    import json

    try:
        fields = json.loads(opts.params or "{}")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--params is not JSON: {error}") from None
    if not isinstance(fields, dict) or "url" in fields:
        raise UsageError('--params must be an object of fields without url, such as {"geolocation": "US"}')
    named = dict.fromkeys((*opts.field, *(("browserHtml",) if opts.browser else ())), True)
    return {**fields, **named}
