"""``scrapy extract``: send URLs to the extraction service, and write its answers.

Scrapy imports this module for each ``scrapy`` command, so it imports the rest of the command only to run it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from scrapy_ext.commands.extraction.execute import ExtractCall
    from scrapy_ext.commands.extraction.explain import ExplainCall

EXAMPLES: Final = (
    ("scrapy extract https://example.com", "a page, as JSON"),
    ("scrapy extract https://example.com --field product", "the product on it"),
    ("scrapy extract --explain URL --kind product", "where its fields come from"),
    ("scrapy extract -i urls.txt -o pages.jsonl", "many pages"),
    ("scrapy extract -i urls.txt --check", "only check the lines"),
    ("scrapy extract -i urls.txt --markdown pages", "as Markdown files"),
    ("grep shop urls.txt | scrapy extract -i - --browser", "in a browser"),
)
DESCRIPTION: Final = """\
Send URLs to the extraction service, and write its answers as JSON lines.
The settings of the project apply as in a crawl. Lines that have a record in
--output are skipped, so the same command continues an interrupted run."""


class Command(ScrapyCommand):
    """The command ``extract`` of Scrapy."""

    requires_crawler_process = False
    # Messages are single lines on standard error; a log would hide them.
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """Return the form of a call, for the usage line."""
        return "[URL ...] [options]"

    def short_desc(self) -> str:
        """Return the line in Scrapy's list of commands."""
        return "Send URLs to the extraction service"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command before Scrapy's own."""
        parser.description = DESCRIPTION
        add_options(parser)
        super().add_options(parser)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read the options; raises :class:`UsageError`."""
        super().process_options(args, opts)
        unknown = next((each for each in args if each.startswith("-")), None)
        if unknown is not None:
            raise UsageError(f"unknown option {unknown}; `scrapy extract --help` lists the options")
        try:
            opts.call = _call(args, opts)
        except KeyboardInterrupt:  # During the imports.
            raise SystemExit(130) from None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from scrapy_ext.commands.extraction.execute import execute

        settings = cast("Settings", self.settings)
        if opts.call.has_log:
            from scrapy.utils.log import configure_logging

            configure_logging(settings)
        self.exitcode = execute(settings, opts.call)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command; the documentation also uses them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(example) for example, _ in EXAMPLES)
    examples = "\n".join(f"  {example:<{width}}  {meaning}" for example, meaning in EXAMPLES)
    parser.epilog = f"examples:\n{examples}"
    lines = parser.add_argument_group("input")
    lines.add_argument(
        "-i", "--input", metavar="FILE", help="file of lines, - for standard input; a line is a URL, or a JSON "
        'object of request fields: {"url": ..., "browserHtml": true}'
    )  # fmt: skip
    lines.add_argument(
        "-f",
        "--field",
        action="append",
        default=[],
        metavar="NAME",
        help="request field to set to true (may be repeated)",
    )
    lines.add_argument("--browser", action="store_true", help="same as --field browserHtml")
    lines.add_argument(
        "--params", metavar="JSON", help="object of request fields for all lines; fields of a line take precedence"
    )
    lines.add_argument(
        "--check", action="store_true", help="check all lines against the rules of the service, and send nothing"
    )
    lines.add_argument(
        "--explain", action="store_true", help="show where each field of the item of one URL comes from, and what the "
        "rules of its site change (exit code 1 if a rule found nothing); needs --kind, unless the site has rules for "
        "one kind"
    )  # fmt: skip
    lines.add_argument(
        "--kind",
        metavar="KIND",
        help="kind of item that --explain shows, such as product (default: the only one with rules)",
    )
    records = parser.add_argument_group("output")
    records.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file of records (default: standard output); lines that have a record in it are skipped",
    )
    records.add_argument(
        "--retry-failed", action="store_true", help="also send the lines whose record in --output is an error"
    )
    records.add_argument("--decode", action="store_true", help="write text bodies as text instead of Base64")
    records.add_argument("--bodies", metavar="DIR", help="write bodies to files in DIR; records contain the file names")
    records.add_argument("--screenshots", metavar="DIR", help="write screenshots to files in DIR, likewise")
    records.add_argument(
        "--markdown", metavar="DIR", help="write pages as Markdown to files in DIR, likewise; requested if no other "
        "output is, from the browser unless --params has extractFrom, else made of the HTML of the answers"
    )  # fmt: skip
    pace = parser.add_argument_group("run")
    pace.add_argument(
        "--concurrency", type=_number, metavar="N", help="maximum requests in flight, in all and per domain (default: "
        "CONCURRENT_REQUESTS and CONCURRENT_REQUESTS_PER_DOMAIN)"
    )  # fmt: skip
    pace.add_argument("-q", "--quiet", action="store_true", help="write only errors to standard error")


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
    explains = _explained(urls, opts)
    if opts.decode and opts.bodies:
        raise UsageError(
            "--decode and --bodies cannot be combined, since a file has the original body; use one of them"
        )
    output = None if opts.output == "-" else opts.output
    if opts.retry_failed and output is None:
        raise UsageError("--retry-failed needs the results of the previous run; name its file with --output")
    path = None if opts.input == "-" else opts.input
    if path is not None and output is not None and _is_same_file(path, output):
        raise UsageError("--input and --output are the same file; give another --output")
    return ExtractCall(
        Source(urls, path),
        _fields(opts),
        Recorder(opts.decode, opts.bodies, opts.screenshots, opts.markdown),
        output=output,
        concurrency=opts.concurrency,
        retry_failed=opts.retry_failed,
        check=opts.check,
        quiet=opts.quiet,
        has_log=bool(opts.logfile or opts.loglevel),
        explains=explains,
    )


def _explained(urls: list[str], opts: argparse.Namespace) -> ExplainCall | None:
    from scrapy_ext.commands.extraction.explain import ExplainCall

    if not opts.explain:
        if opts.kind is not None:
            raise UsageError(f"--kind needs --explain; to write items, use --field {opts.kind}")
        return None
    others = ("input", "output", "check", "retry_failed", "decode", "bodies", "screenshots", "markdown")
    given = next((name for name in others if getattr(opts, name)), None)
    if given is not None:
        raise UsageError(f"--explain cannot be combined with --{given.replace('_', '-')}; leave one of them out")
    if len(urls) != 1:
        raise UsageError("--explain takes one URL; give it after the options")
    return ExplainCall(urls[0], opts.kind, _fields(opts))


def _is_same_file(path: str, other: str) -> bool:
    import os

    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _fields(opts: argparse.Namespace) -> dict[str, Any]:
    import contextlib
    import json

    from scrapy_ext.api.extraction.fields import MARKDOWN, OUTPUTS
    from scrapy_ext.api.extraction.rules import repeated_fields

    try:
        fields = json.loads(opts.params or "{}")
        repeated = repeated_fields((opts.params or "{}").encode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--params is not JSON: {error}") from None
    if not isinstance(fields, dict) or "url" in fields:
        raise UsageError('--params must be an object of fields without url, such as {"geolocation": "US"}')
    if repeated:
        raise UsageError(f"--params has {repeated[0].field} more than once; give it once")
    for name, is_pair, text in (each.partition("=") for each in opts.field):
        if is_pair:
            value: object = text
            with contextlib.suppress(ValueError):
                value = json.loads(text)
            remedy = f"--field {name}" if value is True else f"--params '{json.dumps({name: value})}'"
            raise UsageError(f"--field sets a field to true, and takes only its name; use {remedy}")
    named = dict.fromkeys((*opts.field, *(("browserHtml",) if opts.browser else ())), True)
    fields |= named
    if opts.markdown and not any(fields.get(name) for name in OUTPUTS):
        fields[MARKDOWN] = True
    return fields
