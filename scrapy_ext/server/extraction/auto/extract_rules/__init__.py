"""Rules for the fields of an item (``extractRules``), applied to its page.

The server applies them to the page that it extracted, and the client of another service to the HTML of an answer, by
the same function. Everything is bounded: the work of selectors (:mod:`.evaluating`), the text that patterns search, the
values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from lxml.html import HtmlElement

from scrapy_ext.api.extraction.extract_rules import (
    BESIDE,
    EXTRACT_RULES,
    LISTS,
    MAX_SEARCHED,
    RULE_FIELDS,
    ExtractRule,
    ValueType,
    steps_of,
)
from scrapy_ext.api.extraction.records import FieldSource, SourceCandidate
from scrapy_ext.api.extraction.xpath import of_css, of_xpath
from scrapy_ext.server.extraction.auto.extract_rules.evaluating import (
    MAX_WORK,
    Evaluator,
    Selected,
    TooMuchWorkError,
)
from scrapy_ext.server.extraction.auto.extract_rules.learning import learned
from scrapy_ext.server.extraction.auto.extract_rules.values import (
    MAX_PARTS,
    NoValueError,
    Origin,
    Piece,
    converted,
    text_of,
)
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.sources import MAX_OTHERS, plain_value

__all__ = ["Applied", "apply_rules", "as_sources", "correct_item"]

_NOTHING: Final = "found nothing"
#: Steps of patterns that take as long as one visit of the evaluator, and the longest search, which nothing interrupts:
#: 0.1 s.
_STEPS_PER_VISIT: Final = 100
_LONGEST_SEARCH: Final = MAX_WORK // 20
_OF_ADDRESSES: Final = frozenset({
    ValueType.IMAGE, ValueType.IMAGES, ValueType.URL, ValueType.LINK, ValueType.LINKS, ValueType.MEDIA,
})  # fmt: skip


class RuleOutcome(NamedTuple):
    """Outcome of the rule of a field: its value and the element that has it, or why the automatic value stands."""

    rule: str
    value: Any = None
    xpath: str | None = None
    #: Values of fields beside it, None for one to remove.
    beside: Mapping[str, str | None] = {}
    #: Currency that the value was written with, of a field whose currency is that of the item.
    currency: str | None = None
    #: Rule that was found for an example.
    selector: Mapping[str, str] | None = None
    fault: str | None = None


class Applied(NamedTuple):
    """An item after the rules, and the report of the rules by field: ``rule`` and, where there are, ``xpath``,
    ``selector``, ``automatic`` (the value that was replaced) and ``fault``."""

    item: dict[str, Any]
    report: dict[str, dict[str, Any]]


def correct_item(kind: str, html: str, url: str, item: Mapping[str, Any], rules: Mapping[str, Any]) -> Applied:
    """Return an item after the rules of its kind, for the HTML of its page: see :func:`apply_rules`."""
    return apply_rules(Page(html, url), kind, item, rules)


def apply_rules(page: Page | None, kind: str, item: Mapping[str, Any], rules: Mapping[str, Any]) -> Applied:
    """Return an item after the rules of its kind, which are valid. ``page`` is None for a file that is no page.

    The item is not changed. A rule with a fault leaves its field as it is.
    """
    outcomes = _outcomes(page, kind, rules)
    currency = _changed(item, outcomes).get("currency")
    for field, outcome in outcomes.items():
        if outcome.currency is not None and currency not in (None, outcome.currency):
            fault = f"found a price in {outcome.currency}, and the currency of the item is {currency}"
            outcomes[field] = RuleOutcome(outcome.rule, selector=outcome.selector, fault=fault)
    report = {}
    for field, outcome in outcomes.items():
        entry: dict[str, Any] = {"rule": outcome.rule}
        for name in ("xpath", "selector", "fault"):
            if (value := getattr(outcome, name)) is not None:
                entry[name] = value
        if field in item and outcome.fault is None:
            entry["automatic"] = item[field]
        report[field] = entry
    return Applied(_changed(item, outcomes), report)


def _changed(item: Mapping[str, Any], outcomes: Mapping[str, RuleOutcome]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    right = {field: outcome for field, outcome in outcomes.items() if outcome.fault is None}
    for field in _widest_first(right):
        outcome = right[field]
        values |= dict.fromkeys(BESIDE.get(field, ())) if outcome.value is None else outcome.beside
    values |= {field: outcome.value for field, outcome in right.items()}
    changed = {**item, **values}
    return {name: value for name, value in changed.items() if name not in values or value is not None}


def _widest_first(fields: Iterable[str]) -> list[str]:
    """Return fields in the order in which what is set beside them counts: a currency after the price it came with."""
    return sorted(fields, key=lambda field: -len(BESIDE.get(field, ())))


def as_sources(sources: dict[str, FieldSource], automatic: Mapping[str, Any], applied: Applied) -> None:
    """Make the rules the sources of the fields that they set, in place, and remove the sources of removed fields.

    The automatic value is the first of the other values of such a field.
    """
    right = {field: entry for field, entry in applied.report.items() if "fault" not in entry}
    rule_of = {name: field for field in _widest_first(right) for name in BESIDE.get(field, ())}
    setters = {name: field for name, field in rule_of.items() if automatic.get(name) != applied.item.get(name)}
    for name, field in (setters | {field: field for field in right}).items():
        former, others = sources.get(name), list[SourceCandidate]()
        if former is not None and automatic.get(name) != applied.item.get(name):
            own = SourceCandidate(plain_value(automatic[name]), former.rule, former.xpath, former.text, former.box)
            others = [own, *former.others][:MAX_OTHERS]
        entry = right[field]
        sources[name] = FieldSource(f"{EXTRACT_RULES} {entry['rule']}", entry.get("xpath"), others=others)
    for field in [name for name in sources if name not in applied.item]:
        del sources[field]


def _outcomes(page: Page | None, kind: str, rules: Mapping[str, Any]) -> dict[str, RuleOutcome]:
    evaluator = Evaluator(page) if page is not None else None
    found = {}
    for field, members in rules.items():
        rule = ExtractRule(**members)
        if page is None or evaluator is None:
            found[field] = RuleOutcome(str(rule), fault="is for pages, and this is a PDF")
            continue
        try:
            found[field] = _outcome(page, evaluator, field, RULE_FIELDS[kind][field], rule)
        except NoValueError as error:
            found[field] = RuleOutcome(str(rule), fault=str(error))
        except TooMuchWorkError:
            found[field] = RuleOutcome(str(rule), fault="takes too long on this page; write a simpler rule")
    return found


def _outcome(page: Page, evaluator: Evaluator, field: str, kind: ValueType, rule: ExtractRule) -> RuleOutcome:
    if rule.remove:
        return RuleOutcome(str(rule))
    if rule.value is not None:
        value, beside, currency = converted(page, field, kind, [Piece(rule.value)])
        return RuleOutcome(str(rule), value, beside=beside, currency=currency)
    selector = None
    chosen = rule
    if rule.example is not None:
        example = learned(page, evaluator, rule.example)
        if example is None:
            return RuleOutcome(str(rule), fault="is in no element of this page")
        chosen = example
        selector = msgspec.to_builtins(chosen)
    return _of_selector(page, evaluator, field, kind, chosen)._replace(rule=str(rule), selector=selector)


def _of_selector(page: Page, evaluator: Evaluator, field: str, kind: ValueType, rule: ExtractRule) -> RuleOutcome:
    tree = of_css(rule.css) if rule.css is not None else of_xpath(rule.xpath or "")
    items = evaluator.select(tree)
    if kind is ValueType.LINES and rule.all:
        # The text of an element has that of the elements in it.
        items = evaluator.outermost(items)
    pieces, first = list[Piece](), None
    for item in _read(items, rule.attribute):
        if item.text is None:
            evaluator.spend_on(item.node)
        piece = _piece(item, kind)
        # An element without a text is a template, or is filled by a script; an image has none.
        if not piece.text and not _has_address(item.node, kind):
            continue
        if len(pieces) == MAX_PARTS:
            fault = f"found more than {MAX_PARTS} elements; write a narrower selector"
            return RuleOutcome(str(rule), fault=fault)
        first = first or item
        pieces.append(piece)
        if not rule.all and kind not in LISTS:
            break
    if first is None:
        return RuleOutcome(str(rule), fault=_NOTHING)
    if rule.regex is not None:
        matches = [_matched(evaluator, rule.regex, piece) for piece in pieces]
        pieces = [found for found in matches if found is not None]
        if not pieces:
            return RuleOutcome(
                str(rule), fault=f"found {_shown(first, kind)}, in which regex {rule.regex} matches nothing"
            )
    value, beside, currency = converted(page, field, kind, pieces)
    xpath = f"{path_of(page, first.node)}{first.suffix}"
    return RuleOutcome(str(rule), value, xpath, beside, currency)


def _read(items: list[Selected], attribute: str | None) -> Iterator[Selected]:
    """Yield the attribute of each element that has it, if one is to be read."""
    for item in items:
        if attribute is None or item.text is not None:
            yield item
        elif (value := item.node.get(attribute)) is not None:
            yield Selected(item.node, value, f"/@{attribute}")


def _piece(item: Selected, kind: ValueType) -> Piece:
    if item.text is not None:
        return Piece(one_line(item.text), item.node, Origin.TEXT_NODE if item.place else Origin.ATTRIBUTE)
    return Piece(text_of(item.node, kind), item.node, Origin.ELEMENT)


def _has_address(node: HtmlElement, kind: ValueType) -> bool:
    return kind in _OF_ADDRESSES or (kind is ValueType.DATE and node.get("datetime") is not None)


def _matched(evaluator: Evaluator, pattern: str, piece: Piece) -> Piece | None:
    """Return what a pattern matches; raises :class:`NoValueError` for a longer text than :data:`MAX_SEARCHED`."""
    text = one_line(piece.text)
    if len(text) > MAX_SEARCHED:
        raise NoValueError(text, f"has over {MAX_SEARCHED} characters, which regex does not search")
    visits = 1 + steps_of(pattern, len(text)) // _STEPS_PER_VISIT
    if visits > _LONGEST_SEARCH:
        raise TooMuchWorkError
    evaluator.spend(visits)
    match = re.search(pattern, text)
    if match is None:
        return None
    found = match.group(1) if match.re.groups else match.group()
    origin = Origin.ATTRIBUTE if piece.origin is Origin.ATTRIBUTE else Origin.MATCH
    return Piece(found, None, origin) if found else None


def _shown(item: Selected, kind: ValueType) -> str:
    text = one_line(_piece(item, kind).text)
    return repr(text if len(text) <= MAX_SEARCHED else f"{text[: MAX_SEARCHED - 3]}...")


def path_of(page: Page, node: HtmlElement) -> str:
    """Return the XPath of an element, such as ``/html/body/div[2]/span``."""
    return (page.paths.of(node) if page.paths else None) or str(node.getroottree().getpath(node))
