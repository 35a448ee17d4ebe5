"""The application: the extraction service, the platform, and the pages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.routing import Router as StarletteRouter
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server import platform
from scrapy_ext.server.auth.api_keys import Keyring
from scrapy_ext.server.auth.credentials import Caller, CallerLookupError
from scrapy_ext.server.auth.rates import RateLimits
from scrapy_ext.server.auth.tokens import AttemptTokens, JobTokens
from scrapy_ext.server.auth.users import LoginCounts, UserRules
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.delivery.targets import ArchiveTargets
from scrapy_ext.server.deploying import Deploys
from scrapy_ext.server.housekeeping import Housekeeping, node_tasks, tasks_of
from scrapy_ext.server.http import health as health_routes
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.access import AccessCheck, CallerCheck, presented
from scrapy_ext.server.http.answers import answer_of, method_not_allowed, not_found, refusal_of
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.changes import note_change
from scrapy_ext.server.http.formats import accepts_gzip, compress_whole, hold_answer, name_file
from scrapy_ext.server.http.health import Health, ServerMetrics
from scrapy_ext.server.http.limits import Limited
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.http.openapi import Description
from scrapy_ext.server.http.request_context import context_of
from scrapy_ext.server.http.routes import Access, Route, Router, host_of
from scrapy_ext.server.jobs.nodes.start import check_server_url, environments_of, start_node
from scrapy_ext.server.jobs.versions.deployments import Deployments
from scrapy_ext.server.mcp.endpoint import AgentEndpoint
from scrapy_ext.server.monitors.evaluating import Evaluator
from scrapy_ext.server.monitors.item_schemas import ItemSchemas
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.net.pool import ProxyPool
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.connection_limits import WORKER
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.telemetry.exporting import exporting
from scrapy_ext.telemetry.families import Family

if TYPE_CHECKING:
    from scrapy_ext.server.delivery.restoring import Restores
    from scrapy_ext.server.extraction import ExtractionService
    from scrapy_ext.server.oidc.logins import Logins
    from scrapy_ext.server.ui.images import ItemImages

logger = logging.getLogger(__name__)

#: Seconds in which a server that ends with a crawl judges jobs; the crawl waits for its end.
_LAST_VERDICTS: Final = 5.0
#: The default of OTEL_SERVICE_NAME.
_SERVICE: Final = "scrapy-ext"


def build(config: ServerConfig) -> RequestMiddleware:
    """Return the application, whose parts start and stop with it; its ``failure`` is the error of a failed start."""
    parts = _Parts()
    memory = None if config.memory is None else config.memory * limits.MIB
    middleware = RequestMiddleware(parts, slow=config.slow_request, client_timeout=config.client_timeout, memory=memory)
    # Without pages it only starts and stops the parts.
    parts.others = StarletteRouter(lifespan=lambda _: _lifespan(parts, config, middleware))
    return middleware


class _Parts:
    """The application without its middleware: a request goes to the part that declares its path, or to the pages."""

    others: ASGIApp

    def __init__(self) -> None:
        #: By the first part of the path, with the slash that follows it, if any.
        self._apps: dict[str, ASGIApp] = {}
        #: Returns the pages; None when they are loaded, and in a worker, which has none.
        self.new_pages: Callable[[], ASGIApp] | None = None
        self._loading = asyncio.Lock()

    def serve(self, app: ASGIApp, beginnings: Iterable[str]) -> None:
        """Send requests to ``app`` by the beginnings of their paths (``Route.beginning``)."""
        self._apps.update(dict.fromkeys(beginnings, app))

    async def load_pages(self) -> None:
        """Import the pages and compile their templates, in a thread, since that takes a quarter of a second."""
        async with self._loading:
            if self.new_pages is not None:
                self.others = await asyncio.to_thread(self.new_pages)
                self.new_pages = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp | None = None
        if scope["type"] == "http":
            first, slash, _ = scope["path"][1:].partition("/")
            app = self._apps.get(first + slash)
            if app is None and self.new_pages is not None:
                await self.load_pages()
        await (app or self.others)(scope, receive, send)


#: The order in which the methods of a path are listed.
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Service:
    """The application. ``check`` refuses callers without access; ``services`` are other parts for handlers, by type."""

    def __init__(
        self, routes: Iterable[Route], store: Store, check: CallerCheck, services: Mapping[type, Any] | None = None
    ) -> None:
        self.router = Router(routes)
        self._store = store
        self._check = check
        self._services = {Router: self.router, **(services or {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call | None = None
        try:
            # The raw path is parsed: a record's key may hold an escaped slash.
            call = Call(scope, receive, self._store, self._services)
            response = await Limited(self._response(call), limits.REQUEST)
            is_whole = not isinstance(response, StreamingResponse)
            if is_whole and accepts_gzip(call):
                compress_whole(response)
            if is_whole and len(response.body) > limits.SEND_BUFFER:
                hold_answer(call.context, len(response.body))
        except ClientDisconnect:
            return  # The client left in the middle of its body: nothing was stored, and no answer is read.
        except Exception as error:
            trusted = call is not None and call.grant.all_projects
            response = answer_of(refusal_of(error, trusted=trusted), host_of(scope["path"].split("/", 2)[1]))
        if not isinstance(response, StreamingResponse) and response.background is None:
            await context_of(scope).answer(response.status_code, response.raw_headers, bytes(response.body))
        else:
            await response(scope, receive, send)

    async def _response(self, call: Call) -> Response:
        call.route = self.router.find(call.parts, call.method)
        if call.route is None:
            await self._refuse(call)
        else:
            call.context.route = call.route.shown
        await self._check(call)
        answer = await self.router.answer(call)
        if call.method == "GET" and "saveas" in call.query:
            name_file(call, answer)
        if call.route is not None and call.route.event and answer.status_code < 400:
            await note_change(call, answer)
        return answer

    async def _refuse(self, call: Call) -> None:
        """Refuse a call without a route; an unknown caller does not learn which paths exist."""
        others = self.router.at(call.parts)
        call.route = others[0] if others else self.router.resource(call.parts[0])
        await self._check(call)
        if not others:
            raise not_found()
        raise method_not_allowed(*sorted((route.method for route in others), key=_METHODS.index))


@contextlib.asynccontextmanager
async def _lifespan(parts: _Parts, config: ServerConfig, middleware: RequestMiddleware) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        try:
            await (_start_worker if config.worker else _start)(parts, config, middleware, stack)
        except Exception as error:
            middleware.failure = error
            raise
        yield


async def _start(parts: _Parts, config: ServerConfig, middleware: RequestMiddleware, stack: AsyncExitStack) -> None:
    """Start the parts, which ``stack`` stops."""
    # Imported at the start: the extraction libraries are heavy, and the configuration needs none of them.
    from scrapy_ext.server import routes
    from scrapy_ext.server.extraction import EXTRACT, ExtractionService

    _check_oidc(config)
    keys = Keyring()
    # First, because it checks the configuration: a server that does not start must not show a new key.
    extraction = ExtractionService(config, lambda key: _caller(store, key, keys))
    store = await Store.open(config.database or config.data)
    stack.push_async_callback(store.close)
    await keys.load(store, config.extract_key, config.platform_key)
    stack.push_async_callback(extraction.stop)
    if not config.exit_with_stdin:
        await extraction.start()
    environments = environments_of(store, config)
    housekeeping = Housekeeping(tasks_of(store, config, environments))
    stack.push_async_callback(_ended, asyncio.create_task(housekeeping.run()))
    deploys = Deploys(Deployments(store, environments), config.deploy)
    stack.push_async_callback(deploys.deployments.close)
    await deploys.deployments.resume()
    if config.runner or config.deploy != "none":
        stack.push_async_callback(_ended, asyncio.create_task(environments.confining.report()))
    if not config.exit_with_stdin:  # else it serves one command, whose job reports the error
        stack.push_async_callback(_ended, asyncio.create_task(environments.read_local()))
    node = await start_node(store, config, environments, stack) if config.runner else None
    middleware.before_end = node.drain if node is not None else None
    messages, schemas = Messages(config.public_url), ItemSchemas()
    stack.push_async_callback(schemas.stop)
    _start_loops(store, config, Evaluator(store, messages, schemas), stack)
    tokens = JobTokens(store)
    users, login_counts = UserRules.of(config.oidc_issuer, config.oidc_allowed, config.oidc_roles), LoginCounts()
    metrics = ServerMetrics(middleware, store, (extraction.metrics, housekeeping.metrics, login_counts.metrics))
    health = Health(middleware, store, partial(presented, grant_of=keys.grant), metrics)
    agents = _start_agents(config, middleware, keys, stack)
    restores = _start_archive(store, config, stack)
    services = {
        JobTokens: tokens,
        Deploys: deploys,
        Health: health,
        type(restores): restores,
        ArchiveTargets: ArchiveTargets(config.archive_targets),
        Description: Description(routes.ROUTES),
        ProxyPool: extraction.pool,
        AgentEndpoint: agents,
        UserRules: users,
        Messages: messages,
        ItemSchemas: schemas,
    }
    declared = [each for each in routes.ROUTES if each.access is not Access.EXTRACTION]
    if config.open_metrics:
        declared = [replace(each, access=Access.ANYONE) if each.first == "metrics" else each for each in declared]
    rate = config.rate_limit
    rates = None if rate is None else RateLimits(rate, config.rate_burst or math.ceil(2 * rate))
    check = AccessCheck(keys.grant, tokens, AttemptTokens(store), rates, keys.caller)
    service = Service(declared, store, check, services)
    pages = PageParts(
        store,
        keys,
        extraction,
        service.router,
        users,
        login_counts,
        schemas,
        restores,
        _item_images(config, extraction, stack),
        messages,
        deploys,
    )
    parts.new_pages = partial(_new_pages, config, pages, middleware)
    if not config.exit_with_stdin:  # the embedded server of a crawl, whose pages are rarely opened
        await parts.load_pages()
    parts.serve(service, (route.beginning for route in declared))
    # Agents are given their address by people, who write it with a slash at the end, too.
    parts.serve(service, (f"{route.first}/" for route in declared if route.access is Access.AGENT))
    parts.serve(extraction.app, (EXTRACT.first, EXTRACT.beginning))
    middleware.metrics.resources = {route.first for route in routes.ROUTES} | {"ui"}
    # Last, so that it ends first: the last metrics are read from the parts that are still there.
    await stack.enter_async_context(exporting(_SERVICE, metrics.families))


def _start_loops(store: Store, config: ServerConfig, evaluator: Evaluator, stack: AsyncExitStack) -> None:
    """Start the schedules, the monitors, the webhooks and the alerts; for a crawl, only its verdict."""
    if not config.runner:
        if config.exit_with_stdin:
            # The crawl's job ends shortly before its server. What is not judged then is left to the next server.
            stack.push_async_callback(_judge_last, evaluator)
            stack.push_async_callback(_ended, asyncio.create_task(evaluator.run_all()))
        return
    from scrapy_ext.server.jobs.periodic_loop import CronLoop  # as above
    from scrapy_ext.server.monitors.sending import AlertDispatcher, AlertSender
    from scrapy_ext.server.net.guard import Guard
    from scrapy_ext.server.webhooks import Dispatcher, Sender

    webhooks = Dispatcher(store, Sender(Guard(config.allow_hosts, config.connect_to)))
    alerts = AlertDispatcher(store, AlertSender(config.allow_hosts))
    for part in (CronLoop(store), webhooks, evaluator, alerts):
        stack.push_async_callback(_ended, asyncio.create_task(part.run()))


def _start_agents(
    config: ServerConfig, middleware: RequestMiddleware, keys: Keyring, stack: AsyncExitStack
) -> AgentEndpoint:
    agents = AgentEndpoint(middleware, keys, allow_write=config.mcp_allow_write)
    stack.push_async_callback(agents.close)
    return agents


def _item_images(config: ServerConfig, extraction: ExtractionService, stack: AsyncExitStack) -> ItemImages | None:
    """Return the fetcher of images of items, if pages may show them."""
    if not config.item_images:
        return None
    from scrapy_ext.server.ui.images import ItemImages  # as above

    images = ItemImages(extraction.guard, verify_tls=config.verify_tls)
    stack.push_async_callback(images.close)
    return images


class PageParts(NamedTuple):
    """Parts of the server that the pages use."""

    store: Store
    keys: Keyring
    extraction: ExtractionService
    router: Router
    users: UserRules
    login_counts: LoginCounts
    schemas: ItemSchemas
    restores: Restores
    images: ItemImages | None
    messages: Messages
    deploys: Deploys


def _new_pages(config: ServerConfig, parts: PageParts, middleware: RequestMiddleware) -> ASGIApp:
    """Return the pages, ready to answer."""
    from starlette.applications import Starlette  # as above

    from scrapy_ext.server.ui import PageRoutes, PageServices

    logins = _logins_of(config, parts)
    services = PageServices(
        parts.keys,
        parts.extraction,
        parts.router,
        parts.users,
        logins,
        parts.login_counts,
        parts.schemas,
        parts.restores,
        parts.images,
        parts.messages,
        ArchiveTargets(config.archive_targets),
        parts.deploys,
    )
    pages = PageRoutes(parts.store, services, lambda: middleware.ending)
    pages.prepare()
    app = Starlette(routes=pages.routes)
    app.router.redirect_slashes = False
    return app


def _check_oidc(config: ServerConfig) -> None:
    """Raise ``ConfigError`` if nobody could log in by OpenID Connect as configured. The pages are imported later."""
    if config.oidc_issuer is not None:
        from importlib.util import find_spec

        from scrapy_ext.server.oidc.settings import OidcSettings  # as above

        OidcSettings.of(config)
        if find_spec("authlib") is None:
            raise ConfigError("--oidc-issuer needs Authlib. Install it with: pip install 'scrapy-ext[oidc]'.")


def _logins_of(config: ServerConfig, parts: PageParts) -> Logins | None:
    """Return the logins at the provider, if there is one."""
    from scrapy_ext.server.oidc.settings import OidcSettings  # as above

    settings = OidcSettings.of(config)
    if settings is None:
        return None
    from scrapy_ext.server.oidc.logins import Logins  # an extra
    from scrapy_ext.server.oidc.provider import Provider

    return Logins(Provider(settings, config.allow_hosts, config.connect_to), parts.store, parts.users)


def _start_archive(store: Store, config: ServerConfig, stack: AsyncExitStack) -> Restores:
    """Start the deliveries, if the server has targets for them; return the restores."""
    from scrapy_ext.server.delivery.restoring import Restores  # as above

    restores = Restores(store, config.archive_targets)
    stack.push_async_callback(restores.close)
    if config.archive_targets:
        from scrapy_ext.server.delivery.delivering import Deliverer

        deliverer = Deliverer(store, config.archive_targets)
        stack.push_async_callback(_ended, asyncio.create_task(deliverer.run()))
    return restores


#: The paths of a worker's own address for its supervision, which needs no key.
_STATUS: Final = [replace(route, access=Access.ANYONE) for route in health_routes.ROUTES]


async def _start_worker(
    parts: _Parts, config: ServerConfig, middleware: RequestMiddleware, stack: AsyncExitStack
) -> None:
    """Start a worker and the parts that its jobs need, for processes of jobs only."""
    from scrapy_ext.server.extraction import EXTRACT, ExtractionService  # as above

    if config.database is None:
        raise ConfigError(
            "A worker needs a database that others reach, too. Write --database postgresql://USER@HOST:PORT/DATABASE."
        )
    measured: list[Callable[[], Iterator[Family]]] = []
    store = await Store.open(config.database, limits=WORKER)
    stack.push_async_callback(store.close)
    tokens = JobTokens(store)
    check = AccessCheck(_nobody, tokens, AttemptTokens(store), None)
    if config.server_url is not None:
        await check_server_url(config.server_url, store)
    else:
        extraction = ExtractionService(config, lambda key: _caller(store, key))
        stack.push_async_callback(extraction.stop)
        await extraction.start()
        service = Service(platform.ROUTES, store, check, {JobTokens: tokens})
        parts.serve(service, (route.beginning for route in platform.ROUTES))
        parts.serve(extraction.app, (EXTRACT.first, EXTRACT.beginning))
        measured.append(extraction.metrics)
        middleware.metrics.resources = {EXTRACT.first, *(route.first for route in platform.ROUTES)}
    environments = environments_of(store, config)
    stack.push_async_callback(_ended, asyncio.create_task(environments.confining.report()))
    housekeeping = Housekeeping(node_tasks(environments))
    stack.push_async_callback(_ended, asyncio.create_task(housekeeping.run()))
    node = await start_node(store, config, environments, stack)
    middleware.before_end, middleware.ready = node.drain, node.name
    measured.append(housekeeping.metrics)
    metrics = ServerMetrics(middleware, store, measured)
    await stack.enter_async_context(exporting(_SERVICE, metrics.families))
    if config.status_address is not None:
        health = Health(middleware, store, partial(presented, grant_of=_nobody), metrics, trouble=lambda: node.trouble)
        middleware.status = Service(_STATUS, store, check, {Health: health})


async def _nobody(_key: str) -> None:
    """Return no rights: a worker accepts no API keys."""


async def _caller(store: Store, key: str, keys: Keyring | None = None) -> Caller | None:
    """Return the caller of the extraction service: the process of a job, or the holder of one of ``keys``.

    Raises :class:`CallerLookupError` while the database is away.
    """
    try:
        caller = await AttemptTokens(store).caller(key)
        return await keys.caller(key) if caller is None and keys is not None else caller
    except StoreError as error:
        raise CallerLookupError from error


async def _judge_last(evaluator: Evaluator) -> None:
    """Judge the jobs that have just ended, for some seconds."""
    with contextlib.suppress(*TIMEOUT_ERRORS):
        async with timeout_after(_LAST_VERDICTS):
            await evaluator.run_all()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
