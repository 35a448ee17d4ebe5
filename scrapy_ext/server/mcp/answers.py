"""Readers of the platform's answers for tools."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from scrapy_ext.server.mcp.services import ApiAnswer, ApiError

T = TypeVar("T")


def decoded(answer: ApiAnswer, kind: type[T]) -> T:
    """Return a JSON answer; raises :class:`ApiError`."""
    if not answer.is_whole:
        raise ApiError(f"The answer has over {len(answer.body)} bytes, which is more than a tool reads.")
    return decoded_json(answer.body, kind)


def decoded_json(data: bytes, kind: type[T]) -> T:
    """Return JSON of the platform; raises :class:`ApiError`."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ApiError("The platform returned another answer than the one expected.") from None


def lines_of(answer: ApiAnswer) -> list[bytes]:
    """Return the whole lines of an answer in JSON lines."""
    lines = answer.body.split(b"\n")
    if not answer.is_whole:
        lines.pop()
    return [line for line in lines if line.strip()]
