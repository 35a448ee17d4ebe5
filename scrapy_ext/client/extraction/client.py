"""The client of the extraction service: checks, limits, sends and retries.

One extraction is a loop: wait for a permit of the limiter, send, and on failure look up the retry policy. A limit
pauses its scope in the limiter, where the request queues again; after another temporary failure this request alone
waits. Between two attempts it has no permit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from copy import deepcopy
from typing import Any, Final, TypeVar

import msgspec

from scrapy_ext.api.extraction import OUTPUTS, PROBLEM_TYPES, check
from scrapy_ext.api.extraction.fields import LEFT_OUT, MAX_BODY_BYTES, MIN_PROBABILITY, kind_of
from scrapy_ext.api.extraction.problems import Scope
from scrapy_ext.api.extraction.rules import body_too_large
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.budget import Budget, Prices
from scrapy_ext.client.extraction.errors import (
    AccountSuspendedError,
    ExtractError,
    IncompleteAnswerError,
    KeyRefusedError,
    OverMemoryError,
    UnexpectedAnswerError,
    UnreachableServiceError,
    error_of,
    redacted,
)
from scrapy_ext.client.extraction.ledger import Ledger, key_of
from scrapy_ext.client.extraction.limiter import Closing, Limiter
from scrapy_ext.client.extraction.memory import AnswerMemory, HeldResult, Hold, decoded_size, hold_of, seconds_of
from scrapy_ext.client.extraction.retry_policy import NO_CONNECTION, ConnectionRounds, Failures, RetryPolicy, pause_of
from scrapy_ext.client.extraction.transport import UNBOUNDED, Bounds, ExtractTransport, RawAnswer
from scrapy_ext.telemetry.spans import Span, client_span

T = TypeVar("T")

#: Statuses of an address without the operation.
_NO_SUCH_PATH: Final = (404, 405)

#: Members that distinguish a result of the service from other JSON.
_MARKS: Final = ("url", "statusCode")
#: Outputs that an answer has if they were requested. Headers may be missing: they are requested with every page.
_RESULTS: Final = tuple(name for name in OUTPUTS if name != "httpResponseHeaders")


class RequestAttempt(msgspec.Struct, frozen=True):
    """One POST and its outcome. ``kind``: ``"http"`` or ``"browser"``; ``cost``: the billed amount, as far as it is
    known; ``error``: None for a success; ``wait``: seconds until the next attempt, None: there is none; ``paused``:
    seconds by which a limit extended a pause."""

    domain: str
    kind: str
    seconds: float
    cost: float = 0.0
    error: ExtractError | None = None
    wait: float | None = None
    paused: float = 0.0


class _Call(msgspec.Struct, frozen=True):
    """Conditions of an extraction. Coalesced requests have equal ones."""

    domain: str
    #: ``"http"`` or ``"browser"``.
    kind: str
    #: Presumed cost of an attempt.
    price: float
    policy: RetryPolicy
    bounds: Bounds


class _Attempt(msgspec.Struct, frozen=True):
    result: dict[str, Any] | ExtractError
    kind: str
    sent: float
    seconds: float
    cost: float


class Coalescing:
    """Identical work under way, by a key: it is done once, and its outcome shared.

    The first caller does the work; the others wait for the outcome, in the context ``waiting()``. When the first is
    cancelled, the next one does the work.
    """

    def __init__(self, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._waiting = waiting
        #: Waiting callers by key. Work of a single caller needs no future.
        self._followers: dict[Hashable, list[asyncio.Future[Any]]] = {}

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the outcome of the work, and whether another caller did it. Raises the errors of the work."""
        while (followers := self._followers.get(key)) is not None:
            outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            followers.append(outcome)
            try:
                with self._waiting():
                    return await outcome, True
            except _LeaderCancelledError:
                continue
        return await self._lead(key, work), False

    async def _lead(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        followers = self._followers[key] = []
        failure: Exception = _LeaderCancelledError()
        try:
            result = await work()
        except Exception as error:
            failure = error
            raise
        else:
            for follower in _still_waiting(followers):
                follower.set_result(result)
            return result
        finally:
            del self._followers[key]
            for follower in _still_waiting(followers):
                follower.set_exception(failure)


class _LeaderCancelledError(Exception):
    """The caller that did the work was cancelled."""


def _still_waiting(followers: list[asyncio.Future[T]]) -> Iterator[asyncio.Future[T]]:
    return (follower for follower in followers if not follower.done())


class ExtractClient:
    """Extractions through one transport and one limiter.

    ``extra_fields``: fields of the service that this version does not have; ``strict``: refuse those that the contract
    does not define; ``memory`` bounds the memory of answers;
    ``observe`` is called after each POST, for stats.
    """

    def __init__(
        self,
        transport: ExtractTransport,
        limiter: Limiter,
        policy: RetryPolicy | None = None,
        *,
        extra_fields: Collection[str] = (),
        strict: bool = False,
        budget: Budget | None = None,
        prices: Prices | None = None,
        ledger: Ledger | None = None,
        memory: AnswerMemory | None = None,
        observe: Callable[[RequestAttempt], None] | None = None,
    ) -> None:
        self._memory = memory or AnswerMemory()
        self.transport = transport
        self._limiter = limiter
        self._policy = policy or RetryPolicy()
        self._extra_fields = extra_fields
        self._strict = strict
        self._budget = budget or Budget()
        self._prices = prices or Prices()
        self._ledger = ledger
        self._observe = observe or (lambda _attempt: None)
        self._coalescing = Coalescing(limiter.aside)
        self._rounds = ConnectionRounds()
        #: True once the service has answered with a result, or with a problem of the contract.
        self.is_there = False
        #: Extractions that needed no POST: they had the result of an identical one, or an answer of a former run.
        self.shared = 0
        self.reused = 0

    def __repr__(self) -> str:
        return f"<ExtractClient of {self.transport.url}>"

    async def close(self) -> None:
        await self.transport.close()

    async def extract(
        self,
        fields: Mapping[str, Any],
        *,
        domain: str,
        kind: str | None = None,
        policy: RetryPolicy | None = None,
        bounds: Bounds = UNBOUNDED,
        ledger_key: bytes = b"",
        may_share: bool = True,
    ) -> dict[str, Any]:
        """Return the decoded body of the 200 answer to these fields. Identical requests under way that ``may_share``
        share one POST.

        ``domain`` is the one that the limits of a site refer to; ``policy`` replaces the client's own; ``kind`` and
        ``ledger_key`` are those of the fields, if the caller has them. Raises :class:`ContractError` with every broken
        rule, before anything is sent, :class:`~scrapy_ext.client.extraction.errors.ExtractError`,
        :class:`~scrapy_ext.client.extraction.budget.OverBudgetError`, and
        :class:`~scrapy_ext.client.extraction.limiter.Closing`.
        """
        body = self.encoded(fields)
        kind = kind or kind_of(fields)
        call = _Call(domain, kind, self._prices.of(fields, kind), policy or self._policy, bounds)
        self._limiter.begin(domain)
        try:
            if not (may_share and _is_repeatable(fields)):
                return await self._extract(fields, body, call, ledger_key)
            result, was_shared = await self._coalescing.share(
                (body, call), lambda: self._extract(fields, body, call, ledger_key)
            )
        finally:
            self._limiter.end(domain)
        if not was_shared:
            return result
        self.shared += 1
        return await self._copy(result)

    async def _copy(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of a result for another request. It shares the texts, and has its own bytes of Base64 data."""
        with closing(await self._memory.hold()) as hold:
            shared = hold_of(result)
            await hold.resize(shared.size if shared is not None else 0)
            return HeldResult(deepcopy(dict(result)), hold, seconds_of(result))

    async def _extract(self, fields: Mapping[str, Any], body: bytes, call: _Call, ledger_key: bytes) -> dict[str, Any]:
        if self._ledger is not None:
            ledger_key = ledger_key or key_of(fields)
            paid = await self._paid(ledger_key, fields)
            if paid is not None:
                self.reused += 1
                return paid
        failures, transport = Failures(self._rounds), self.transport
        while True:
            # Until the service has answered once, no other request goes in the place of a failed one.
            with await self._limiter.permit(call.domain, again=failures.total > 0 and self.is_there):
                with client_span("POST", f"{transport.url}/extract", transport.path, failures.total) as span:
                    attempt = await self._attempt(fields, body, call, ledger_key, span.headers)
                    if span.is_recorded:
                        _describe(span, attempt.result)
                if isinstance(attempt.result, dict):
                    self._succeeded(attempt, call.domain)
                    return attempt.result
                # Reported while it has its permit, also without another attempt: the request that is admitted next must
                # not meet the same limit.
                error = attempt.result
                wait = self._failed(attempt, error, call, failures)
            if wait is None:
                raise error
            # A limit pauses its scope in the limiter, where the request waits.
            if error.scope is Scope.NONE:
                await self._limiter.back_off(call.domain, wait, lend=self.is_there)

    async def _paid(self, key: bytes, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the result that a former run paid for, if the ledger has it."""
        if self._ledger is None or not self._ledger.may_have(key):
            return None
        with closing(await self._memory.hold()) as hold, suppress(OverMemoryError):
            stored = await self._ledger.stored(key)
            result = None if stored is None else await _result(RawAnswer(200, {}, stored), fields, hold)
            return result if isinstance(result, dict) else None
        return None

    async def _attempt(
        self, fields: Mapping[str, Any], body: bytes, call: _Call, ledger_key: bytes, headers: Mapping[str, str]
    ) -> _Attempt:
        """Make one POST."""
        with closing(await self._memory.hold()) as hold:
            return await self._held_attempt(fields, body, call, ledger_key, hold, headers=headers)

    async def _held_attempt(
        self,
        fields: Mapping[str, Any],
        body: bytes,
        call: _Call,
        ledger_key: bytes,
        hold: Hold,
        *,
        headers: Mapping[str, str],
    ) -> _Attempt:
        price = call.price
        await self._reserve(price, call.domain)
        ledger = self._ledger
        if ledger is not None:
            ledger.sent(ledger_key, price)
        sent = asyncio.get_running_loop().time()
        # A cancelled request was sent.
        refund = 0.0
        answer: RawAnswer | None = None
        try:
            result: dict[str, Any] | ExtractError
            try:
                posted = await self.transport.post(body, call.bounds, hold, headers)
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
        if isinstance(result, HeldResult):
            result.seconds = seconds
        return _Attempt(result, call.kind, sent, seconds, price - refund)

    async def _reserve(self, price: float, domain: str) -> None:
        await self._budget.reserve(price)
        try:
            self._limiter.check_open(domain)  # The budget may have waited for others.
        except Closing:
            self._budget.release(price)
            raise

    def _succeeded(self, attempt: _Attempt, domain: str) -> None:
        self.is_there = True
        self._limiter.succeeded(domain)
        self._rounds.end()
        self._observe(RequestAttempt(domain, attempt.kind, attempt.seconds, attempt.cost))

    def _failed(self, attempt: _Attempt, error: ExtractError, call: _Call, failures: Failures) -> float | None:
        """Report a failure. Returns the seconds until the next attempt; None: there is none."""
        self.is_there |= error.type in PROBLEM_TYPES or isinstance(error, IncompleteAnswerError)
        wait = failures.wait(call.policy.later if self.is_there else call.policy, error, attempt.sent)
        paused = 0.0
        if error.scope is not Scope.NONE:
            paused = self._limiter.refused(error.scope, call.domain, pause_of(error, wait), attempt.sent)
        self._observe(RequestAttempt(call.domain, attempt.kind, attempt.seconds, attempt.cost, error, wait, paused))
        return wait

    def is_fatal(self, error: ExtractError) -> bool:
        """Return whether every further request would fail in the same way. Until the service has answered, any other
        answer means that it is not at this address."""
        match error:
            case KeyRefusedError() | AccountSuspendedError():
                return True
            case UnreachableServiceError():
                policy = self._policy.later if self.is_there else self._policy
                return not error.ambiguous and error.rounds >= policy.attempts(NO_CONNECTION)
        return not self.is_there and (error.status in _NO_SUCH_PATH or isinstance(error, UnexpectedAnswerError))

    def encoded(self, fields: Mapping[str, Any]) -> bytes:
        """Return the request body of these fields. Raises :class:`ContractError`."""
        violations = check(fields, extra_fields=self._extra_fields, strict=self._strict)
        if violations:
            raise ContractError(violations)
        try:
            body = msgspec.json.encode(fields)
        except (TypeError, ValueError, RecursionError) as error:
            rule = f"cannot be written as JSON: {error}"
            raise ContractError([Violation("request", rule, "Use strings, numbers, lists and dicts.")]) from None
        if len(body) > MAX_BODY_BYTES:
            raise ContractError([body_too_large(len(body))])
        return body


def _describe(span: Span, result: dict[str, Any] | ExtractError) -> None:
    if not isinstance(result, ExtractError):
        span.answered(200)
        return
    if result.status is not None:
        span.answered(result.status)
    span.failed(result)


def _is_repeatable(fields: Mapping[str, Any]) -> bool:
    """Return whether one POST can serve two identical requests: their effect on the site is that of one."""
    return not fields.get("actions") and fields.get("httpRequestMethod", "GET") in ("GET", "HEAD", "OPTIONS", "TRACE")


async def _result(answer: RawAnswer, fields: Mapping[str, Any], hold: Hold) -> dict[str, Any] | ExtractError:
    """Return the decoded body, or the error that it reports; raises :class:`OverMemoryError`."""
    await hold.resize(len(answer.body) + decoded_size(answer.body))
    if answer.status != 200:
        return error_of(answer.status, answer.headers, answer.body, fields)
    try:
        decoded = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _not_a_result(answer, fields, f"a body that is not JSON ({error})")
    if not isinstance(decoded, dict):
        return _not_a_result(answer, fields, "JSON that is not an object")
    left_out = decoded.get(LEFT_OUT) if MIN_PROBABILITY in fields else None
    there = left_out if isinstance(left_out, dict) else {}
    missing = [name for name in _RESULTS if fields.get(name) and decoded.get(name) is None and name not in there]
    if missing:
        made = UnexpectedAnswerError if decoded.keys().isdisjoint(_MARKS) else IncompleteAnswerError
        return _not_a_result(answer, fields, f"an answer without {' and '.join(missing)}", made)
    # The memory of the text of the answer is counted on for the body of the response.
    return HeldResult(decoded, hold)


def _not_a_result(
    answer: RawAnswer,
    fields: Mapping[str, Any],
    fault: str,
    made: type[UnexpectedAnswerError] = UnexpectedAnswerError,
) -> UnexpectedAnswerError:
    kind = answer.headers.get("Content-Type", "no content type")
    beginning = " ".join(answer.body[:400].decode("utf-8", "replace").split())[:100]
    detail = f"{fault}, {kind}: {beginning or 'an empty body'}"
    return made(detail, status=answer.status, sent=fields)
