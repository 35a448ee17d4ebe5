"""Decoding of request bodies from JSON, with the position of a syntax error (rule 13)."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from typing import Any, Final

import msgspec

from scrapy_ext.api.json_decoder import decoder

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
