"""``scrapy extract --explain URL``: where each field of an item comes from, and what the rules of its site change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.cells import cell_len
from scrapy.settings import BaseSettings

from scrapy_ext.api.extraction import EXTRACT_TYPES, OUTPUTS
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES, RULE_FIELDS, ExtractRule
from scrapy_ext.api.extraction.fields import MIN_PROBABILITY, source_of
from scrapy_ext.api.masking import without_user
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction.budget import OverBudgetError
from scrapy_ext.client.extraction.errors import ExtractError
from scrapy_ext.commands.extraction.input_lines import CallError, InputLine, LineParser, LineRequest, sent_url
from scrapy_ext.commands.extraction.progress import say
from scrapy_ext.commands.extraction.run import ExtractService
from scrapy_ext.commands.subcommand import FAILED, OK
from scrapy_ext.commands.text import columns_of_terminal, printable, shortened
from scrapy_ext.crawl.extraction.from_settings import faults_of, params_of
from scrapy_ext.crawl.extraction.rule_files import (
    TEXT_TYPES,
    Example,
    RuleFile,
    SiteRules,
    UsedRules,
    is_same_page,
    values_of,
)
from scrapy_ext.crawl.extraction.site_rules import faults_of as faults_of_report
from scrapy_ext.crawl.session.embedded import EmbeddedServerError
from scrapy_ext.crawl.session.services import Configured

_SOURCES: Final = "fieldSources"
#: Field of items that is not of the page.
_METADATA: Final = "metadata"
#: Widest cells of a table, by column; the last column has what is left.
_WIDEST: Final = 40
_GAP: Final = "  "
_LEAST: Final = 20


class ExplainCall(msgspec.Struct, frozen=True):
    """The parsed command line; ``kind`` None: the only kind that the site has rules for."""

    url: str
    kind: str | None
    fields: Mapping[str, Any]


def explain(settings: BaseSettings, call: ExplainCall) -> int:
    """Print the explanation of a page, and return the exit code: 1 for a rule that found nothing.

    Raises :class:`CallError` and :class:`~scrapy_ext.settings.SettingError`.
    """
    Configured.read(settings)
    rules = SiteRules.of(settings)
    file = rules.file_for(sent_url(call.url))
    kind = _kind_of(call, file)
    faults = faults_of(call.fields, settings)
    if faults:
        raise CallError(f"--field or --params: {ContractError(faults)}")
    # A doubtful item is explained as well.
    given = {name: value for name, value in call.fields.items() if name not in (*EXTRACT_TYPES, MIN_PROBABILITY)}
    given[kind] = True
    params = {name: value for name, value in params_of(settings).items() if name not in (*OUTPUTS, MIN_PROBABILITY)}
    request = LineParser(params, given, rules).parse(InputLine(1, call.url.encode("utf-8", "surrogateescape")))
    service = ExtractService(settings, None)
    # The table has the faults.
    service.rules.logs_faults = False
    try:
        result = asyncio.run(_answered(service, request))
    except (ExtractError, ContractError, OverBudgetError, EmbeddedServerError) as error:
        say(str(error))
        return FAILED
    return _Explanation(call.url, kind, file, request.rules, result).write()


def _kind_of(call: ExplainCall, file: RuleFile | None) -> str:
    if call.kind is not None:
        if call.kind not in EXTRACT_TYPES or call.kind == "serp":
            known = ", ".join(kind for kind in EXTRACT_TYPES if kind != "serp")
            raise CallError(f"--kind {call.kind} is no kind of item; use one of {known}")
        return call.kind
    requested = [kind for kind in EXTRACT_TYPES if call.fields.get(kind)]
    kinds = requested or list(file.kinds if file is not None else ())
    if len(kinds) != 1:
        if requested:
            reason = f"the request has several ({', '.join(requested)})"
        elif file is None:
            reason = "no file of rules for this site names one"
        else:
            reason = f"{file.path} has rules for {', '.join(kinds) or 'none'}"
        raise CallError(f"--explain needs the kind of item, and {reason}; add --kind product, for example")
    return kinds[0]


async def _answered(service: ExtractService, request: LineRequest) -> dict[str, Any]:
    if request.faults:
        raise ContractError(request.faults)
    async with service.opened(lambda error: say(str(error))):
        accepted = await service.accepted()
        fields = dict(request.fields)
        if _SOURCES in accepted:
            fields[_SOURCES] = True
        if request.rules is not None and EXTRACT_RULES not in accepted:
            # The rules are applied here, to the page of the answer.
            by_http = source_of(fields) == "httpResponseBody"
            fields["httpResponseBody" if by_http else "browserHtml"] = True
        return await service.extract(fields, request.domain, request.rules)


class _Explanation:
    """The tables about one answer."""

    def __init__(
        self, url: str, kind: str, file: RuleFile | None, used: UsedRules | None, result: Mapping[str, Any]
    ) -> None:
        self._url = url
        self._kind = kind
        self._file = file
        self._used = used
        self._item: Mapping[str, Any] = result.get(kind) or {}
        sources = result.get(_SOURCES)
        self._sources: Mapping[str, Any] = sources if isinstance(sources, Mapping) else {}
        report = result.get(EXTRACT_RULES)
        self._report: Mapping[str, Mapping[str, Any]] = report if isinstance(report, Mapping) else {}
        self._faults = dict(faults_of_report(self._report))
        self._is_applied = report is not None

    def write(self) -> int:
        """Write the tables to standard output; return the exit code."""
        metadata = self._item.get(_METADATA)
        sure = metadata.get("probability") if isinstance(metadata, Mapping) else None
        shown = f", with a probability of {sure}" if sure is not None else ""
        lines = [f"{self._kind} of {without_user(self._url)}{shown}", ""]
        lines += _table(("field", "value", "rule", "element"), list(self._rows()))
        wrong = False
        if self._used is not None and not self._is_applied:
            lines += ["", f"The rules of {self._used.file} were not applied: the answer has no HTML"]
            wrong = True
        elif self._used is not None:
            lines += ["", self._used.file, "", *_table(("field", "rule", "effect"), list(self._effects()))]
        learned = list(self._learned())
        if learned:
            lines += [
                "",
                f"Write into {self._file.path if self._file else 'the file'}, below [{self._kind}]:",
                *learned,
            ]
        broken = list(self._broken_examples())
        lines += ["", *broken] if broken else []
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
        sys.stdout.flush()
        return FAILED if wrong or broken or self._faults else OK

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for field, value in self._item.items():
            if field == _METADATA:
                continue
            source = self._sources.get(field)
            rule, xpath, others = _read_source(source)
            entry = self._report.get(field)
            if entry is not None and "fault" not in entry and self._used is not None:
                rule, xpath = f"{self._used.file}: {entry.get('rule', '')}", str(entry.get("xpath") or xpath)
            yield field, value_text(value), rule, xpath
            for other in others:
                yield (
                    "",
                    f"or {value_text(other.get('value'))}",
                    str(other.get("rule") or ""),
                    str(other.get("xpath") or ""),
                )

    def _effects(self) -> Iterator[tuple[str, str, str]]:
        for field, entry in self._report.items():
            rule, fault = str(entry.get("rule", "")), self._faults.get(field)
            if fault is not None:
                yield field, rule, f"{fault}; the automatic value stays: {_text_or_none(self._item.get(field))}"
                continue
            before, after = entry.get("automatic"), self._item.get(field)
            if before == after:
                yield field, rule, f"as before: {_text_or_none(after)}"
            else:
                yield field, rule, f"{_text_or_none(before)} → {_text_or_none(after)}"
        for field, example in self._other_examples():
            yield field, f"example {example.value}", f"of another page: scrapy extract --explain {example.url}"

    def _other_examples(self) -> Iterator[tuple[str, Example]]:
        """Yield the examples without a selector that are of other pages."""
        if self._file is not None:
            rules = self._file.kinds.get(self._kind, {})
            for field, example in self._file.examples.get(self._kind, {}).items():
                if field not in self._report and "example" in rules.get(field, {}):
                    yield field, example

    def _learned(self) -> Iterator[str]:
        """Yield the lines of the file for the selectors that were found for examples."""
        for field, entry in self._report.items():
            selector = entry.get("selector")
            if isinstance(selector, Mapping):
                rule = ExtractRule(**selector)
                found = [(name, value) for name in ("css", "xpath", "attribute") if (value := getattr(rule, name))]
                parts = ", ".join(f"{name} = {msgspec.json.encode(value).decode()}" for name, value in found)
                yield f"{field} = {{ {parts} }}"

    def _broken_examples(self) -> Iterator[str]:
        """Yield a line for each example of this page that its selector does not find."""
        examples = self._file.examples.get(self._kind, {}) if self._file is not None else {}
        for field, example in examples.items():
            is_of_page = is_same_page(example.url, self._url) and field in self._report and field not in self._faults
            if is_of_page and not self._has_example(field, example):
                found = value_text(self._item.get(field))
                yield without_user(f"{field}: the example is {example.value}, and the rule found {found}")

    def _has_example(self, field: str, example: Example) -> bool:
        """Return true if the value of a field is the example, as the page or as the schema has it."""
        found, wanted = self._item.get(field), " ".join(example.value.split())
        # A date is beside the text that it was read from.
        if wanted in (" ".join(text.split()) for text in _texts([found, self._item.get(f"{field}Raw")])):
            return True
        if RULE_FIELDS[self._kind].get(field) in TEXT_TYPES:
            return False
        try:
            value = values_of(self._kind, {field: example.value}, example.url)[0].get(field)
        except ImportError:  # Without the extra server, the value cannot be compared.
            return True
        if isinstance(value, list) and isinstance(found, list):
            return all(each in found for each in value)
        return value is not None and value == found


def _read_source(source: object) -> tuple[str, str, Sequence[Mapping[str, Any]]]:
    """Return the rule, the XPath and the other candidates of a field of ``fieldSources``."""
    if isinstance(source, Mapping):
        others = source.get("others")
        found = [each for each in others if isinstance(each, Mapping)] if isinstance(others, list) else []
        return str(source.get("rule") or ""), str(source.get("xpath") or ""), found
    return "", "", ()


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, and numbers as text."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif value is not None:
        yield f"{value:g}" if isinstance(value, float) else str(value)


def value_text(value: object) -> str:
    """Return a value of an item in a few words."""
    if isinstance(value, list):
        first = value_text(value[0]) if value else ""
        return f"{first} and {len(value) - 1} more" if len(value) > 1 else first
    if isinstance(value, Mapping):
        named = next((value[name] for name in ("name", "value", "url", "raw", "text") if value.get(name)), None)
        return value_text(named) if named is not None else msgspec.json.encode(value).decode()
    return next(_texts(value), "")


def _table(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table, without users of URLs. In a pipe nothing is cut."""
    is_terminal = sys.stdout.isatty()
    cells = [[printable(without_user(cell)) for cell in row] for row in (names, *rows)]
    if is_terminal:
        cells = [[*(shortened(cell, _WIDEST) for cell in row[:-1]), row[-1]] for row in cells]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(names))]
    if is_terminal:
        left = columns_of_terminal() - sum(widths[:-1]) - len(_GAP) * (len(names) - 1)
        cells = [[*row[:-1], shortened(row[-1], max(left, _LEAST))] for row in cells]
    return [
        _GAP.join(f"{cell}{' ' * (width - cell_len(cell))}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _text_or_none(value: object) -> str:
    return "none" if value is None else value_text(value)
