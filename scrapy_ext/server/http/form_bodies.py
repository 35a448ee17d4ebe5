"""Bodies that are forms: their fields, within limits."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import parse_qsl

from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.bodies import MIB, keep, turn, whole

MAX_FORM: Final = 4 * MIB
#: Bytes of a form with escaped bytes, which take three bytes each.
_MAX_BINARY_FORM: Final = 16 * MIB
_MAX_FIELDS: Final = 10_000
_MAX_PARTS: Final = 1000
#: Bytes of memory of a part beside its text, of a field, and of an escape while it is decoded.
_PART: Final = 4096
_FIELD: Final = 256
_ESCAPE: Final = 136
#: The start of a JSON object. In a form, a client escapes these characters.
_OBJECT: Final = re.compile(rb'\s*\{\s*"')


async def form(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form body (``application/x-www-form-urlencoded`` or ``multipart/form-data``) in their
    order."""
    data = await whole(request, MAX_FORM)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == schemas.MULTIPART:
        return await _multipart(request, data)
    if _OBJECT.match(data):
        raise refused("body", "is JSON, and must be a form", "Send application/x-www-form-urlencoded fields.")
    # A text with other than ASCII characters takes four bytes each; each escape is an object while it is decoded.
    keep(12 * len(data) + _FIELD * data.count(b"&") + _ESCAPE * data.count(b"%"))
    try:
        async with turn(request, len(data)):
            text = data.decode()
            return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise ContractError(
            [Violation("body", f"is not a form in UTF-8: {error}", "Send application/x-www-form-urlencoded fields.")]
        ) from None


async def _multipart(request: Request, data: bytes) -> list[tuple[str, str]]:
    keep(2 * len(data) + _PART * min(data.count(b"\n--"), _MAX_PARTS))

    async def body() -> AsyncGenerator[bytes]:
        yield data

    parser = MultiPartParser(request.headers, body(), max_files=0, max_fields=_MAX_PARTS, max_part_size=MAX_FORM)
    try:
        async with turn(request, len(data)):
            sent = await parser.parse()
            return [(name, text) for name, text in sent.multi_items() if isinstance(text, str)]
    except (MultiPartException, KeyError, ValueError) as error:
        rule = f"is not a form of texts: {getattr(error, 'message', error)}"
        raise refused(
            "body", rule, f"Send {schemas.MULTIPART} without files, or application/x-www-form-urlencoded."
        ) from None


async def binary_form(request: Request) -> list[tuple[bytes, bytes]]:
    """Return the fields of a form body whose values may be any bytes, in their order."""
    data = await whole(request, _MAX_BINARY_FORM)
    keep(3 * len(data) + _FIELD * data.count(b"&") + _ESCAPE * data.count(b"%"))
    try:
        # A thread, since megabytes of escapes take seconds.
        return await in_data_thread(_binary_fields, data)
    except ValueError as error:
        rule = f"is not a form: {error}"
        raise ContractError([Violation("body", rule, "Send multipart/form-data.")]) from None


def _binary_fields(data: bytes) -> list[tuple[bytes, bytes]]:
    # Latin-1 has a character for each byte.
    code = "latin-1"
    text = data.decode(code)
    pairs = parse_qsl(text, keep_blank_values=True, encoding=code, max_num_fields=_MAX_FIELDS)
    return [(name.encode(code), value.encode(code)) for name, value in pairs]
