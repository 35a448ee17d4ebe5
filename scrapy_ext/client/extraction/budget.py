"""The budget of extraction: a number of requests, a sum of money, or both.

A request is reserved in the budget before it is sent, and released when the service reports that it failed, so that
requests in flight never exceed the budget. A request without an answer may have been billed: it stays spent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction import OUTPUTS
from scrapy_ext.api.extraction.fields import RequestKind
from scrapy_ext.api.violations import ContractError, Violation

logger = logging.getLogger(__name__)

#: Used share of a budget at which the log warns.
_WARNING: Final = 0.8
#: Sums of floats are compared with this tolerance: 0.1 + 0.2 costs 0.3.
_TOLERANCE: Final = 1e-9


class MissingPriceError(ContractError):
    """EXTRACT_API_MAX_COST is set, and EXTRACT_API_PRICES has no price for this kind of request."""


class Prices:
    """A price table: ``{"http": 0.0002, "browser": 0.001, "screenshot": 0.0005, "product": {"http": 0.001,
    "browser": 0.002}}``. The price of a request is that of its kind and of each of its outputs.

    ``required``: a request of a kind without a price is refused.
    """

    def __init__(self, table: Mapping[str, Any] | None = None, *, required: bool = False) -> None:
        self._required = required
        self._kinds: dict[str, float] = {}
        self._outputs: dict[str, dict[str, float]] = {}
        faults: list[Violation] = []
        for name, price in (table or {}).items():
            try:
                self._add(name, price)
            except ValueError as error:
                faults.append(Violation(f"EXTRACT_API_PRICES[{name!r}]", str(error), _REMEDY))
        if faults:
            raise ContractError(faults)

    def of(self, fields: Mapping[str, Any], kind: str) -> float:
        """Return the price of a request with these fields, of this kind. Raises :class:`MissingPriceError`."""
        if not self._kinds and not self._required:
            return 0.0
        price = self._kinds.get(kind)
        if price is None:
            if self._required:
                rule = f"has no price for {kind} requests, and EXTRACT_API_MAX_COST is set"
                raise MissingPriceError([Violation("EXTRACT_API_PRICES", rule, _REMEDY)])
            price = 0.0
        for name, by_kind in self._outputs.items():
            if fields.get(name):
                price += by_kind.get(kind, 0.0)
        return price

    def _add(self, name: str, price: object) -> None:
        if name in _KINDS:
            self._kinds[name] = _amount(price)
        elif name not in OUTPUTS:
            raise ValueError(f"is not a request kind ({', '.join(_KINDS)}) nor an output ({', '.join(OUTPUTS)})")
        elif isinstance(price, Mapping):
            if not price.keys() <= {*_KINDS}:
                raise ValueError(f"must have prices for {' and '.join(_KINDS)}")
            self._outputs[name] = {kind: _amount(value) for kind, value in price.items()}
        else:
            self._outputs[name] = dict.fromkeys(_KINDS, _amount(price))


_KINDS: Final = (RequestKind.HTTP.value, RequestKind.BROWSER.value)
_REMEDY: Final = 'Write {"http": 0.0002, "browser": 0.001, "screenshot": 0.0005}, for example.'


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError("must be a price, a number of at least 0")
    return float(value)


class Spent(msgspec.Struct):
    """Number of requests that were sent, and their cost."""

    requests: int = 0
    cost: float = 0.0


class OverBudgetError(Exception):
    """Nothing more may be sent. ``setting`` names the budget that is used up."""

    def __init__(self, setting: str, used: str) -> None:
        super().__init__(f"{setting} reached: {used}. To go on, raise it")
        self.setting = setting


class Budget:
    """At most ``max_requests`` requests and ``max_cost`` money; 0 is no limit. ``spent`` is that of earlier runs of the
    same crawl, and then of this one, without requests in flight."""

    def __init__(self, max_requests: int = 0, max_cost: float = 0.0, spent: Spent | None = None) -> None:
        self._max_requests = max_requests
        self._max_cost = max_cost
        self.spent = spent or Spent()
        self._reserved = 0.0
        self._settled: list[asyncio.Future[None]] = []
        self._warned: set[str] = set()

    async def reserve(self, price: float) -> None:
        """Reserve a request in the budget; :meth:`settle` follows.

        Waits while the outcome of requests in flight decides whether the budget is enough. Raises
        :class:`OverBudgetError`.
        """
        if self._max_requests and self.spent.requests >= self._max_requests:
            raise OverBudgetError("EXTRACT_API_MAX_REQUESTS", f"{self.spent.requests} extraction requests were sent")
        while self._max_cost and self.spent.cost + self._reserved + price > self._max_cost + _TOLERANCE:
            if not self._may_fall or self.spent.cost + price > self._max_cost + _TOLERANCE:
                used = f"{self.spent.cost:.6g} of {self._max_cost:.6g} spent"
                raise OverBudgetError(
                    "EXTRACT_API_MAX_COST", f"{used}, and the next extraction request would cost {price:.6g}"
                )
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settled.append(settled)
            await settled
        self.spent.requests += 1
        self._reserved += price
        self._warn("EXTRACT_API_MAX_REQUESTS", self.spent.requests, self._max_requests)

    def release(self, price: float) -> None:
        """Release a reserved request that was not sent."""
        self.spent.requests -= 1
        self.settle(price, billed=False)

    def settle(self, price: float, *, billed: bool) -> None:
        self._reserved -= price
        if billed:
            self.spent.cost += price
            self._warn("EXTRACT_API_MAX_COST", self.spent.cost, self._max_cost)
        waiting, self._settled = self._settled, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    @property
    def _may_fall(self) -> bool:
        """True while requests are under way, which may cost nothing."""
        return self._reserved > _TOLERANCE

    def _warn(self, setting: str, used: float, most: float) -> None:
        if most and used >= most * _WARNING and setting not in self._warned:
            self._warned.add(setting)
            logger.warning(
                "%d %% of %s is used: %.6g of %.6g. When it is used up, nothing more is sent: raise it to go on.",
                100 * used / most,
                setting,
                used,
                most,
            )
