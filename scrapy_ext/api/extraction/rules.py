"""The rules of ``POST /extract`` (extraction-api.md, Rules that hold for a request; Limits).

Both sides call :func:`check`, the client before it sends and the server before it works, and report all violations at
once. Malformed input has status 400, well-formed but incompatible fields 422. :mod:`.forms` checks single fields.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction import fields
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES, faults_of_kind
from scrapy_ext.api.extraction.fields import (
    EXTRACT_TYPES,
    FIELDS,
    MADE_OF_PAGE,
    OF_KIND,
    OUTPUTS,
    PAGE_OPTIONS,
    JsonType,
    source_of,
    sources_in_options,
)
from scrapy_ext.api.extraction.forms import form_of, shown
from scrapy_ext.api.extraction.problems import Problem
from scrapy_ext.api.extraction.records import ExtractRequest
from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.repeated_names import repeated_names
from scrapy_ext.api.violations import ContractError, Violation, refused

#: Fields that only an HTTP request for the body accepts (rule 9).
BODY_ONLY: Final = (
    "httpRequestMethod",
    "httpRequestBody",
    "httpRequestText",
    "customHttpRequestHeaders",
    "omitHttpRequestHeaders",
)
#: Fields that need a browser and exclude ``httpResponseBody`` (rule 7).
BROWSER_ONLY: Final = (
    "browserHtml",
    "screenshot",
    "screenshotOptions",
    "actions",
    "includeIframes",
    "includeShadowRoots",
    "viewport",
    "networkCapture",
)

#: Maximum violations reported in an answer.
MAX_REPORTED: Final = 20
#: Maximum violations searched in one field, and maximum unknown fields: a body has room for a million of each.
MAX_VIOLATIONS: Final = 100
_SWITCHES: Final = frozenset(name for name, field in FIELDS.items() if field.type is JsonType.BOOLEAN)
#: Other fields of most requests. In a combination it only counts whether they are set.
_BY_PRESENCE: Final = frozenset({"jobId", "customHttpRequestHeaders", "requestHeaders"})
_LONGEST_NAME: Final = max(map(len, FIELDS))


def check(body: Mapping[str, Any], *, extra_fields: Collection[str] = (), strict: bool = False) -> list[Violation]:
    """Return every rule that a decoded request body breaks.

    ``extra_fields`` admits fields that the service supports beyond this version of the contract, unchecked. ``strict``
    refuses the extensions of the included service that are not among them.
    """
    if strict:
        return [*check(body, extra_fields=extra_fields), *_beyond_contract(body, extra_fields)]
    present = _present(body)
    if present is None:
        return _check(body, extra_fields)
    # Most requests have the same fields each time, so that the result of their combination is cached.
    return [*form_of(FIELDS["url"], body["url"]), *_faults_of(present)]


def _present(body: Mapping[str, Any]) -> frozenset[tuple[str, bool]] | None:
    """Return the fields besides the URL, with whether each is set. None unless all are well-formed, and nothing else of
    them counts in a combination."""
    present = []
    for name, value in body.items():
        if value is True or value is False:
            if name not in _SWITCHES:
                return None
            present.append((name, value))
        elif name in _BY_PRESENCE and not any(form_of(FIELDS[name], value)):
            present.append((name, _is_set(body, name)))
        elif name != "url":
            return None
    return frozenset(present) if "url" in body else None


@lru_cache(maxsize=1024)
def _faults_of(present: frozenset[tuple[str, bool]]) -> tuple[Violation, ...]:
    """Return the violations of a combination of well-formed fields, given by whether each is set."""
    body = {"url": "https://example.com/", **dict(sorted(present))}
    return (*_some_output(body), *(fault for rule in _COMBINATIONS for fault in rule(body)))


def _check(body: Mapping[str, Any], extra_fields: Collection[str]) -> list[Violation]:
    violations = list(_unknown_fields(body, extra_fields))
    well_formed: dict[str, Any] = {}
    for name, value in body.items():
        field = FIELDS.get(name)
        if field is None:
            continue
        faults = list(islice(form_of(field, value), MAX_VIOLATIONS))
        violations.extend(faults)
        if not faults:
            well_formed[name] = value
    if "url" not in body:
        violations.append(Violation("url", "is required", "Send the absolute URL of the page."))
    violations.extend(_some_output(body))
    for rule in _COMBINATIONS:
        violations.extend(rule(well_formed))
    return violations


def parse(body: bytes, *, extra_fields: Collection[str] = ()) -> ExtractRequest:
    """Decode and check a request body.

    ``echo_data`` is the text as sent, as ``msgspec.Raw``, so that its numbers keep their digits. Raises
    :class:`InvalidJsonError` for a body that is not JSON, and
    :class:`~scrapy_ext.api.violations.ContractError` with every violation otherwise.
    """
    if len(body) > fields.MAX_BODY_BYTES:
        raise ContractError([body_too_large(len(body))])
    decoded = decode(body)
    if not isinstance(decoded, dict):
        raise refused("request body", "must be a JSON object", 'Send {"url": ..., ...}.')
    checked = _without_echo(body) if "echoData" in decoded else body
    violations = [*repeated_fields(checked), *check(decoded, extra_fields=extra_fields)]
    if violations:
        raise ContractError(violations)
    request = msgspec.convert({k: v for k, v in decoded.items() if v is not None}, ExtractRequest)
    if "echoData" in decoded:
        request.echo_data = echo_data(body)
    return request


def body_too_large(size: int) -> Violation:
    """Return the violation of rule 12 for an encoded body of ``size`` bytes."""
    return Violation(
        "request body",
        f"must be at most {fields.MAX_BODY_BYTES} bytes (5 MiB), got {size}",
        "Send less in httpRequestBody, echoData or tags.",
        413,
    )


def too_many_values(memory: int) -> Violation:
    """Return the violation of a body that decodes to more than the server's ``memory`` bytes for requests."""
    return Violation(
        "request body",
        f"takes more memory than the {memory // (1024 * 1024)} MiB that this server has for requests",
        "Send fewer values in it, or start the server with a larger --memory.",
        413,
    )


def problem_of(error: ContractError) -> Problem:
    """Return the problem for these violations, with at most :data:`MAX_REPORTED` of them; malformed input comes
    first."""
    kind = {413: "/request/too-large", 422: "/request/unprocessable"}.get(error.status, "/request/invalid")
    return Problem.of(kind, error.summary(MAX_REPORTED))


def _beyond_contract(body: Mapping[str, Any], admitted: Collection[str]) -> Iterator[Violation]:
    remedy = "Remove it, or set EXTRACT_API_STRICT = False for a service that has it."
    extension = "is an extension of the included service, which EXTRACT_API_STRICT excludes"
    undefined = "is not in the document of the API, to which EXTRACT_API_STRICT keeps"
    for name in (*fields.EXTENSIONS, *fields.UNDEFINED_OPTIONS):
        if name in body and name not in admitted:
            yield Violation(name, extension if name in fields.EXTENSIONS else undefined, remedy)


def _unknown_fields(body: Mapping[str, Any], extra_fields: Collection[str]) -> Iterator[Violation]:
    unknown = [name for name in body if name not in FIELDS and name not in extra_fields]
    for name in unknown[:MAX_VIOLATIONS]:
        # Searching for a similar name takes time in proportion to its length.
        close = _similar(name) if len(name) < 2 * _LONGEST_NAME else []
        remedy = f"Did you mean {close[0]}?" if close else "Remove it, or see the list of fields."
        yield Violation(shown(name), "is not a field of an extraction request", remedy)


def _similar(name: str) -> list[str]:
    from difflib import get_close_matches  # rarely needed

    return get_close_matches(name, FIELDS, n=1, cutoff=0.6)


# ── decoding of a body from JSON, with the position of a syntax error (rule 13) ──

#: Depth reported for a body that is too deep for the decoder, whose own limit depends on its caller.
_DEEP: Final = 500
_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
#: JSON allows numbers of any size; floats do not.
_NUMBERS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+\-]*', re.DOTALL)
_BYTE: Final = re.compile(r" ?\(byte [0-9]+\)")


class InvalidJsonError(ValueError):
    """A request body is not JSON; the message gives the position of the error."""


class _Echo(msgspec.Struct):
    echoData: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815 - the member's name


_decode: Final = decoder(Any)
_ECHO: Final = msgspec.json.Decoder(_Echo)


def decode(body: bytes) -> Any:
    """Decode a JSON text; raises :class:`InvalidJsonError`."""
    try:
        return _decode(body)
    except RecursionError:
        raise InvalidJsonError(_too_deep(body)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidJsonError(_message(body, str(error))) from None


def repeated_fields(body: bytes) -> list[Violation]:
    """Return the names that an object of a JSON text has more than once, except in ``echoData``, which is returned as
    it was sent."""
    try:
        return list(repeated_names(body.decode(), MAX_VIOLATIONS, verbatim="echoData"))
    except RecursionError:
        raise InvalidJsonError(_too_deep(body)) from None


def _without_echo(body: bytes) -> bytes:
    """Return the body with null for an object or array in ``echoData``.

    It may have megabytes of names. Reading them for repetitions takes many times as long as decoding them.
    """
    echo = bytes(echo_data(body))
    before, _, behind = body.partition(echo)
    # One that is in the body once is the value of the field. Other values, such as ":", may be found before it.
    return before + b"null" + behind if echo.startswith((b"{", b"[")) and echo not in behind else body


def echo_data(body: bytes) -> msgspec.Raw:
    """Return ``echoData`` of a JSON object verbatim: numbers keep all their digits."""
    return _ECHO.decode(body).echoData


def _message(body: bytes, fault: str) -> str:
    """Return the error of a text with its position."""
    if body.startswith(BOM_UTF8):
        return "the body begins with a byte order mark (byte 0); send UTF-8 without one"
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        return f"the body is not UTF-8 at byte {error.start}"
    try:
        json.loads(text, parse_int=float)
    except json.JSONDecodeError as error:
        return f"{error.msg.removesuffix(' at')} at {_place(text, error.pos)}"
    except RecursionError:
        return _too_deep(body)
    # Python's decoder accepts NaN and Infinity, numbers out of range, and lone surrogates.
    at = re.search(r"\(byte ([0-9]+)\)", fault)
    offset = int(at[1]) if at else _number_out_of_range(body)
    return f"{_BYTE.sub('', fault.partition(' - at')[0])} at {_place(text, len(body[:offset].decode(errors='ignore')))}"


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"line {line}, column {column} (character {position})"


def _number_out_of_range(body: bytes) -> int:
    """Return the offset of the first number that overflows a float, else the length."""
    for match in _NUMBERS.finditer(body):
        if match[0][:1] != b'"' and abs(float(match[0])) == float("inf"):
            return match.start()
    return len(body)


def _too_deep(body: bytes) -> str:
    depth = 0
    for match in _BRACKETS.finditer(body):
        if match[0] in b"[{":
            depth += 1
            if depth > _DEEP:
                return f"the body is nested over {_DEEP} levels deep at byte {match.start()}"
        elif match[0] in b"]}":
            depth -= 1
    return f"the body is nested over {_DEEP} levels deep"


# ── combinations of fields ──

_Fields = Mapping[str, Any]


def _some_output(body: _Fields) -> Iterator[Violation]:
    """Rule 1. An output of a wrong type counts too; its type is a violation of its own."""
    if not any(body.get(name) for name in OUTPUTS):
        yield _incompatible(
            "request", f"must request at least one output: {', '.join(OUTPUTS)}", "Set one of them to true."
        )


def _serp_alone(fields: _Fields) -> Iterator[Violation]:
    """Rule 5, and the part of rule 8 about ``serp``."""
    if fields.get("serp"):
        others = [name for name in fields if name not in ("url", "serp", "serpOptions")]
        yield from _each_set(fields, others, "cannot be combined with serp", "Send serp with url and serpOptions only.")


def _one_extract_type(fields: _Fields) -> Iterator[Violation]:
    """Rule 6."""
    requested = [name for name in EXTRACT_TYPES if fields.get(name)]
    for name in requested[1:]:
        yield _incompatible(
            name, f"cannot be combined with {requested[0]}", "Request one kind of automatic extraction at a time."
        )


def _body_or_browser(fields: _Fields) -> Iterator[Violation]:
    """Rules 3, 4 and 7."""
    if fields.get("serp"):
        return
    made = next((name for name in MADE_OF_PAGE if fields.get(name)), None)
    by_http = source_of(fields) == "httpResponseBody"
    if fields.get("httpResponseBody"):
        rule = "cannot be combined with httpResponseBody"
        yield from _each_set(fields, BROWSER_ONLY, rule, "Send two requests, or drop one.")
        yield from _each_set(fields, ("requestHeaders",), rule, "Use customHttpRequestHeaders.")
        if made is not None and not by_http:
            yield _incompatible(
                made,
                "is extracted from a browser request, which httpResponseBody cannot be combined with",
                'Add "extractFrom": "httpResponseBody".',
            )
    elif made is not None and by_http:
        rule = "needs a browser request, and extractFrom chooses an HTTP request"
        yield from _each_set(fields, BROWSER_ONLY, rule, "Leave out extractFrom.")


def _one_source(fields: _Fields) -> Iterator[Violation]:
    """``extractFrom`` and the options of the requested outputs must agree: there is one page."""
    if fields.get("serp"):
        return
    beside, chosen = fields.get("extractFrom"), source_of(fields)
    if beside is not None and chosen != beside:
        yield _incompatible(
            "extractFrom", f"is {beside}, but the options of the kind have {chosen}", "Send one of the two."
        )
    for name, other in sources_in_options(fields).items():
        if other != chosen:
            place = f"{PAGE_OPTIONS[name]}.extractFrom"
            yield _incompatible(place, f"is {other}, but that of the other output is {chosen}", "Send one of the two.")


def _body_only(fields: _Fields) -> Iterator[Violation]:
    """Rule 9."""
    if not fields.get("httpResponseBody") and not fields.get("serp"):
        rule = "is valid only together with httpResponseBody"
        yield from _each_set(fields, BODY_ONLY, rule, "Request httpResponseBody, or leave it out.")


def _one_request_body(fields: _Fields) -> Iterator[Violation]:
    """Rule 10."""
    if _is_set(fields, "httpRequestBody") and _is_set(fields, "httpRequestText"):
        yield _incompatible("httpRequestText", "cannot be combined with httpRequestBody", "Send one of the two.")


def _redirects_by_http(fields: _Fields) -> Iterator[Violation]:
    """Only HTTP requests can refuse redirects: a browser and the engine of ``serp`` follow them."""
    if fields.get("followRedirect") is not False:
        return
    by_http = source_of(fields) == "httpResponseBody" or not any(fields.get(name) for name in MADE_OF_PAGE)
    if (
        fields.get("serp")
        or any(fields.get(name) for name in ("browserHtml", "screenshot"))
        or not (by_http or fields.get("httpResponseBody"))
    ):
        yield _incompatible(
            "followRedirect",
            "can be false only in an HTTP request; a browser always follows redirects",
            "Leave it out, or request httpResponseBody.",
        )


def _pages_only(fields: _Fields) -> Iterator[Violation]:
    """``javascript``, also ``false``, ``actions`` and ``networkCapture`` are about a page in a browser."""
    if fields.get("serp") or _is_by_browser(fields):
        return
    rule, remedy = "is for browser requests, and this is an HTTP request", "Leave it out, or request browserHtml."
    if "javascript" in fields:
        yield _incompatible("javascript", rule, remedy)
    # Beside these two, the rule of all fields of a browser refuses them.
    if not fields.get("httpResponseBody") and source_of(fields) != "httpResponseBody":
        yield from _each_set(fields, ("actions", "networkCapture"), rule, remedy)


def _is_by_browser(fields: _Fields) -> bool:
    if fields.get("browserHtml") or fields.get("screenshot"):
        return True
    makes = any(fields.get(name) for name in MADE_OF_PAGE)
    return makes and not fields.get("httpResponseBody") and source_of(fields) != "httpResponseBody"


def _one_session(fields: _Fields) -> Iterator[Violation]:
    """A request is in one session; a session of the caller's is begun by the caller's own requests."""
    if _is_set(fields, "session") and _is_set(fields, "sessionContext"):
        yield _incompatible("sessionContext", "cannot be combined with session", "Send one of the two.")
    elif _is_set(fields, "sessionContextParameters") and not _is_set(fields, "sessionContext"):
        yield _incompatible(
            "sessionContextParameters",
            "is valid only together with sessionContext",
            "Send a sessionContext, or begin the session by a request of its own.",
        )


def _cookies_in_one_place(fields: _Fields) -> Iterator[Violation]:
    experimental = fields.get("experimental") or {}
    if experimental.get("requestCookies") and _is_set(fields, "requestCookies"):
        yield _incompatible(
            "experimental.requestCookies", "cannot be combined with requestCookies", "Send one of the two."
        )


def _with_something_extracted(fields: _Fields) -> Iterator[Violation]:
    """``customAttributes``, ``fieldSources``, ``extractRules`` and ``minProbability`` require automatic extraction."""
    kinds = [kind for kind in EXTRACT_TYPES if fields.get(kind)]
    if not kinds:
        # With a search, they are refused as well.
        remedy = f"Request one of {', '.join(kind for kind in EXTRACT_TYPES if kind != 'serp')}."
        yield from _each_set(fields, OF_KIND, "needs a kind of automatic extraction", remedy)
    elif _is_set(fields, EXTRACT_RULES):
        for fault in islice(faults_of_kind(kinds[0], fields[EXTRACT_RULES]), MAX_VIOLATIONS):
            yield _incompatible(fault.field, fault.rule, fault.remedy)


_COMBINATIONS: Final = (
    _serp_alone,
    _one_extract_type,
    _body_or_browser,
    _one_source,
    _body_only,
    _one_request_body,
    _redirects_by_http,
    _pages_only,
    _one_session,
    _cookies_in_one_place,
    _with_something_extracted,
)


def _incompatible(field: str, rule: str, remedy: str) -> Violation:
    return Violation(field, rule, remedy, 422)


def _each_set(fields: _Fields, names: Collection[str], rule: str, remedy: str) -> Iterator[Violation]:
    """Yield the violation of a rule by each of these fields that is set."""
    yield from (_incompatible(name, rule, remedy) for name in names if _is_set(fields, name))


def _is_set(fields: _Fields, name: str) -> bool:
    """Return true unless the value requests nothing: None, ``false``, an empty array or object."""
    return fields.get(name) not in (None, False, [], {})
