"""The platform's routes: each request is let in, handed to its resource, and answered, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.server.auth.attempt_tokens import AttemptTokens
from scrapy_ext.server.auth.keyring import Grant
from scrapy_ext.server.auth.rates import RateLimits
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.access import Access, JobTokens
from scrapy_ext.server.http.answers import answer_of, refusal_of
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import accepts_gzip, compress_whole, hold_answer
from scrapy_ext.server.platform.activity import activity
from scrapy_ext.server.platform.app import App
from scrapy_ext.server.platform.collections import collections
from scrapy_ext.server.platform.frontier import frontier
from scrapy_ext.server.platform.jobq import JobQueue
from scrapy_ext.server.platform.metadata import Metadata
from scrapy_ext.server.platform.projects import projects
from scrapy_ext.server.platform.records.items import items
from scrapy_ext.server.platform.records.logs import logs
from scrapy_ext.server.platform.records.requests import requests
from scrapy_ext.server.platform.records.samples import samples
from scrapy_ext.server.platform.spiders import ids, last_jobs
from scrapy_ext.server.platform.system import system
from scrapy_ext.server.platform.versions import Deploys
from scrapy_ext.server.store import Store

Handler = Callable[[Call], Awaitable[Response]]

_HOSTS: Final = {"api": Host.APP, "jobq": Host.JOBQ}


class PlatformService:
    """The crawling platform over HTTP.

    ``grant_of`` says what a presented API key may do, ``rates`` how often it may be used;
    ``deploys`` takes code. ``resources`` are to be
    mounted at the root, each at the paths whose first part is its name.
    """

    def __init__(
        self,
        store: Store,
        grant_of: Callable[[str], Awaitable[Grant | None]],
        rates: RateLimits | None = None,
        deploys: Deploys | None = None,
    ) -> None:
        tokens = JobTokens(store)
        access = Access(grant_of, tokens, AttemptTokens(store), rates)
        handlers: dict[str, Handler] = {
            "items": items(store.items),
            "requests": requests(store.requests),
            "logs": logs(store.logs),
            "samples": samples(store.samples),
            "collections": collections,
            "hcf": frontier,
            "jobs": Metadata(tokens),
            "jobq": JobQueue(tokens),
            "activity": activity,
            "projects": projects,
            "spiders": last_jobs,
            "ids": ids,
            "api": App(deploys),
        }
        self.resources: dict[str, ASGIApp] = {
            name: _Resource(name, handler, store, access) for name, handler in handlers.items()
        }
        self.resources["system"] = _Resource("system", system, store, None)


class _Resource:
    """One resource as an ASGI application; without ``access`` it is open to anyone."""

    def __init__(self, name: str, handler: Handler, store: Store, access: Access | None) -> None:
        self._name = name
        self._handler = handler
        self._store = store
        self._access = access
        self._host = _HOSTS.get(name, Host.STORAGE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call | None = None
        try:
            # The parts of the path are read as they were sent: a record's key may hold a slash.
            call = Call(scope, receive, self._store)
            async with asyncio.timeout(limits.REQUEST):
                if self._access is not None:
                    await self._access.check(call, self._name, self._host)
                response = await self._handler(call)
            if accepts_gzip(call) and not isinstance(response, StreamingResponse):
                compress_whole(response)
            if not isinstance(response, StreamingResponse) and len(response.body) > limits.SEND_BUFFER:
                hold_answer(call.exchange, len(response.body))
        except ClientDisconnect:
            return  # in the middle of its body: nothing of it was stored, and nobody is there to be told
        except Exception as error:
            trusted = call is not None and call.grant.all_projects
            response = answer_of(refusal_of(error, trusted=trusted), self._host)
        await response(scope, receive, send)
