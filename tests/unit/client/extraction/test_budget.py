from __future__ import annotations

import asyncio
import logging

import pytest

from scrapy_ext.api.extraction import OUTPUTS, ExtractRequest
from scrapy_ext.api.extraction.fields import kind_of
from scrapy_ext.api.extraction.rules import check, parse
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction.budget import Budget, OverBudgetError, Prices, Spent

PAGE = {"url": "https://a.example/"}
TABLE = {"http": 0.001, "browser": 0.01, "screenshot": 0.005, "product": {"http": 0.1, "browser": 0.2}}


def price_of(prices, fields):
    return prices.of({**PAGE, **fields}, kind_of(fields))


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("by_http", [False, True])
def test_the_kind_of_a_request_is_what_the_service_does(output, by_http):
    import msgspec

    fields = {**PAGE, output: True}
    if by_http:
        fields.update({"serpOptions": {"extractFrom": "browserHtml"}} if output == "serp" else {})
        fields.update({} if output == "serp" else {"extractFrom": "httpResponseBody"})
    if check(fields):
        return
    request: ExtractRequest = parse(msgspec.json.encode(fields))
    assert (kind_of(fields) == "browser") == request.wants_browser


@pytest.mark.parametrize(
    ("fields", "price"),
    [
        ({"httpResponseBody": True}, 0.001),
        ({"browserHtml": True}, 0.01),
        ({"browserHtml": True, "screenshot": True}, 0.015),
        ({"product": True}, 0.21),
        ({"product": True, "extractFrom": "httpResponseBody"}, 0.101),
        ({"product": True, "productOptions": {"extractFrom": "httpResponseBody"}}, 0.101),
        ({"httpResponseHeaders": True}, 0.001),
    ],
)
def test_a_request_costs_what_its_kind_and_its_outputs_cost(fields, price):
    assert price_of(Prices(TABLE), fields) == pytest.approx(price)


def test_without_prices_everything_is_free():
    assert price_of(Prices(), {"browserHtml": True}) == 0


def test_with_a_budget_a_request_without_a_price_is_refused():
    prices = Prices({"http": 1}, required=True)
    assert price_of(prices, {"httpResponseBody": True}) == 1
    with pytest.raises(ContractError, match="EXTRACT_API_PRICES: has no price for browser requests"):
        price_of(prices, {"browserHtml": True})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"browserHTML": 1}, "browserHTML.*not a request kind"),
        ({"http": -1}, "must be a price"),
        ({"http": "1"}, "must be a price"),
        ({"http": True}, "must be a price"),
        ({"http": float("nan")}, "must be a price"),
        ({"product": {"https": 1}}, "prices for http and browser"),
    ],
)
def test_a_price_that_is_none_is_reported_with_its_name(table, message):
    with pytest.raises(ContractError, match=rf"EXTRACT_API_PRICES.*{message}"):
        Prices(table)


async def test_so_many_requests_and_no_more():
    budget = Budget(2)
    for _ in range(2):
        await budget.reserve(0)
        budget.settle(0, billed=False)
    with pytest.raises(OverBudgetError, match="2 extraction requests were sent") as caught:
        await budget.reserve(0)
    assert caught.value.setting == "EXTRACT_API_MAX_REQUESTS"


async def test_so_much_money_and_no_more_and_what_failed_is_given_back():
    budget = Budget(max_cost=0.3)
    for billed in (True, False, True, True):
        await budget.reserve(0.1)
        budget.settle(0.1, billed=billed)
    assert budget.spent.cost == pytest.approx(0.3)
    with pytest.raises(OverBudgetError, match="EXTRACT_API_MAX_COST reached"):
        await budget.reserve(0.1)
    await budget.reserve(0.0)


async def test_when_it_depends_on_what_is_in_flight_the_next_waits_for_that():
    budget = Budget(max_cost=0.1)
    await budget.reserve(0.1)
    waiting = [asyncio.ensure_future(budget.reserve(0.1)) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    budget.settle(0.1, billed=False)
    await asyncio.wait([waiting[0]])
    assert not waiting[1].done()
    budget.settle(0.1, billed=True)
    with pytest.raises(OverBudgetError):
        await waiting[1]


async def test_what_was_not_sent_is_given_back_whole():
    budget = Budget(1, 0.1)
    await budget.reserve(0.1)
    budget.release(0.1)
    await budget.reserve(0.1)
    assert budget.spent.requests == 1


async def test_what_earlier_runs_spent_counts():
    with pytest.raises(OverBudgetError):
        await Budget(5, spent=Spent(requests=5)).reserve(0)


async def test_the_log_warns_once_at_four_fifths(caplog):
    caplog.set_level(logging.WARNING)
    budget = Budget(10)
    for _ in range(7):
        await budget.reserve(0)
    assert caplog.messages == []
    for _ in range(3):
        await budget.reserve(0)
    assert caplog.messages == [
        "80 % of EXTRACT_API_MAX_REQUESTS is used: 8 of 10. "
        "When it is used up, nothing more is sent: raise it to go on."
    ]
