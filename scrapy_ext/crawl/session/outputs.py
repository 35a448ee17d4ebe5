"""Tasks for the outputs of callbacks.

For each response, Scrapy starts CONCURRENT_ITEMS tasks (100), which take the outputs of its callback from a queue. Most
responses have a few outputs, so that most of the tasks end without one; to start them takes most of the time that the
engine needs for a page. Here the same queue has a task for each item that waits, and one for requests.

Outputs are handled in Scrapy's order. A request is scheduled without a wait, so that one task handles any number of
them in turn. A task waits in the pipelines alone, and then the next output is handled by the next task. As in Scrapy,
at most CONCURRENT_ITEMS outputs of a response are handled at once, and the callback waits while twice as many are in
the queue. One step differs: tasks begin in the turn of the event loop after their output came, not in the same one.
Callbacks of responses that came together may all run in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextvars import copy_context
from functools import partial
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import aiter_errback, iter_errback
from scrapy.utils.reactor import is_reactor_installed
from twisted.python.failure import Failure

#: Module and name of the method that is replaced.
_OF_SCRAPY: Final = ("scrapy.core.scraper", "Scraper.handle_spider_output_async")
#: Ends one task.
_END: Final = object()


def start_tasks_as_needed(crawler: Crawler) -> None:
    """Start tasks for the outputs of callbacks only as they are needed. Call this when there is an engine. A scraper
    that handles outputs in a way of its own is left as it is."""
    scraper: Any = crawler.engine.scraper
    handle = getattr(getattr(scraper, "handle_spider_output_async", None), "__func__", None)
    # By its name, since others may have replaced the method of Scrapy's class.
    is_scrapys = (getattr(handle, "__module__", ""), getattr(handle, "__qualname__", "")) == _OF_SCRAPY
    has_loop = not is_reactor_installed() or is_asyncio_available()
    if is_scrapys and has_loop:
        scraper.handle_spider_output_async = partial(_handle, crawler)


async def _handle(
    crawler: Crawler, result: Iterable[Any] | AsyncIterator[Any], request: Request, response: Response | Failure
) -> None:
    """Handle the outputs of a callback, as ``Scraper.handle_spider_output_async``."""
    scraper = crawler.engine.scraper
    if isinstance(result, AsyncIterator):
        outputs = aiter_errback(result, scraper.handle_spider_error, request, response)
    else:
        outputs = as_async_generator(iter_errback(result, scraper.handle_spider_error, request, response))

    async def process(output: object) -> None:
        if isinstance(output, Request):
            crawler.engine.crawl(output)
        elif output is not None:
            await scraper.start_itemproc_async(output, response=response)

    await Outputs(process, scraper.concurrent_items).handle(outputs)


class Outputs:
    """Outputs of one callback, of which ``process`` handles at most ``most`` at once. It waits for items alone."""

    def __init__(self, process: Callable[[Any], Awaitable[None]], most: int) -> None:
        self._process = process
        self._most = most
        self._queue: asyncio.Queue[Any] = asyncio.Queue(most * 2)
        #: Outputs in the queue, and the items among them.
        self._waiting = self._items = 0
        #: Tasks, without the one that fills the queue, and the number of those that handle no output now.
        self._tasks: set[asyncio.Task[None]] = set()
        self._free = 0
        # That of the request, without changes that the callback makes.
        self._context = copy_context()
        self._is_filled = False
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def handle(self, outputs: AsyncIterator[Any]) -> None:
        """Handle all outputs. An error in one of them ends its task and is not raised here, as in Scrapy."""
        filling = asyncio.create_task(self._fill(outputs))
        filling.add_done_callback(self._filled)
        await self._done

    async def _fill(self, outputs: AsyncIterator[Any]) -> None:
        async for output in outputs:
            may_wait = _may_wait(output)
            await self._queue.put(output)
            self._waiting += 1
            self._items += may_wait
            # A request behind the last item needs a task as well.
            if self._free < self._items + (not may_wait):
                self._start()
        for _ in range(len(self._tasks)):
            await self._queue.put(_END)

    def _start(self) -> None:
        if len(self._tasks) < self._most:
            task = self._context.run(asyncio.create_task, self._work())
            self._tasks.add(task)
            self._free += 1
            task.add_done_callback(self._ended)

    async def _work(self) -> None:
        while True:
            output = await self._queue.get()
            self._free -= 1
            if output is _END:
                return
            self._waiting -= 1
            self._items -= _may_wait(output)
            await self._process(output)
            self._free += 1

    def _filled(self, _task: asyncio.Task[None]) -> None:
        self._is_filled = True
        self._finish()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._waiting and not self._free:
            # An error has ended the task.
            self._start()
        self._finish()

    def _finish(self) -> None:
        if self._is_filled and not self._tasks and not self._done.done():
            self._done.set_result(None)


def _may_wait(output: object) -> bool:
    return output is not None and not isinstance(output, Request)
