"""Rules of sites in requests and answers: sent to a service that applies them, else applied here.

A service that has the field ``extractRules`` applies the rules to the page that it extracts, in any request, and its
answer has that field, too. To another answer the same function applies them here, to its HTML; where it has none, the
rules have no effect, which a warning says once for each file.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from scrapy.http import Response, TextResponse

from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.api.masking import without_user
from scrapy_ext.crawl.extraction.rule_files import UsedRules

logger = logging.getLogger(__name__)

#: Stats of a run, by what they count.
RULE_STATS: Final = {name: f"extract_api/rules/{name}" for name in ("pages", "faults", "not_applied")}
_NO_FIELD: Final = f"the answer of the service has no field {EXTRACT_RULES}"
_NO_LIBRARIES: Final = (
    f"{_NO_FIELD}, and they are applied here with libraries of the extra server (%s). Run: "
    'pip install "scrapy-ext[server]"'
)
_NO_PAGE: Final = f"{_NO_FIELD}, and no HTML. Request browserHtml beside %s, or httpResponseBody with extractFrom"


class NotAppliedError(Exception):
    """Rules could not be applied to an answer; the message has the reason and the remedy."""


class Corrected(NamedTuple):
    """An item after rules, and what the rule of each field did (the field ``extractRules`` of results)."""

    item: dict[str, Any]
    report: Mapping[str, Mapping[str, Any]]


def with_rules(fields: Mapping[str, Any], used: UsedRules | None, accepted: Collection[str]) -> dict[str, Any]:
    """Return the fields of a request with the rules, if the service accepts these."""
    if used is None or EXTRACT_RULES not in accepted:
        return dict(fields)
    return {**fields, EXTRACT_RULES: {field: dict(rule) for field, rule in used.rules.items()}}


def are_applied(result: Mapping[str, Any]) -> bool:
    """Return true for an answer of a service that applied the rules. One may accept the field and ignore it."""
    return isinstance(result.get(EXTRACT_RULES), Mapping)


def corrected(used: UsedRules, response: Response) -> Corrected:
    """Return the item of an answer after rules that the service did not apply.

    Takes processor time: an event loop calls it in a thread. Raises :class:`NotAppliedError` without HTML, or without
    the extra ``server``.
    """
    result: Mapping[str, Any] = response.extract_result  # type: ignore[attr-defined]
    item = result.get(used.kind)
    has_page = result.get("browserHtml") is not None or result.get("httpResponseBody") is not None
    if not isinstance(item, Mapping) or not has_page or not isinstance(response, TextResponse):
        raise NotAppliedError(_NO_PAGE % used.kind)
    try:
        from scrapy_ext.server.extraction import correct_item
    except ImportError as error:
        raise NotAppliedError(_NO_LIBRARIES % error) from None
    return Corrected(*correct_item(used.kind, response.text, response.url, item, used.rules))


class RuleReports:
    """Reports of the rules in a run: counts, one warning for each rule that found nothing, and one for each file whose
    rules could not be applied."""

    def __init__(self) -> None:
        self._warned: set[tuple[str, ...]] = set()
        self.logs_faults = True
        #: Numbers by the names of stats.
        self.counts: dict[str, int] = {}

    def add(self, used: UsedRules, report: Mapping[str, Any], url: str) -> None:
        """Count the rules of one page."""
        for field, fault in faults_of(report):
            self._count("faults")
            if self.logs_faults and self._is_first(used.file, used.kind, field):
                text = without_user(f"{used.of(field)} {fault} on {url}")
                logger.warning("%s. The automatic value stays there: correct the rule", text)
        self._count("pages")

    def not_applied(self, used: UsedRules, url: str, error: NotAppliedError) -> None:
        """Count a page whose rules could not be applied."""
        self._count("not_applied")
        if self._is_first(used.file):
            logger.warning("The rules of %s are not applied to %s: %s", used.file, without_user(url), error)

    def _is_first(self, *key: str) -> bool:
        # There are as many keys as rules.
        is_first = key not in self._warned
        self._warned.add(key)
        return is_first

    def _count(self, name: str) -> None:
        stat = RULE_STATS[name]
        self.counts[stat] = self.counts.get(stat, 0) + 1


def faults_of(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields whose rules have a fault, with the fault, of the field ``extractRules`` of a result."""
    for field, entry in report.items():
        if isinstance(entry, Mapping) and isinstance(entry.get("fault"), str):
            yield field, entry["fault"]
