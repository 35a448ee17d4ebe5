"""Retention rules: the age and number beyond which jobs, their records, or records of collections are removed.

Rules are independent of each other: each removes the data that it covers, so that the shortest time applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform import rules
from scrapy_ext.api.platform.collections import NAME_PATTERN, check_name
from scrapy_ext.api.platform.rules import (
    CONDITIONS,
    KEEP,
    KINDS,
    JobConditions,
    JobsPreview,
    check_rule,
    field_faults,
    jobs_in_words,
    joined,
    what_faults,
)
from scrapy_ext.api.violations import ContractError, Violation

#: Whole jobs: they become deleted, with all their records, stats and comments.
JOBS: Final = "jobs"
#: Records of collections, by the time of their last write.
COLLECTIONS: Final = "collections"
WHAT: Final = (JOBS, *KINDS, COLLECTIONS)
#: Stands for every collection but those of :data:`INTERNAL_COLLECTIONS`.
EVERY: Final = "*"
#: Collections with data of running crawls (the items of unfinished commits), which ``*`` leaves out.
INTERNAL_COLLECTIONS: Final = frozenset({"scrapy_commits"})

MAX_COLLECTIONS: Final = 50
#: Event of an activity message about removed data.
REMOVED_EVENT: Final = "retention:removed"

FIELDS: Final = (*CONDITIONS, "what", "collections", "only_delivered", "enabled")


class NewRule(JobConditions, frozen=True, kw_only=True):
    """A retention rule as it is added."""

    #: :data:`JOBS` or :data:`COLLECTIONS` alone, or some of :data:`KINDS`, each once and in this order.
    what: tuple[str, ...]
    #: Names of collections or :data:`EVERY`, if ``what`` is :data:`COLLECTIONS`.
    collections: tuple[str, ...] = ()
    #: Remove only records that were delivered, and have not changed since.
    only_delivered: bool = False
    enabled: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of records of jobs that it removes."""
        return KINDS if JOBS in self.what else tuple(kind for kind in KINDS if kind in self.what)

    @property
    def removes_jobs(self) -> bool:
        return JOBS in self.what

    @property
    def is_about_collections(self) -> bool:
        return COLLECTIONS in self.what

    def covers(self, collection: str) -> bool:
        """Return true when it removes records of the collections of this name."""
        every = EVERY in self.collections and collection not in INTERNAL_COLLECTIONS
        return every or collection in self.collections


class Rule(NewRule, frozen=True, kw_only=True):
    """A retention rule. Its conditions never change; it is removed and added anew."""

    id: int
    #: None: a rule of the server, for every project.
    project: int | None
    #: Time (ms).
    created: int
    #: When it was added, enabled or disabled last (ms).
    changed: int


class Preview(JobsPreview, kw_only=True):
    """The data that a rule would remove now."""

    collections: int = 0


class RetentionEvent(msgspec.Struct, omit_defaults=True):
    """The activity message about one batch of removed data."""

    event: str
    user: str
    message: str
    what: tuple[str, ...]
    bytes: int
    jobs: list[str] = []
    collection: str | None = None
    records: int | None = None


def rule_of(fields: Mapping[str, Any]) -> NewRule:
    """Return the rule with these fields; raises :class:`ContractError` with every broken rule of the fields."""
    given = check_rule(rule_faults(fields), fields)
    given["what"] = tuple(name for name in WHAT if name in given["what"])
    given["collections"] = tuple(dict.fromkeys(given.get("collections", ())))
    return NewRule(**given)


def rule_faults(fields: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of a rule's fields."""
    yield from field_faults(fields, FIELDS, ("only_delivered", "enabled"))
    if fields.get("tag") == KEEP:
        yield Violation("tag", f"must not be {KEEP}: jobs with this tag are never touched", "Use another tag.")
    what = fields.get("what")
    faults = list(what_faults(what, WHAT, 'Write ["jobs"], or ["items"].'))
    yield from faults or _what_faults(set(what or ()), fields)


def _what_faults(what: set[str], fields: Mapping[str, Any]) -> Iterator[Violation]:
    for alone in (JOBS, COLLECTIONS):
        if alone in what and len(what) > 1:
            yield Violation("what", f"must have {alone} alone", "Add another rule for the others.")
            return
    if COLLECTIONS not in what:
        if fields.get("collections"):
            yield Violation("collections", "is for rules about collections", 'Write "what": ["collections"].')
        if fields.get("older_than") is None and fields.get("keep_last") is None:
            yield Violation("older_than", "or keep_last is required", "Give the age, the number of jobs, or both.")
        if fields.get("only_delivered") is True:
            yield from _delivered_faults(what)
        return
    for name in ("spider", "tag", "keep_last"):
        if fields.get(name) is not None:
            yield Violation(name, "is for rules about jobs", f"Leave {name} out; collections have older_than only.")
    if fields.get("only_delivered"):
        yield Violation("only_delivered", "is for rules about jobs", "Leave it out; collections are not delivered.")
    if fields.get("older_than") is None:
        yield Violation("older_than", "is required for collections", "Give the days since a record's last write.")
    yield from _collection_faults(fields.get("collections"))


def _delivered_faults(what: set[str]) -> Iterator[Violation]:
    if JOBS in what:
        remedy = "Use it with items, requests, logs and samples; another rule may remove the jobs later."
        yield Violation("only_delivered", "is not possible for jobs, of which only records are delivered", remedy)


def _collection_faults(names: Any) -> Iterator[Violation]:
    remedy = f'Write ["prices"], or ["{EVERY}"] for all of them.'
    if not isinstance(names, (list, tuple)) or not 1 <= len(names) <= MAX_COLLECTIONS:
        yield Violation("collections", f"must be an array of 1 to {MAX_COLLECTIONS} names", remedy)
        return
    for name in names:
        if name == EVERY:
            continue
        if name in INTERNAL_COLLECTIONS:
            yield Violation("collections", f"must not have {name}, in which jobs keep their unstored items", remedy)
            return
        if not isinstance(name, str):
            yield Violation("collections", f"must be names ({NAME_PATTERN}) or {EVERY}", remedy)
            return
        try:
            check_name(name, "collections")
        except ContractError as error:
            yield from error.violations


# ── words for pages and commands ──


def data_in_words(rule: NewRule) -> str:
    """Return the data that a rule removes: ``items and logs of jobs of spider books``."""
    if rule.is_about_collections:
        every = EVERY in rule.collections
        return "records of all collections" if every else f"records of {_listed('collection', rule.collections)}"
    jobs = jobs_in_words(rule)
    return jobs if rule.removes_jobs else f"{joined(rule.kinds)} of {jobs}"


def limits_in_words(rule: NewRule) -> str:
    """Return the limits of a rule: ``older than 30 days, beyond the newest 10 of each spider``."""
    return ", ".join([*rules.limits_in_words(rule), *(["delivered"] if rule.only_delivered else ())])


def _listed(noun: str, names: Sequence[str]) -> str:
    return f"{noun} {names[0]}" if len(names) == 1 else f"{noun}s {joined(names)}"
