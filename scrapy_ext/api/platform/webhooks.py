"""Webhooks: HTTP notifications of a project's activity. Not part of the hosted platform's API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

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

_EVENT: Final = re.compile(r"[A-Za-z0-9_.:\-]{1,100}\*?|\*", re.ASCII)


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


def webhook_faults(url: Any, events: Any) -> Iterator[Violation]:
    """Yield the violations of a webhook's URL and events."""
    yield from _url_faults(url)
    if not isinstance(events, list) or not 1 <= len(events) <= MAX_EVENTS:
        yield Violation("events", f"must be an array of 1 to {MAX_EVENTS} names", 'Write ["job:completed"], or ["*"].')
        return
    for event in events:
        if not isinstance(event, str) or not _EVENT.fullmatch(event):
            shown = str(event)[:60]
            yield Violation("events", f"has {shown!r}, which is not an event", "Write job:completed, job:* or *.")


def _url_faults(url: Any) -> Iterator[Violation]:
    remedy = "Write one such as https://hooks.example.com/jobs."
    if not isinstance(url, str) or not 0 < len(url) <= MAX_URL:
        yield Violation("url", f"must be a URL of at most {MAX_URL} characters", remedy)
        return
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        yield Violation("url", "is not a URL", remedy)
        return
    if not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url) or not parts.hostname or port == 0:
        yield Violation("url", "is not a URL", remedy)
    elif parts.scheme not in ("http", "https"):
        yield Violation("url", "must begin with https:// or http://", remedy)
    elif parts.username is not None or parts.password is not None:
        yield Violation("url", "must have no user name and no password", "Verify the signature instead.")


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
