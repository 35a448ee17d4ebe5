"""Validation of fields beyond the contract: sessions, captured responses, ``experimental``, rules, Markdown,
probabilities.

Those that hosted services have as well have the forms that clients of such services send. Members that this package
does not have are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from scrapy_ext.api.extraction import extract_rules
from scrapy_ext.api.extraction.fields import (
    CAPTURE_MATCHES,
    CAPTURE_RESOURCES,
    CAPTURE_TYPES,
    EXTRACT_FROM,
    MARKDOWN_CONTENT,
    MARKDOWN_OPTIONS,
    MAX_CAPTURE_FILTERS,
    MAX_CAPTURE_LENGTH,
    MAX_SESSION_CONTEXT,
    MAX_SESSION_CONTEXT_LENGTH,
    MIN_PROBABILITY,
)
from scrapy_ext.api.violations import Violation

_UUID: Final = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_SESSION: Final = 'Write {"id": "..."} with a UUID, such as one of uuid.uuid4().'
_CONTEXT: Final = 'Write [{"name": "user", "value": "1"}].'
_CAPTURE: Final = 'Write {"filterType": "url", "matchType": "contains", "value": "/api/"}.'
_ONE_OF_THESE: Final = "Use one of these values."
#: Characters of a name that a message shows.
_SHOWN: Final = 60


def _session(session: dict[str, Any]) -> Iterator[Violation]:
    yield from _unknown("session", session, ("id",))
    value = session.get("id")
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        yield Violation("session.id", "must be a UUID", _SESSION)


def _session_context(context: list[Any]) -> Iterator[Violation]:
    if not 1 <= len(context) <= MAX_SESSION_CONTEXT:
        rule = f"must have 1 to {MAX_SESSION_CONTEXT} members, got {len(context)}"
        yield Violation("sessionContext", rule, _CONTEXT)
        return
    names = set()
    for index, member in enumerate(context):
        place = f"sessionContext[{index}]"
        if not isinstance(member, dict) or set(member) != {"name", "value"}:
            yield Violation(place, "must be an object of name and value", _CONTEXT)
            continue
        for part, value in member.items():
            yield from _text(f"{place}.{part}", value, MAX_SESSION_CONTEXT_LENGTH, _CONTEXT)
        name = member["name"]
        if isinstance(name, str):
            if name in names:
                yield Violation(f"{place}.name", "must not repeat the name of another member", "Use each name once.")
            names.add(name)


def _session_context_parameters(parameters: dict[str, Any]) -> Iterator[Violation]:
    yield from _unknown("sessionContextParameters", parameters, ("actions",))
    yield from _objects("sessionContextParameters.actions", parameters.get("actions", []))


def _network_capture(filters: list[Any]) -> Iterator[Violation]:
    if len(filters) > MAX_CAPTURE_FILTERS:
        rule = f"must have at most {MAX_CAPTURE_FILTERS} filters, got {len(filters)}"
        yield Violation("networkCapture", rule, "Send fewer filters, which match more.")
        return
    yield from _objects("networkCapture", filters)
    for index, members in enumerate(filters):
        if isinstance(members, dict):
            yield from _filter(f"networkCapture[{index}]", members)


def _filter(place: str, members: dict[str, Any]) -> Iterator[Violation]:
    yield from _unknown(place, members, ("filterType", "matchType", "value", "httpResponseBody"))
    if members.get("filterType") not in CAPTURE_TYPES:
        yield Violation(f"{place}.filterType", f"must be one of {', '.join(CAPTURE_TYPES)}", _ONE_OF_THESE)
    if members.get("matchType", CAPTURE_MATCHES[0]) not in CAPTURE_MATCHES:
        yield Violation(f"{place}.matchType", f"must be one of {', '.join(CAPTURE_MATCHES)}", _ONE_OF_THESE)
    yield from _text(f"{place}.value", members.get("value"), MAX_CAPTURE_LENGTH, _CAPTURE)
    is_exact = members.get("matchType", CAPTURE_MATCHES[0]) == "exact"
    if members.get("filterType") == "resourceType" and is_exact and members.get("value") not in CAPTURE_RESOURCES:
        yield Violation(f"{place}.value", f"must be one of {', '.join(CAPTURE_RESOURCES)}", _ONE_OF_THESE)
    yield from _switch(f"{place}.httpResponseBody", members.get("httpResponseBody", False))


def _experimental(members: dict[str, Any]) -> Iterator[Violation]:
    yield from _unknown("experimental", members, ("requestCookies", "responseCookies"))
    yield from _objects("experimental.requestCookies", members.get("requestCookies", []))
    yield from _switch("experimental.responseCookies", members.get("responseCookies", False))


def _markdown_options(options: dict[str, Any]) -> Iterator[Violation]:
    yield from _unknown(MARKDOWN_OPTIONS, options, ("content", "links", "images", "hidden", "extractFrom"))
    for name, choices in (("content", MARKDOWN_CONTENT), ("extractFrom", EXTRACT_FROM)):
        if options.get(name, choices[0]) not in choices:
            yield Violation(f"{MARKDOWN_OPTIONS}.{name}", f"must be one of {', '.join(choices)}", _ONE_OF_THESE)
    for name in ("links", "images", "hidden"):
        yield from _switch(f"{MARKDOWN_OPTIONS}.{name}", options.get(name, True))


def _min_probability(least: float) -> Iterator[Violation]:
    if not 0 <= least <= 1:
        yield Violation(MIN_PROBABILITY, f"must be 0 to 1, got {least}"[:120], "Write 0.5 for 50 %, for example.")


EXTENSION_FORMS: Final[dict[str, Callable[[Any], Iterator[Violation]]]] = {
    "session": _session,
    "sessionContext": _session_context,
    "sessionContextParameters": _session_context_parameters,
    "networkCapture": _network_capture,
    "experimental": _experimental,
    extract_rules.EXTRACT_RULES: extract_rules.faults_of,
    MARKDOWN_OPTIONS: _markdown_options,
    MIN_PROBABILITY: _min_probability,
}


def _unknown(place: str, members: dict[str, Any], known: tuple[str, ...]) -> Iterator[Violation]:
    for name in members:
        if name not in known:
            rule, remedy = f"is not a member of {place}", f"Its members are {', '.join(known)}."
            yield Violation(f"{place}.{name[:_SHOWN]}", rule, remedy)


def _objects(place: str, values: object) -> Iterator[Violation]:
    if not isinstance(values, list):
        yield Violation(place, "must be an array of objects", "Write [{...}] with the members of each.")
        return
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            yield Violation(f"{place}[{index}]", "must be an object", "Write {...} with its members.")


def _text(place: str, value: object, longest: int, remedy: str) -> Iterator[Violation]:
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        yield Violation(place, f"must be a string of 1 to {longest} characters", remedy)


def _switch(place: str, value: object) -> Iterator[Violation]:
    if not isinstance(value, bool):
        yield Violation(place, "must be true or false", "Write true or false, without quotes.")
