"""The client of the extraction service: checks, waits its turn, sends, and tries again where that helps.

One extraction is a loop: wait for a turn, send, and on failure look up what went wrong. A limit pauses its scope
in the limiter, and the request queues there again; another failure that may pass is waited out by this request
alone. Between two attempts it holds no place of the limiter.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from scrapy_ext.api.extraction import check, limits
from scrapy_ext.api.extraction.problems import Scope
from scrapy_ext.api.extraction.rules import body_too_large
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.errors import ExtractError, UnexpectedAnswerError, error_of
from scrapy_ext.client.extraction.limiter import Limiter
from scrapy_ext.client.extraction.redact import redacted
from scrapy_ext.client.extraction.retry import LONGEST_WAIT, RetryPolicy, row_of
from scrapy_ext.client.extraction.transport import ExtractTransport, RawAnswer


class Attempt(msgspec.Struct, frozen=True):
    """One POST and what came of it: ``error`` is None for a success; ``wait`` is the number of seconds until the
    next attempt, None when there is none. ``number`` counts from 1."""

    domain: str
    number: int
    seconds: float
    error: ExtractError | None = None
    wait: float | None = None


class ExtractClient:
    """Extractions through one transport and one limiter.

    ``extra_fields`` admits fields that the service learned after this version; ``observe`` is called after each
    POST, for stats.
    """

    def __init__(
        self,
        transport: ExtractTransport,
        limiter: Limiter,
        policy: RetryPolicy | None = None,
        *,
        extra_fields: Collection[str] = (),
        observe: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._transport = transport
        self._limiter = limiter
        self._policy = policy or RetryPolicy()
        self._extra_fields = extra_fields
        self._observe = observe

    def __repr__(self) -> str:
        return f"<ExtractClient of {self._transport.url}>"

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def extract(
        self, fields: Mapping[str, Any], *, domain: str, policy: RetryPolicy | None = None
    ) -> dict[str, Any]:
        """The decoded body of the 200 answer to these fields.

        ``domain`` is what the limits of a site hold for; ``policy`` replaces the client's own for this request.
        Raises :class:`ContractError` with every broken rule, before anything is sent, and
        :class:`~scrapy_ext.client.extraction.errors.ExtractError`.
        """
        body = self._encoded(fields)
        policy = policy or self._policy
        failures: Counter[str] = Counter()
        while True:
            async with self._limiter.turn(domain):
                started = time.monotonic()
                result = await self._attempt(fields, body)
                seconds = time.monotonic() - started
                if isinstance(result, dict):
                    self._tell(Attempt(domain, failures.total() + 1, seconds))
                    return result
                failures[row_of(result)] += 1
                wait = policy.wait(result, failures[row_of(result)])
                self._tell(Attempt(domain, failures.total(), seconds, result, wait))
                # Also when this request gives up: the others must not run into the same limit. It is told before
                # the turn ends, so that none of them takes the place.
                self._pause(result, domain, wait)
            if wait is None:
                raise result
            if result.scope is Scope.NONE:
                await asyncio.sleep(wait)

    def _tell(self, attempt: Attempt) -> None:
        if self._observe is not None:
            self._observe(attempt)

    def _pause(self, error: ExtractError, domain: str, wait: float | None) -> None:
        seconds = error.retry_after if wait is None else wait
        if error.scope is not Scope.NONE and seconds is not None:
            self._limiter.pause(error.scope, domain, min(seconds, LONGEST_WAIT))

    async def _attempt(self, fields: Mapping[str, Any], body: bytes) -> dict[str, Any] | ExtractError:
        try:
            answer = await self._transport.post(body)
        except ExtractError as error:
            error.sent = redacted(fields)
            return error
        return _result(answer, fields)

    def _encoded(self, fields: Mapping[str, Any]) -> bytes:
        violations = check(fields, extra_fields=self._extra_fields)
        if violations:
            raise ContractError(violations)
        try:
            body = msgspec.json.encode(fields)
        except (TypeError, ValueError, RecursionError) as error:
            raise ContractError(
                [Violation("request", f"cannot be written as JSON: {error}", "Use strings, numbers, lists and dicts.")]
            ) from None
        if len(body) > limits.MAX_BODY_BYTES:
            raise ContractError([body_too_large(len(body))])
        return body


def _result(answer: RawAnswer, fields: Mapping[str, Any]) -> dict[str, Any] | ExtractError:
    if answer.status != 200:
        return error_of(answer.status, answer.headers, answer.body, redacted(fields))
    try:
        decoded = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError) as error:
        return _not_a_result(answer, fields, f"200 with a body that is not JSON ({error})")
    if not isinstance(decoded, dict):
        return _not_a_result(answer, fields, "200 with JSON that is not an object")
    return decoded


def _not_a_result(answer: RawAnswer, fields: Mapping[str, Any], fault: str) -> ExtractError:
    kind = answer.headers.get("Content-Type", "no content type")
    beginning = " ".join(answer.body[:400].decode("utf-8", "replace").split())[:100]
    detail = f"{fault}, {kind}: {beginning or 'an empty body'}"
    return UnexpectedAnswerError(detail, status=answer.status, sent=redacted(fields))
