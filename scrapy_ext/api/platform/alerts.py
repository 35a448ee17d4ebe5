"""Targets of alerts: addresses of Apprise that receive messages about monitors. Not part of the hosted platform's API.

An address has credentials in it, so that it is never shown again once it is stored: :func:`masked` leaves its scheme.
Only schemes of services and protocols in :data:`SCHEMES` are accepted. The others of Apprise show messages on the
desktop of the server, write to its log, or read files of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import Field, checked
from scrapy_ext.api.platform.jobs import MAX_NAME
from scrapy_ext.api.violations import Violation

MAX_TARGETS: Final = 20
MAX_URL: Final = 2000

#: Kinds of messages.
ALERT: Final = "alert"
REMINDER: Final = "reminder"
RECOVERY: Final = "recovery"
TEST: Final = "test"
#: Event of an activity message about a message that no attempt has delivered.
GIVEN_UP_EVENT: Final = "alert:given-up"

#: Project settings: seconds within which failures of a spider are one message, and hours until a reminder.
WINDOW_SETTING: Final = "alert_window"
REMINDER_SETTING: Final = "alert_reminder"
DEFAULT_WINDOW: Final = 60.0
DEFAULT_REMINDER: Final = 24.0
MAX_WINDOW: Final = 24 * 3600
MAX_REMINDER: Final = 24 * 366

_NAMES: Final = (
    "apprise apprises bark barks bluesky brevo burstsms chanify clickatell clicksend dapnet dingtalk discord "
    "feishu flock form forms gchat goalert goalerts gotify gotifys guilded hassio hassios ifttt incidentio join "
    "json jsons lametric lark line mailgun mailto mailtos mastodon mastodons matrix matrixs mmost mmosts msg91 "
    "nctalk nctalks notica notifico ntfy ntfys o365 onesignal opsgenie pagerduty pagertree parsep parseps pbul "
    "plivo postmark pover prowl psafer push pushed reddit resend revolt rocket rockets ryver sendgrid sendpulse "
    "ses signal signals signl4 simplepush sinch slack smseagle smseagles smsmgr smtp2go sns sparkpost spike "
    "splunk spugpush squadcast strmlabs synology synologys telnyx tgram threema toot toots twilio twist victorops "
    "voipms vonage webex workflows wxpusher wxteams xml xmls zoom zulip"
)
#: Schemes whose messages go over the network to an address that the guard of connections can check.
SCHEMES: Final = frozenset(_NAMES.split())
#: Parameters of these that name files of the server, and those that do so with some schemes.
_FILES: Final = frozenset({"attach", "attach-as", "pgp", "pgpkey", "pgpkeypath", "keyfile", "subfile", "key_file"})
_FILES_OF: Final = {scheme: frozenset({"template"}) for scheme in ("discord", "slack", "tgram", "workflows")}
#: Apprise also finds parameters behind a fragment, and between semicolons.
_SEPARATOR: Final = re.compile("[?&;#]")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.\-]{0,30})://", re.ASCII | re.IGNORECASE)
_EXAMPLE: Final = "Write one such as slack://TOKEN_A/TOKEN_B/TOKEN_C/#channel or mailtos://USER:PASSWORD@example.com."


class AlertTarget(msgspec.Struct, kw_only=True):
    """A target; ``url`` is masked. ``outcome``: result of the last attempt. Times in milliseconds."""

    id: int
    project: int
    name: str
    url: str
    created: int
    disabled: bool
    failing_since: int | None
    outcome: str


class AlertMessage(msgspec.Struct, kw_only=True):
    """A message to a target. ``state`` is ``pending``, ``sent`` or ``given up``; ``due``: the next attempt (ms)."""

    id: int
    project: int
    target: int
    kind: str
    title: str
    created: int
    state: str
    attempts: int
    due: int | None
    outcome: str


class AlertEvent(msgspec.Struct, kw_only=True):
    """The activity message about a target."""

    event: str
    user: str
    target: int
    message: str


def masked(url: str) -> str:
    """Return an address without anything that may be a secret: ``slack://***``."""
    match = _SCHEME.match(url)
    return f"{match[1].lower() if match else ''}://***"


_NAME_RULE: Final = f"must be printable text of 1 to {MAX_NAME} characters"
_NAME_REMEDY: Final = 'Write "on-call".'
_URL_RULE: Final = f"must be printable text of at most {MAX_URL} characters"
#: Pattern of addresses in the OpenAPI document.
_URL: Final = rf"^\s*({'|'.join(sorted(SCHEMES))})://[^\x00-\x1f]*$"


def url_faults(url: str) -> Iterator[Violation]:
    """Yield the violations of the address of a target."""
    if not 0 < len(url.strip()) <= MAX_URL or not url.strip().isprintable():
        yield Violation("url", _URL_RULE, _EXAMPLE)
        return
    match = _SCHEME.match(url.strip())
    if match is None:
        yield Violation("url", "must begin with the scheme of a service and ://", _EXAMPLE)
        return
    scheme = match[1].lower()
    if scheme not in SCHEMES:
        yield Violation("url", f"has the scheme {scheme}, which is not supported", _EXAMPLE)
        return
    try:
        url.encode()
        urlsplit(url)
    except ValueError:
        yield Violation("url", "is not a URL", _EXAMPLE)
        return
    for name in sorted(_parameters(url) & (_FILES | _FILES_OF.get(scheme, frozenset()))):
        yield Violation("url", f"has the parameter {name}, which names files of the server", "Leave it out.")


def _parameters(url: str) -> set[str]:
    """Return the names that Apprise may take for those of parameters with a value: ``#attach`` is a channel."""
    names = (part.partition("=")[0] for part in _SEPARATOR.split(url)[1:] if "=" in part)
    return {unquote(name.replace("+", " ")).strip().lower().lstrip("+-: ") for name in names}


def _name_faults(field: str, name: str) -> Iterator[Violation]:
    if not name.isprintable():
        yield Violation(field, _NAME_RULE, _NAME_REMEDY)


def _url_faults(_: str, url: str) -> Iterator[Violation]:
    return url_faults(url)


_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_Url = Annotated[str, Meta(min_length=1, extra_json_schema={"pattern": _URL})]


class NewTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target as it is added."""

    name: Annotated[
        _Name,
        Field(
            _NAME_RULE,
            _NAME_REMEDY,
            check=_name_faults,
            help="name in lists and messages",
            option="name",
            metavar="NAME",
        ),
    ]
    url: Annotated[
        _Url,
        Field(
            _URL_RULE,
            _EXAMPLE,
            check=_url_faults,
            help="address of Apprise, such as slack://TOKEN_A/TOKEN_B/TOKEN_C",
            option="url",
            metavar="URL",
        ),
    ]


def target_of(fields: Mapping[str, Any]) -> NewTarget:
    """Return the target with these fields; raises :class:`ContractError` with every broken rule."""
    new = checked(NewTarget, fields, "a target")
    return msgspec.structs.replace(new, url=new.url.strip())


def settings_faults(settings: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of the project settings about alerts."""
    for name, most, unit in ((WINDOW_SETTING, MAX_WINDOW, "seconds"), (REMINDER_SETTING, MAX_REMINDER, "hours")):
        value = settings.get(name)
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= most or (name == REMINDER_SETTING and value == 0):
            yield Violation(
                name,
                f"must be a number of {unit} up to {most}",
                "Write a number in these bounds, or null for the default.",
            )
