"""Retention rules: the age and number beyond which jobs, their records, or records of collections are removed.

Rules are independent of each other: each removes the data that it covers, so that the shortest time applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import Field, checked, flag, one_of
from scrapy_ext.api.platform import rules
from scrapy_ext.api.platform.collections import NAME_PATTERN, check_name
from scrapy_ext.api.platform.jobs import MAX_NAME
from scrapy_ext.api.platform.rules import (
    KEEP,
    KINDS,
    JobConditions,
    JobsPreview,
    RuleSort,
    jobs_in_words,
    joined,
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

_NAMES_RULE: Final = f"must be an array of 1 to {MAX_COLLECTIONS} names"
_NAMES_REMEDY: Final = f'Write ["prices"], or ["{EVERY}"] for all of them.'


def _collection_faults(field: str, names: Sequence[str]) -> Iterator[Violation]:
    for name in names:
        if name == EVERY:
            continue
        if name in INTERNAL_COLLECTIONS:
            yield Violation(field, f"must not have {name}, in which jobs keep their unstored items", _NAMES_REMEDY)
            return
        try:
            check_name(name, field)
        except ContractError as error:
            yield from error.violations


_What = Annotated[str, one_of(WHAT)]
_Collection = Annotated[str, Meta(max_length=MAX_NAME)]


class NewRule(JobConditions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A retention rule as it is added."""

    #: :data:`JOBS` or :data:`COLLECTIONS` alone, or some of :data:`KINDS`, each once and in this order.
    what: Annotated[
        tuple[_What, ...],
        Meta(min_length=1),
        Field(
            f"must be an array of some of {', '.join(WHAT)}",
            'Write ["jobs"], or ["items"].',
            help=f"data to remove: {', '.join(WHAT)}",
            option="what",
            metavar="WHAT",
            label="Data to remove",
        ),
    ]
    #: Names of collections or :data:`EVERY`, if ``what`` is :data:`COLLECTIONS`.
    collections: Annotated[
        tuple[_Collection, ...],
        Meta(max_length=MAX_COLLECTIONS),
        Field(
            _NAMES_RULE,
            _NAMES_REMEDY,
            item_rule=f"must be names ({NAME_PATTERN}) or {EVERY}",
            check=_collection_faults,
            help="for collections: the name of one, or * for all",
            option="--collection",
            metavar="NAME",
            label="Collections, one per line; * for all (only if collections are removed)",
        ),
    ] = ()
    #: Remove only records that were delivered, and have not changed since.
    only_delivered: Annotated[bool, flag("only records that were delivered")] = False
    enabled: Annotated[bool, flag()] = False

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


class Rule(NewRule, frozen=True, kw_only=True, forbid_unknown_fields=False):
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
    rule = checked(NewRule, fields, "a rule")
    if faults := [*_rule_faults(rule)]:
        raise ContractError(faults)
    what = tuple(name for name in WHAT if name in rule.what)
    return msgspec.structs.replace(rule, what=what, collections=tuple(dict.fromkeys(rule.collections)))


def _rule_faults(rule: NewRule) -> Iterator[Violation]:
    if rule.tag == KEEP:
        yield Violation("tag", f"must not be {KEEP}: jobs with this tag are never touched", "Use another tag.")
    for alone in (JOBS, COLLECTIONS):
        if alone in rule.what and len(set(rule.what)) > 1:
            yield Violation("what", f"must have {alone} alone", "Add another rule for the others.")
            return
    yield from _faults_about_collections(rule) if rule.is_about_collections else _faults_about_jobs(rule)


def _faults_about_jobs(rule: NewRule) -> Iterator[Violation]:
    if rule.collections:
        yield Violation("collections", "is for rules about collections", 'Write "what": ["collections"].')
    if rule.older_than is None and rule.keep_last is None:
        yield Violation("older_than", "or keep_last is required", "Give the age, the number of jobs, or both.")
    if rule.only_delivered and rule.removes_jobs:
        remedy = "Use it with items, requests, logs and samples; another rule may remove the jobs later."
        yield Violation("only_delivered", "is not possible for jobs, of which only records are delivered", remedy)


def _faults_about_collections(rule: NewRule) -> Iterator[Violation]:
    for name in ("spider", "tag", "keep_last"):
        if getattr(rule, name) is not None:
            yield Violation(name, "is for rules about jobs", f"Leave {name} out; collections have older_than only.")
    if rule.only_delivered:
        yield Violation("only_delivered", "is for rules about jobs", "Leave it out; collections are not delivered.")
    if rule.older_than is None:
        yield Violation("older_than", "is required for collections", "Give the days since a record's last write.")
    if not rule.collections:
        yield Violation("collections", _NAMES_RULE, _NAMES_REMEDY)


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


SORT: Final = RuleSort(
    name="retention",
    noun="retention rule",
    verb="remove",
    does="removes",
    done="removed",
    new=NewRule,
    rule=Rule,
    preview=Preview,
    parse=rule_of,
    data=data_in_words,
    limits=limits_in_words,
    example='{"what": ["items"], "older_than": 90}',
)
