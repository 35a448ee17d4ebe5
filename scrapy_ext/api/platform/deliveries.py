"""Delivery rules, by which finished jobs are copied to a folder or an object store, and these deliveries.

Not part of the hosted platform's API. A rule delivers each job that matches its conditions (``rules``) once, and again
after its records have changed. Jobs with the tag ``keep`` are delivered, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import Field, checked, flag, one_of
from scrapy_ext.api.platform import rules
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.rules import (
    KINDS,
    JobConditions,
    JobsPreview,
    RuleSort,
    jobs_in_words,
    joined,
)
from scrapy_ext.api.violations import Violation

#: Compressions of JSON lines, by the suffix of the file.
COMPRESSIONS: Final = ("gz", "zst")
#: Schemes of targets: a folder of the server, S3, Google Cloud Storage and Azure Blob Storage.
SCHEMES: Final = ("file", "s3", "gs", "az")
MAX_TARGET: Final = 1000
#: The object that completes a delivery.
MANIFEST: Final = "job.json"
#: Kind of the delivery of a job that has no records: its metadata alone, in the manifest.
JOB: Final = "job"
#: Time (ms) from the end of such a job to its delivery. Records may be stored after the end, by an import for example.
EMPTY_AFTER: Final = 60 * 60 * 1000
#: Event of an activity message about delivered jobs.
DELIVERED_EVENT: Final = "delivery:completed"

_EXAMPLE: Final = "Write one such as s3://bucket/prefix or file:///srv/archive."
#: The rest of a URL. Without percent signs, a URL is the same text as the path of its objects.
_PLAIN_CHARACTERS: Final = r"A-Za-z0-9._~\-"
_PLAIN: Final = re.compile(rf"[{_PLAIN_CHARACTERS}/]*", re.ASCII)
#: Maximum characters of a spider's name in the name of a folder, which has at most 255.
_LONGEST_NAME: Final = 180


_TARGET_RULE: Final = f"must be a URL of at most {MAX_TARGET} characters"
#: Pattern of targets in the OpenAPI document: a folder, or a bucket with a prefix.
_TARGET: Final = rf"^(file:///|({'|'.join(SCHEMES[1:])})://)[{_PLAIN_CHARACTERS}]+(/[{_PLAIN_CHARACTERS}]+)*/*$"


def target_faults(url: str) -> Iterator[Violation]:
    """Yield the violations of the URL of a target, in which credentials are refused."""
    if not 0 < len(url) <= MAX_TARGET:
        yield Violation("target", _TARGET_RULE, _EXAMPLE)
        return
    try:
        parts = urlsplit(url)
    except ValueError:
        yield Violation("target", "is not a URL", _EXAMPLE)
        return
    segments = parts.path.strip("/").split("/")
    if parts.scheme not in SCHEMES:
        yield Violation("target", f"must begin with {', '.join(f'{scheme}://' for scheme in SCHEMES)}", _EXAMPLE)
    elif parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        yield Violation(
            "target",
            "must have no credentials, query and fragment",
            "Set credentials in the environment of the server.",
        )
    elif not _PLAIN.fullmatch(url.partition("://")[2]) or {"", ".", ".."} & set(segments) - {parts.path}:
        rule = "must be made of letters, digits and -._~ between single slashes, without . and .. alone"
        yield Violation("target", rule, _EXAMPLE)
    elif parts.scheme == "file" and (parts.netloc or parts.path == "/"):
        yield Violation("target", "must be file:/// and the absolute path of a folder", _EXAMPLE)
    elif parts.scheme != "file" and not parts.netloc:
        yield Violation("target", "must name a bucket or container", _EXAMPLE)


def _url_faults(_: str, url: str) -> Iterator[Violation]:
    return target_faults(url)


_Target = Annotated[str, Meta(min_length=1, max_length=MAX_TARGET, extra_json_schema={"pattern": _TARGET})]
_Kind = Annotated[str, one_of(KINDS)]
_Compression = Annotated[str, one_of(COMPRESSIONS)]


class NewDeliveryRule(JobConditions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A delivery rule as it is added."""

    #: URL of the folder or prefix, without a slash at its end.
    target: Annotated[
        _Target,
        Field(
            _TARGET_RULE,
            _EXAMPLE,
            check=_url_faults,
            help="folder or prefix of a bucket that the operator of the server allows",
            option="target",
            metavar="URL",
            label="Target: a folder, or a bucket with a prefix",
            placeholder="s3://bucket/prefix",
        ),
    ]
    #: The kinds of records to deliver, in the order of :data:`KINDS`.
    what: Annotated[
        tuple[_Kind, ...],
        Meta(min_length=1),
        Field(
            f"must be an array of some of {', '.join(KINDS)}",
            "Leave it out for all of them.",
            help=f"records to deliver: {', '.join(KINDS)} (default: all of them)",
            option="what",
            metavar="WHAT",
            label="Records to deliver",
        ),
    ] = KINDS
    compression: Annotated[
        _Compression,
        Field(
            f"must be {' or '.join(COMPRESSIONS)}",
            "Leave it out for gzip.",
            help="gzip or Zstandard (default: gz)",
            label="Compression",
        ),
    ] = "gz"
    #: Deliver tables, too.
    parquet: Annotated[bool, flag("the records as Parquet, too")] = False
    enabled: Annotated[bool, flag()] = False


class DeliveryRule(NewDeliveryRule, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A delivery rule."""

    id: int
    #: None: a rule of the server, for every project.
    project: int | None
    #: Time (ms).
    created: int
    #: When it was added, enabled or disabled last (ms).
    changed: int
    #: Why the rule is not applied now.
    failure: str | None = None


class DeliveryPreview(JobsPreview, kw_only=True):
    """The data that a delivery rule would deliver now."""

    #: Why the rule would wait, None if it would not.
    failure: str | None = None


class JobDelivery(msgspec.Struct, kw_only=True):
    """A complete delivery of a job's records of one kind, in ``folder``/``object``.

    Of a job without records, ``kind`` is ``job`` and ``object`` the manifest.
    """

    job: str
    kind: str
    rule: int
    #: True for a rule of the server.
    of_server: bool
    folder: str
    object: str
    records: int
    size: int
    sha256: str
    finished: int


class DeliveryEvent(msgspec.Struct):
    """The activity message about some delivered jobs. ``bytes``: those of the objects with their records."""

    event: str
    user: str
    message: str
    what: list[str]
    jobs: list[str]
    records: int
    bytes: int


class JobRestore(msgspec.Struct, kw_only=True, omit_defaults=True):
    """State of a job's records: ``state`` is ``available``, ``archived``, ``restoring``, ``failed`` or
    ``removed``. ``records``: number of those brought back so far; ``archive``: URL of the delivery that has them."""

    job: str
    state: str
    archive: str | None = None
    records: int = 0
    failure: str | None = None


class RestoreList(msgspec.Struct, kw_only=True):
    status: str = "ok"
    jobs: list[JobRestore]


class DeliveryList(msgspec.Struct, kw_only=True):
    status: str = "ok"
    deliveries: list[JobDelivery]


def rule_of(fields: Mapping[str, Any]) -> NewDeliveryRule:
    """Return the rule with these fields; raises :class:`ContractError` with every broken rule of the fields."""
    rule = checked(NewDeliveryRule, fields, "a rule")
    what = tuple(kind for kind in KINDS if kind in rule.what)
    return msgspec.structs.replace(rule, target=rule.target.rstrip("/"), what=what)


def is_within(url: str, targets: Sequence[str]) -> bool:
    """Return true when a URL is one of the targets or below one."""
    return any(f"{url.rstrip('/')}/".startswith(f"{target.rstrip('/')}/") for target in targets)


def job_folder(key: JobKey, spider: str, delivery: str) -> str:
    """Return the path of a delivery below its target. The name of the spider is percent-encoded: one part of a path."""
    name = quote(spider, safe="")
    if len(name) > _LONGEST_NAME:
        cut = name.rfind("%", _LONGEST_NAME - 2, _LONGEST_NAME)  # not within an encoded character
        name = name[: _LONGEST_NAME if cut < 0 else cut]
    return f"{key.project}/{key.spider}-{name}/{key.job}/{delivery}"


# ── words for messages, pages and commands ──


def data_in_words(rule: NewDeliveryRule) -> str:
    """Return the data that a rule delivers: ``items and logs of jobs of spider books to s3://bucket``."""
    return f"{joined(rule.what)} of {jobs_in_words(rule)} to {rule.target}"


def limits_in_words(rule: NewDeliveryRule) -> str:
    """Return the limits of a rule: ``older than 30 days``; the empty text without any."""
    return ", ".join(rules.limits_in_words(rule))


def format_in_words(rule: NewDeliveryRule) -> str:
    """Return the formats of a rule: ``jsonl.gz, parquet``."""
    return f"jsonl.{rule.compression}" + (", parquet" if rule.parquet else "")


SORT: Final = RuleSort(
    name="deliveries",
    noun="delivery rule",
    verb="deliver",
    does="delivers",
    done="delivered",
    new=NewDeliveryRule,
    rule=DeliveryRule,
    preview=DeliveryPreview,
    parse=rule_of,
    data=data_in_words,
    limits=limits_in_words,
    example='{"target": "s3://bucket/prefix", "older_than": 30}',
    columns={"format": format_in_words},
)
