"""The client of the extraction service: checks, waits its turn, sends, and tries again where that helps.

One extraction is a loop: wait for a turn, send, and on failure look up what went wrong. A limit pauses its scope
in the limiter, and the request queues there again; another failure that may pass is waited out by this request
alone. Between two attempts it holds no place of the limiter.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction import OUTPUTS, PROBLEM_TYPES, check, limits
from scrapy_ext.api.extraction.problems import Scope
from scrapy_ext.api.extraction.rules import body_too_large
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.budget import Budget, Prices, kind_of
from scrapy_ext.client.extraction.coalescing import Flights
from scrapy_ext.client.extraction.errors import (
    ExtractError,
    IncompleteAnswerError,
    OverMemoryError,
    UnexpectedAnswerError,
    UnreachableServiceError,
    error_of,
)
from scrapy_ext.client.extraction.ledger import Ledger, key_of
from scrapy_ext.client.extraction.limiter import Closing, Limiter
from scrapy_ext.client.extraction.memory import AnswerMemory, HeldResult, Hold, decoded_size, hold_of
from scrapy_ext.client.extraction.redact import redacted
from scrapy_ext.client.extraction.retry_policy import LONGEST_WAIT, NO_CONNECTION, RetryPolicy, row_of
from scrapy_ext.client.extraction.transport import Bounds, ExtractTransport, RawAnswer
from scrapy_ext.client.retry import repeat

_ANY: Final = Bounds()
#: What tells a result of the service from other JSON.
_MARKS: Final = ("url", "statusCode")
#: What an answer has when it was asked for. Headers may be missing: they are asked for with every page.
_RESULTS: Final = tuple(name for name in OUTPUTS if name != "httpResponseHeaders")


class RequestAttempt(msgspec.Struct, frozen=True):
    """One POST and what came of it: ``error`` is None for a success; ``wait`` is the number of seconds until the
    next attempt, None when there is none; ``paused``, by how many seconds a limit made a pause longer. ``kind`` is
    ``"http"`` or ``"browser"``; ``cost`` is what was billed, for all that is known."""

    domain: str
    kind: str
    seconds: float
    cost: float = 0.0
    error: ExtractError | None = None
    wait: float | None = None
    paused: float = 0.0


class _Call(msgspec.Struct, frozen=True):
    """How one extraction is made. Only those that are made alike are shared."""

    domain: str
    policy: RetryPolicy
    bounds: Bounds


class _Attempt(msgspec.Struct, frozen=True):
    result: dict[str, Any] | ExtractError
    kind: str
    sent: float
    seconds: float
    cost: float


class _Rounds:
    """How often in a row the service took no connection, by rounds: of what was sent together one counts."""

    def __init__(self) -> None:
        self._rounds = 0
        self._counted_at = float("-inf")

    def round(self, sent: float) -> int:
        """The number of the round that a request sent at this time belongs to, from 1."""
        if sent >= self._counted_at:
            self._rounds += 1
            self._counted_at = asyncio.get_running_loop().time()
        return self._rounds

    def end(self) -> None:
        """The service answered."""
        self._rounds = 0


class ExtractClient:
    """Extractions through one transport and one limiter.

    ``extra_fields`` admits fields that the service learned after this version; ``memory`` bounds the answers under
    way; ``observe`` is called after each POST, for stats.
    """

    def __init__(
        self,
        transport: ExtractTransport,
        limiter: Limiter,
        policy: RetryPolicy | None = None,
        *,
        extra_fields: Collection[str] = (),
        budget: Budget | None = None,
        prices: Prices | None = None,
        ledger: Ledger | None = None,
        memory: AnswerMemory | None = None,
        observe: Callable[[RequestAttempt], None] | None = None,
    ) -> None:
        self._memory = memory or AnswerMemory()
        self._transport = transport
        self._limiter = limiter
        self._policy = policy or RetryPolicy()
        self._extra_fields = extra_fields
        self._budget = budget or Budget()
        self._prices = prices or Prices()
        self._ledger = ledger
        self._observe = observe
        self._flights: Flights[Hashable, dict[str, Any]] = Flights(limiter.aside)
        self._rounds = _Rounds()
        #: Whether the service is known to be there: it has brought a result, or a problem of the contract.
        self.is_there = False
        #: How many extractions needed no POST: they had another's result, or an answer that a former run paid for.
        self.shared = 0
        self.reused = 0

    def __repr__(self) -> str:
        return f"<ExtractClient of {self._transport.url}>"

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    @property
    def extensions(self) -> frozenset[str] | None:
        """See :class:`ExtractTransport`."""
        return self._transport.extensions

    async def ask_extensions(self) -> None:
        """See :meth:`ExtractTransport.ask_extensions`."""
        await self._transport.ask_extensions()

    async def extract(
        self,
        fields: Mapping[str, Any],
        *,
        domain: str,
        policy: RetryPolicy | None = None,
        bounds: Bounds = _ANY,
        ledger_key: bytes = b"",
    ) -> dict[str, Any]:
        """The decoded body of the 200 answer to these fields. Identical requests under way share one POST.

        ``domain`` is what the limits of a site hold for; ``policy`` replaces the client's own;
        ``ledger_key`` is the request's in the ledger, if it is known. Raises
        :class:`ContractError` with every broken rule, before anything is sent,
        :class:`~scrapy_ext.client.extraction.errors.ExtractError`,
        :class:`~scrapy_ext.client.extraction.budget.OverBudgetError`, and
        :class:`~scrapy_ext.client.extraction.limiter.Closing`.
        """
        body = self.encoded(fields)
        self._prices.of(fields)  # Raises before anything waits.
        call = _Call(domain, policy or self._policy, bounds)
        self._limiter.take_up(domain)
        try:
            if not _is_repeatable(fields):
                return await self._extract(fields, body, call, ledger_key)
            result, was_shared = await self._flights.share(
                (body, call), lambda: self._extract(fields, body, call, ledger_key)
            )
        finally:
            self._limiter.put_down(domain)
        if not was_shared:
            return result
        self.shared += 1
        return await self._copy(result)

    async def _copy(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result of its own for another request. It shares its texts, and has its own bytes for what is Base64."""
        hold = await self._memory.hold()
        try:
            shared = hold_of(result)
            await hold.resize(shared.size if shared is not None else 0)
            return HeldResult(deepcopy(dict(result)), hold)
        finally:
            hold.end()

    async def _extract(self, fields: Mapping[str, Any], body: bytes, call: _Call, ledger_key: bytes) -> dict[str, Any]:
        if self._ledger is not None:
            ledger_key = ledger_key or key_of(fields)
            paid = await self._paid(ledger_key, fields)
            if paid is not None:
                self.reused += 1
                return paid
        failures: Counter[str] = Counter()
        wait: float | None = None

        async def once() -> dict[str, Any]:
            nonlocal wait
            # Until the service has answered once, nothing else is to go in the place of what fails.
            async with self._limiter.turn(call.domain, again=bool(failures) and self.is_there):
                attempt = await self._attempt(fields, body, call, ledger_key)
                if isinstance(attempt.result, dict):
                    self._succeeded(attempt, call.domain)
                    return attempt.result
                # Reported while it has its turn, also when it gives up: when the turn ends another request may take
                # it, and must not run into the same limit.
                wait = self._failed(attempt, attempt.result, call, failures)
            raise attempt.result

        async def failed(error: Exception) -> None:
            if not isinstance(error, ExtractError) or wait is None:
                raise error
            # A limit pauses its scope in the limiter, where the request waits.
            if error.scope is Scope.NONE:
                await self._limiter.sleep(call.domain, wait, lend=self.is_there)

        return await repeat(once, failed)

    async def _paid(self, key: bytes, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result that a former run paid for, if the ledger has it."""
        if self._ledger is None or not self._ledger.may_have(key):
            return None
        hold = await self._memory.hold()
        try:
            stored = await self._ledger.stored(key)
            result = None if stored is None else await _result(RawAnswer(200, {}, stored), fields, hold)
            return result if isinstance(result, dict) else None
        except OverMemoryError:
            return None
        finally:
            hold.end()

    async def _attempt(self, fields: Mapping[str, Any], body: bytes, call: _Call, ledger_key: bytes) -> _Attempt:
        """One POST, with what it costs."""
        hold = await self._memory.hold()
        try:
            return await self._held_attempt(fields, body, call, ledger_key, hold)
        finally:
            hold.end()

    async def _held_attempt(
        self, fields: Mapping[str, Any], body: bytes, call: _Call, ledger_key: bytes, hold: Hold
    ) -> _Attempt:
        price = self._prices.of(fields)
        await self._reserve(price, call.domain)
        ledger = self._ledger
        if ledger is not None:
            ledger.sent(ledger_key, price)
        sent = asyncio.get_running_loop().time()
        # What is cancelled on its way was sent.
        refund = 0.0
        answer: RawAnswer | None = None
        try:
            result: dict[str, Any] | ExtractError
            try:
                posted = await self._transport.post(body, call.bounds, hold)
                result = await _result(posted, fields, hold)
            except ExtractError as error:
                error.sent = redacted(fields)
                # Its traceback would keep this frame, with the answer, until the garbage collector comes.
                result = error.with_traceback(None)
            if not isinstance(result, ExtractError):
                answer = posted
            elif not result.ambiguous:
                refund = price
        finally:
            self._budget.settle(price, billed=not refund)
            if ledger is not None:
                if answer is not None:
                    ledger.answered(ledger_key, answer.body)
                else:
                    ledger.failed(ledger_key, refund)
        seconds = asyncio.get_running_loop().time() - sent
        return _Attempt(result, kind_of(fields), sent, seconds, price - refund)

    async def _reserve(self, price: float, domain: str) -> None:
        await self._budget.reserve(price)
        try:
            self._limiter.check_open(domain)  # It may have waited for others.
        except Closing:
            self._budget.give_back(price)
            raise

    def _succeeded(self, attempt: _Attempt, domain: str) -> None:
        self.is_there = True
        self._limiter.succeeded(domain)
        self._rounds.end()
        self._tell(RequestAttempt(domain, attempt.kind, attempt.seconds, attempt.cost))

    def _failed(self, attempt: _Attempt, error: ExtractError, call: _Call, failures: Counter[str]) -> float | None:
        """Seconds until the next attempt; None: there is none."""
        domain, row = call.domain, row_of(error)
        self.is_there |= error.type in PROBLEM_TYPES or isinstance(error, IncompleteAnswerError)
        policy = call.policy.later if self.is_there else call.policy
        failures[row] += 1
        if row == NO_CONNECTION:
            # All requests meet the same wall, so that its rounds are counted, not their attempts.
            rounds = self._rounds.round(attempt.sent)
            wait = policy.wait(error, rounds)
            if isinstance(error, UnreachableServiceError):
                error.rounds = rounds
        else:
            self._rounds.end()
            wait = policy.wait(error, failures[row])
        paused = 0.0
        if error.scope is not Scope.NONE:
            seconds = (error.retry_after if wait is None else wait) or 0.0
            paused = self._limiter.refused(error.scope, domain, min(seconds, LONGEST_WAIT), attempt.sent)
        self._tell(RequestAttempt(domain, attempt.kind, attempt.seconds, attempt.cost, error, wait, paused))
        return wait

    def _tell(self, attempt: RequestAttempt) -> None:
        if self._observe is not None:
            self._observe(attempt)

    def encoded(self, fields: Mapping[str, Any]) -> bytes:
        """The body that is sent for these fields. Raises :class:`ContractError`."""
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


def _is_repeatable(fields: Mapping[str, Any]) -> bool:
    """Whether doing it once or twice is the same to the site: then one POST can serve two requests."""
    return not fields.get("actions") and fields.get("httpRequestMethod", "GET") in ("GET", "HEAD", "OPTIONS", "TRACE")


async def _result(answer: RawAnswer, fields: Mapping[str, Any], hold: Hold) -> dict[str, Any] | ExtractError:
    """The decoded body, or the error that it stands for; raises :class:`OverMemoryError`."""
    await hold.resize(len(answer.body) + decoded_size(answer.body))
    if answer.status != 200:
        return error_of(answer.status, answer.headers, answer.body, redacted(fields))
    try:
        decoded = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _not_a_result(answer, fields, f"a body that is not JSON ({error})")
    if not isinstance(decoded, dict):
        return _not_a_result(answer, fields, "JSON that is not an object")
    missing = [name for name in _RESULTS if fields.get(name) and decoded.get(name) is None]
    if missing:
        made = UnexpectedAnswerError if decoded.keys().isdisjoint(_MARKS) else IncompleteAnswerError
        return _not_a_result(answer, fields, f"an answer without {' and '.join(missing)}", made)
    # What the text of the body took is what the body of the response will take.
    return HeldResult(decoded, hold)


def _not_a_result(
    answer: RawAnswer,
    fields: Mapping[str, Any],
    fault: str,
    made: type[UnexpectedAnswerError] = UnexpectedAnswerError,
) -> ExtractError:
    kind = answer.headers.get("Content-Type", "no content type")
    beginning = " ".join(answer.body[:400].decode("utf-8", "replace").split())[:100]
    detail = f"{fault}, {kind}: {beginning or 'an empty body'}"
    return made(detail, status=answer.status, sent=redacted(fields))
