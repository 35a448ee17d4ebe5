"""Delivery of webhooks from the outbox over HTTP, to addresses that the guard permits, without following redirects.

Any number of servers on one database share the outbox. Each webhook is served by one task at a time, so that a slow one
occupies one task only. A failure ends the task; the next poll starts it again.

The guard of extraction applies (``net.guard``): otherwise a webhook could make the server call hosts that only
the server reaches. Redirects are failures, and only the status of the response is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from functools import partial
from typing import Final

import aiohttp
from yarl import URL

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.extraction.http.fetch import GuardedResolver
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreError
from scrapy_ext.server.store.webhooks.webhooks import Claimed
from scrapy_ext.server.webhooks.signing import signed_headers

logger = logging.getLogger(__name__)

#: Timeout of a delivery in seconds; shorter than ``store.webhooks.CLAIM``.
TIMEOUT: Final = 15.0
#: Maximum response bytes to read, so that the connection closes cleanly.
_ANSWER_BYTES: Final = 16 * 1024
_OUTCOME: Final = 300


class DeliveryError(Exception):
    """A delivery failed; the message is shown in the list of deliveries."""


class Sender:
    """Sender of deliveries, used as an async context manager."""

    def __init__(self, guard: Guard, *, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Sender:
        # A connection per delivery: a kept one would use an address that was checked long ago.
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._guard), use_dns_cache=False, force_close=True, limit=0
        )
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, delivery: Claimed, seconds: int) -> str:
        """Send a delivery signed for ``seconds`` (since 1970); return its status or raise :class:`DeliveryError`."""
        try:
            async with timeout_after(self._timeout):
                status = await self._post(delivery, seconds)
        except TIMEOUT_ERRORS:
            raise DeliveryError(f"no answer within {self._timeout:g} seconds") from None
        except ExtractionError as error:
            raise DeliveryError(_one_line(str(error))) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise DeliveryError(_one_line(_message(error))) from None
        if 200 <= status < 300:
            return f"answered {status}"
        followed = ": redirects are not followed" if 300 <= status < 400 else ""
        raise DeliveryError(f"answered {status}{followed}")

    async def _post(self, delivery: Claimed, seconds: int) -> int:
        if self._session is None:
            raise RuntimeError("the sender is not started")
        url = URL(delivery.url)
        # aiohttp calls its resolver for names only, not for addresses.
        await self._guard.endpoints(url.raw_host or "", url.port or 0)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "scrapy-ext",
            **signed_headers(delivery.secret, delivery.id, seconds, delivery.body),
        }
        async with self._session.post(url, data=delivery.body, headers=headers, allow_redirects=False) as response:
            await response.content.read(_ANSWER_BYTES)
            return response.status


def _message(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
        return "the certificate is not valid, or the other end does not use TLS"
    if isinstance(error, aiohttp.ClientConnectorError | ConnectionRefusedError):
        return "no connection"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer"
    return "the answer is not HTTP, or broke off"


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)[:_OUTCOME]


# ── dispatch ──

#: Seconds between two polls of the outbox.
POLL_INTERVAL: Final = 1.0
#: Webhooks served concurrently.
AT_ONCE: Final = 16


class Dispatcher:
    """Sender of a store's deliveries, until :meth:`run` is cancelled."""

    def __init__(self, store: Store, sender: Sender, *, poll_interval: float = POLL_INTERVAL) -> None:
        self._store = store
        self._sender = sender
        self._poll_interval = poll_interval
        self._serving: dict[tuple[int, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Send deliveries forever; failures are logged and retried."""
        try:
            async with self._sender:
                while True:
                    self._store.webhooks.changed.clear()
                    try:
                        await self._start()
                    except Exception as error:
                        _log_failure(error)
                    with contextlib.suppress(*TIMEOUT_ERRORS):
                        async with timeout_after(self._poll_interval):
                            await self._store.webhooks.changed.wait()
        finally:
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self) -> None:
        """Serve webhooks with due deliveries, up to the limit."""
        for webhook in await self._store.webhooks.waiting():
            if len(self._serving) >= AT_ONCE:
                return
            if webhook not in self._serving:
                task = asyncio.create_task(self._serve(*webhook))
                self._serving[webhook] = task
                task.add_done_callback(partial(self._served, webhook))

    def _served(self, webhook: tuple[int, int], _task: asyncio.Task[None]) -> None:
        del self._serving[webhook]

    async def _serve(self, project: int, number: int) -> None:
        try:
            while (delivery := await self._store.webhooks.claim(project, number)) is not None:
                try:
                    outcome = await self._sender.send(delivery, self._store.clock() // 1000)
                except DeliveryError as failure:
                    # The URL is not logged: it may be a secret.
                    logger.info("Webhook %d of project %d: %s %s", number, project, delivery.id, failure)
                    await self._store.webhooks.failed(delivery, str(failure))
                    return
                await self._store.webhooks.delivered(delivery, outcome)
        # The claimed delivery is sent again once its claim expires.
        except Exception as error:
            _log_failure(error)


def _log_failure(error: Exception) -> None:
    # The store logs its outages itself.
    if isinstance(error, StoreAwayError):
        return
    if isinstance(error, StoreError):
        logger.warning("The webhooks are delayed by the database: %s", error)
    else:
        logger.error("The webhooks could not be sent; they are retried", exc_info=error)
