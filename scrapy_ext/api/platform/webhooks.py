"""Webhooks: HTTP notifications of a project's activity. Not part of the hosted platform's API.

Deliveries are signed by Standard Webhooks (https://www.standardwebhooks.com/): an HMAC-SHA256 of
``<id>.<timestamp>.<body>`` with the Base64-decoded secret after its prefix.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import Field, checked
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.violations import Violation

MAX_WEBHOOKS: Final = 20
MAX_URL: Final = 2000
MAX_EVENTS: Final = 50
#: Maximum bytes of an activity message; larger ones are not delivered.
MAX_MESSAGE_BYTES: Final = 64 * 1024
#: The event of a test delivery.
TEST_EVENT: Final = "webhook:test"
#: Prefix of events about webhooks, which are not delivered to webhooks.
WEBHOOK_EVENTS: Final = "webhook:"
WEBHOOK_FULL: Final = "webhook:full"
WEBHOOK_GIVEN_UP: Final = "webhook:given-up"
WEBHOOK_DISABLED: Final = "webhook:disabled"
#: Headers of a delivery, as Standard Webhooks names them.
ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - prefix of a secret

_URL_RULE: Final = f"must be a URL of at most {MAX_URL} characters"
_URL_REMEDY: Final = "Write one such as https://hooks.example.com/jobs."
#: Pattern of URLs in the OpenAPI document.
_URL: Final = r"^https?://[A-Za-z0-9.:_\[\]\-]+([/?#][!-\[\]-~]*)?$"
_EVENT_PATTERN: Final = r"([A-Za-z0-9_.:\-]{1,100}\*?|\*)"
_EVENT: Final = re.compile(_EVENT_PATTERN, re.ASCII)


def _url_faults(field: str, url: str) -> Iterator[Violation]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        yield Violation(field, "is not a URL", _URL_REMEDY)
        return
    if not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url) or not parts.hostname or port == 0:
        yield Violation(field, "is not a URL", _URL_REMEDY)
    elif parts.scheme not in ("http", "https"):
        yield Violation(field, "must begin with https:// or http://", _URL_REMEDY)
    elif parts.username is not None or parts.password is not None:
        yield Violation(field, "must have no user name and no password", "Verify the signature instead.")


def _event_faults(field: str, events: Sequence[str]) -> Iterator[Violation]:
    for event in events:
        if not _EVENT.fullmatch(event):
            yield Violation(field, f"has {event[:60]!r}, which is not an event", "Write job:completed, job:* or *.")


_Url = Annotated[str, Meta(min_length=1, max_length=MAX_URL, extra_json_schema={"pattern": _URL})]
_Event = Annotated[str, Meta(extra_json_schema={"pattern": f"^{_EVENT_PATTERN}$"})]


class NewWebhook(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A webhook as it is added."""

    url: Annotated[
        _Url,
        Field(
            _URL_RULE,
            _URL_REMEDY,
            check=_url_faults,
            label="URL",
            placeholder="https://hooks.example.com/jobs",
        ),
    ]
    #: Names of events; one that ends in ``*`` stands for those that begin with it.
    events: Annotated[
        list[_Event],
        Meta(min_length=1, max_length=MAX_EVENTS),
        Field(
            f"must be an array of 1 to {MAX_EVENTS} names",
            'Write ["job:completed"], or ["*"].',
            check=_event_faults,
            label="Events, one per line",
            placeholder="job:completed",
            lines=3,
        ),
    ]


class Webhook(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A webhook of a project; ``secret`` only in the answer that creates it. Times in milliseconds."""

    id: int
    project: int
    url: str
    events: list[str]
    created: int
    disabled: bool
    failing_since: int | None
    secret: str | None = None


class Delivery(msgspec.Struct, kw_only=True):
    """A delivery.

    ``state`` is ``pending``, ``delivered`` or ``given up``; ``outcome`` is the result of the last attempt, ``due`` the
    time of the next one (ms).
    """

    id: str
    event: str
    created: int
    state: str
    attempts: int
    due: int | None
    outcome: str


class DeliveryBody(msgspec.Struct):
    """The body of a delivery: ``message`` is the activity message, written at ``ts`` (ms)."""

    id: str
    event: str
    project: int
    ts: int
    message: msgspec.Raw


class WebhookEvent(msgspec.Struct):
    """An activity message about a webhook."""

    event: str
    user: str
    webhook: int
    message: str


def webhook_of(fields: Mapping[str, Any]) -> NewWebhook:
    """Return the webhook with these fields; raises :class:`ContractError` with every broken rule of the fields."""
    new = checked(NewWebhook, fields, "a webhook")
    return msgspec.structs.replace(new, events=list(dict.fromkeys(new.events)))


def wants(events: Sequence[str], event: str) -> bool:
    """Return true when a webhook for ``events`` receives this event."""
    return any(event.startswith(each[:-1]) if each.endswith("*") else event == each for each in events)


# ── activity messages (platform-api.md, Other records; Events) ──

#: Events that the contract names; the others are those of the platform's real servers.
JOB_COMPLETED: Final = "job:completed"
JOB_CANCELLED: Final = "job:cancelled"

#: Event of a job that enters a state.
STATE_EVENTS: Final[Mapping[JobState, str]] = {
    JobState.PENDING: "job:scheduled",
    JobState.RUNNING: "job:started",
    JobState.FINISHED: JOB_COMPLETED,
    JobState.DELETED: "job:deleted",
}
#: A node returned a running job to the queue, or was lost. The job starts again on another node.
JOB_INTERRUPTED: Final = "job:interrupted"

#: Events of periodic jobs that did not run as planned, or not completely.
PERIODIC_ACTIVE: Final = "periodicjob:active"
PERIODIC_MISSED: Final = "periodicjob:missed"
PERIODIC_REFUSED: Final = "periodicjob:refused"


class JobEvent(msgspec.Struct, omit_defaults=True):
    """A message written by the platform itself. Clients may post any JSON object."""

    event: str
    job: str
    user: str
    #: Only for a finished job.
    close_reason: str | None = None


class PeriodicEvent(msgspec.Struct, omit_defaults=True):
    """A message about a periodic job; ``job`` is one that is still active."""

    event: str
    user: str
    periodic_job_id: int
    message: str
    job: str | None = None


# ── signatures ──

_SECRET_BYTES: Final = 32


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(secret: str, id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers that prove sender and time (seconds since 1970) of a body."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.digest(key, f"{id}.{seconds}.".encode() + body, sha256)
    signature = base64.b64encode(digest).decode()
    return {ID_HEADER: id, TIMESTAMP_HEADER: str(seconds), SIGNATURE_HEADER: f"v1,{signature}"}
