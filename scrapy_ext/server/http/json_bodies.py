"""JSON of request bodies and of texts that somebody wrote: decoded within limits.

Values are counted against the memory of the process before they are decoded, and until the request ends.
"""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import msgspec
from starlette.requests import Request

from scrapy_ext.api.json_decoder import LINE, VALUE, decoder, values_in, weight
from scrapy_ext.api.repeated_names import repeated_names
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.bodies import (
    MAX_BODY,
    MAX_LINES,
    MIB,
    blocks,
    check_alone,
    gathered,
    keep,
    turn,
    whole,
)
from scrapy_ext.server.http.request_context import context_of

#: Bytes of one JSON document, which is decoded at once. Stored values have up to 1 MiB, or 6 MiB with escapes.
MAX_DOCUMENT: Final = 8 * MIB
#: Commas, colons and opening brackets of one JSON document of over :data:`_PLAIN` bytes: decoding so many takes a fifth
#: of a second, in which the server does nothing else. Shorter documents take less.
MAX_VALUES: Final = 500_000
_PLAIN: Final = MIB
#: Marks that some editors and shells write before a text.
_MARKS: Final = (BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)
#: Repeated names that an error has.
_MOST_REPEATED: Final = 20

Fields = dict[str, Any]

_decode_object: Final = decoder(dict[str, Any])
_decode_any: Final = decoder(Any)


def record(line: bytes, number: int) -> dict[str, Any]:
    """Return the JSON object of a line; raises ``ContractError``."""
    try:
        found: dict[str, Any] = _decode_object(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(f"line {number}", "a JSON object", error, line) from None
    return found


def value(data: bytes, place: str = "body") -> Any:
    """Return any JSON value; raises ``ContractError``."""
    _check_values(values_in(data), len(data), place)
    keep(weight(data))
    return _decoded(data, place)


def given(data: bytes, place: str) -> Any:
    """Return a JSON value that somebody wrote; raises ``ContractError``, also for a name that an object has twice."""
    found = value(data, place)
    _check_names(data, place)
    return found


def _check_names(data: bytes, place: str = "") -> None:
    try:
        violations = list(repeated_names(data.decode(), _MOST_REPEATED, place=place))
    except RecursionError as error:
        raise not_json(place or "body", "JSON", error, data) from None
    if violations:
        raise ContractError(violations)


def _check_values(values: int, size: int, place: str) -> None:
    if values > MAX_VALUES and size > _PLAIN:
        raise ContractError([Violation(place, f"has over {MAX_VALUES} values", "Send less of it.", 413)])


def _decoded(data: bytes, place: str) -> Any:
    try:
        return _decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(place, "JSON", error, data) from None


#: The default of ``empty`` in :func:`document`: a body is required.
_REQUIRED: Final = object()


async def document(
    request: Request, limit: int = MAX_DOCUMENT, *, empty: object = _REQUIRED, by_hand: bool = False
) -> Any:
    """Return the JSON value of a body; ``empty`` for an empty body. ``by_hand``: somebody may have written it, so that
    a name which an object has twice is refused."""
    context, values, size = context_of(request.scope), 0, 0

    def count(piece: bytes) -> None:
        nonlocal values, size
        values += values_in(piece)
        size += len(piece)
        check_alone(values * VALUE, context)
        _check_values(values, size, "body")

    data = await whole(request, limit, count)
    if empty is not _REQUIRED and (not data or data.isspace()):
        return empty
    async with turn(request, len(data)):
        keep(weight(data, values))
        found = _decoded(data, "body")
        if by_hand:
            _check_names(data)
        return found


async def fields_of(
    request: Request,
    example: str,
    limit: int = MAX_DOCUMENT,
    *,
    empty: object = _REQUIRED,
    by_hand: bool = False,
) -> Fields:
    """Return the JSON object of a body; raises ``ContractError``, which shows the ``example``."""
    found = await document(request, limit, empty=empty, by_hand=by_hand)
    if not isinstance(found, dict):
        raise refused("body", "must be a JSON object", f"Write {example}.")
    return found


async def known_fields(request: Request, known: Iterable[str], example: str, limit: int) -> Fields:
    """Return the JSON object of a body; raises ``ContractError`` for one with other fields than the known ones."""
    fields, known = await fields_of(request, example, limit, by_hand=True), list(known)
    for name in fields:
        if name not in known:
            raise refused(name[:60], "is not a field of this request", f"The fields are {', '.join(known)}.")
    return fields


async def flag_of(request: Request, name: str, limit: int) -> bool:
    """Return the one field of a body, which is true or false; raises ``ContractError``."""
    example = f'{{"{name}": true}}'
    value = (await known_fields(request, [name], example, limit)).get(name)
    if not isinstance(value, bool):
        raise refused(name, "must be true or false", f"Write {example}.")
    return value


def not_json(place: str, wanted: str, error: Exception, data: bytes) -> ContractError:
    """Return the error of a text that cannot be decoded."""
    reason, remedy = str(error), "Send one JSON value per line, in UTF-8."
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    elif data.startswith(_MARKS):
        reason, remedy = "it begins with a byte order mark (BOM)", "Send UTF-8 without the mark."
    return ContractError([Violation(place, f"is not {wanted}: {reason}", remedy)])


async def objects(
    request: Request, limit: int = MAX_BODY, *, most: int = MAX_LINES
) -> list[tuple[int, bytes, dict[str, Any]]]:
    """Return line number, line and value of the JSON objects of a body, one per line and at most ``most``."""
    found: list[tuple[int, bytes, dict[str, Any]]] = []
    context = context_of(request.scope)
    async for block in blocks(request, limit):
        keep(len(block.data) + weight(block.data) + LINE * len(block.lines), context)
        async with turn(request, len(block.data)):
            found += [
                (number, line, record(line, number))
                for number, line in enumerate(block.lines, block.first)
                if line.strip()
            ]
        if len(found) > most:
            raise Refusal(413, f"The body has over {most} lines. Send it in several requests.")
    return found


def strings(request: Request) -> AsyncIterator[list[str]]:
    """Yield the strings of a body in groups: each line is a JSON string or an array of strings."""
    return gathered(request, _strings)


def _strings(line: bytes, number: int) -> list[str]:
    decoded = _decoded(line, f"line {number}")
    members = decoded if isinstance(decoded, list) else [decoded]
    if not all(isinstance(member, str) for member in members):
        raise ContractError(
            [Violation(f"line {number}", "must be a string or an array of strings", 'Write "a" or ["a","b"].')]
        )
    return members
