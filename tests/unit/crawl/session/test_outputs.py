"""Outputs of callbacks are handled in the order and at the times of Scrapy's own tasks, by fewer tasks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.scraper import Scraper
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.asyncio import _parallel_asyncio

from scrapy_ext.crawl.session.outputs import Outputs, start_tasks_as_needed
from tests.support.crawlers import get_crawler

LINK = Request("http://a.example/")

Handle = Callable[[Any, int, Callable[[Any], Awaitable[None]]], Awaitable[None]]


def by_scrapy(outputs: Any, most: int, process: Callable[[Any], Any]) -> Awaitable[None]:
    return _parallel_asyncio(outputs, most, process)


def by_package(outputs: Any, most: int, process: Callable[[Any], Awaitable[None]]) -> Awaitable[None]:
    return Outputs(process, most).handle(as_async_generator(outputs))


class Recorded:
    """Log of one run, in which an item is the number of turns of the event loop that its pipelines take."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.at_once = self.most_at_once = 0

    @property
    def handled(self) -> list[Any]:
        """Steps of the outputs, without those of the callbacks."""
        return [entry for entry in self.log if entry[1:] not in (("yielded",), ("handled",))]

    async def process(self, page: int, output: Any) -> None:
        if isinstance(output, Request):
            self.log.append((page, "scheduled"))
            return
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        for turn in range(output):
            self.log.append((page, output, turn))
            await asyncio.sleep(0)
        self.at_once -= 1
        self.log.append((page, output, "stored"))

    def outputs(self, page: int, outputs: Iterable[Any]) -> Iterable[Any]:
        for output in outputs:
            self.log.append((page, "yielded"))
            yield output

    async def slow_outputs(self, page: int, outputs: Iterable[Any]) -> AsyncIterator[Any]:
        for number, output in enumerate(outputs):
            if number % 3 == 2:
                await asyncio.sleep(0)
            self.log.append((page, "yielded"))
            yield output


async def recorded(handle: Handle, pages: list[list[Any]], most: int, *, is_slow: bool) -> Recorded:
    """Handle pages at the same time."""
    run = Recorded()

    async def page(number: int, outputs: list[Any]) -> None:
        made = (run.slow_outputs if is_slow else run.outputs)(number, outputs)
        await handle(made, most, lambda output: run.process(number, output))
        run.log.append((number, "handled"))

    await asyncio.gather(*(page(number, outputs) for number, outputs in enumerate(pages)))
    return run


def some_pages(seed: int) -> list[list[Any]]:
    chosen = random.Random(seed)
    kinds = [LINK, 0, 1, 2, 5]
    return [chosen.choices(kinds, k=chosen.choice([0, 1, 2, 7, 30])) for _ in range(3)]


@pytest.mark.parametrize("is_slow", [False, True], ids=["at once", "as they come"])
@pytest.mark.parametrize("most", [1, 2, 8, 100])
async def test_outputs_of_a_page_are_handled_at_scrapys_times(most: int, is_slow: bool) -> None:
    for page in (page for seed in range(10) for page in some_pages(seed)):
        theirs = await recorded(by_scrapy, [page], most, is_slow=is_slow)
        ours = await recorded(by_package, [page], most, is_slow=is_slow)
        assert (ours.log, ours.most_at_once) == (theirs.log, theirs.most_at_once), page


@pytest.mark.parametrize("most", [1, 2, 8, 100])
async def test_outputs_of_pages_that_come_together_are_handled_in_scrapys_order(most: int) -> None:
    for seed in range(30):
        pages = some_pages(seed)
        theirs = await recorded(by_scrapy, pages, most, is_slow=False)
        ours = await recorded(by_package, pages, most, is_slow=False)
        assert ours.handled == theirs.handled, pages


@pytest.mark.parametrize(
    ("outputs", "most", "tasks"),
    [
        ([], 100, 0),
        ([LINK] * 300, 100, 1),
        ([LINK] * 20 + [1], 100, 1),
        ([1] + [LINK] * 20, 100, 2),
        ([1] * 30, 100, 30),
        ([1] * 300, 100, 100),
        ([1] * 300, 8, 8),
        ([None] * 300, 8, 1),
    ],
    ids=["none", "links", "item last", "item first", "items", "many items", "many items, few at once", "None"],
)
async def test_there_are_as_many_tasks_as_items_that_wait(
    outputs: list[Any], most: int, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    create = asyncio.create_task
    monkeypatch.setattr(asyncio, "create_task", lambda task: started.append(task) or create(task))
    run = Recorded()

    async def process(output: Any) -> None:
        if output is not None:
            await run.process(0, output)

    await Outputs(process, most).handle(as_async_generator(outputs))
    # One fills the queue.
    assert len(started) == 1 + tasks
    assert sum(1 for entry in run.log if entry[1:] == ("scheduled",)) == outputs.count(LINK)


async def test_an_error_ends_its_task_and_no_other_output() -> None:
    errors: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: errors.append(context["exception"]))
    handled: list[int] = []

    async def process(output: int) -> None:
        await asyncio.sleep(0)
        if output % 2:
            raise ValueError(output)
        handled.append(output)

    await asyncio.wait_for(Outputs(process, 3).handle(as_async_generator(range(20))), 10)
    assert sorted(handled) == list(range(0, 20, 2))
    await asyncio.sleep(0)
    assert {type(error) for error in errors} == {ValueError}


async def test_pipelines_have_the_context_of_the_request_and_not_that_of_the_callback() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="none")
    variable.set("of the request")
    found: list[str] = []

    async def process(output: int) -> None:
        found.append(variable.get())
        variable.set("of another item")
        await asyncio.sleep(0)

    def callback() -> Iterable[int]:
        variable.set("of the callback")
        yield from range(3)

    await Outputs(process, 8).handle(as_async_generator(callback()))
    assert found == ["of the request"] * 3


class Own(Scraper):
    async def handle_spider_output_async(self, result: Any, request: Any, response: Any) -> None:
        pass


@pytest.mark.parametrize(("kind", "is_replaced"), [(Scraper, True), (Own, False)], ids=["scrapy's", "another"])
async def test_a_scraper_with_a_way_of_its_own_keeps_it(kind: type[Scraper], is_replaced: bool) -> None:
    crawler = get_crawler()
    scraper = kind.__new__(kind)
    start_tasks_as_needed(SimpleNamespace(engine=SimpleNamespace(scraper=scraper), spider=crawler.spider))  # type: ignore[arg-type]
    assert ("handle_spider_output_async" in vars(scraper)) == is_replaced


def test_a_method_that_others_have_replaced_in_scrapys_class_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scraper, "handle_spider_output_async", lambda *_: None)
    engine = SimpleNamespace(scraper=Scraper.__new__(Scraper))
    start_tasks_as_needed(SimpleNamespace(engine=engine))  # type: ignore[arg-type]
    assert "handle_spider_output_async" not in vars(engine.scraper)


def test_an_engine_of_another_kind_is_left_as_it_is() -> None:
    engine = SimpleNamespace(scraper=SimpleNamespace())
    start_tasks_as_needed(SimpleNamespace(engine=engine))  # type: ignore[arg-type]
    assert not vars(engine.scraper)
