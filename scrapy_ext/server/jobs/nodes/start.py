"""Start of the node of a server or a worker: its connection pools, its notifier, and its configuration.

The parts of a node are imported with it: the server of a crawl runs no jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, elapsing
from scrapy_ext.server.auth.tokens import AttemptTokens
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.jobs.confining import Confining, Policy
from scrapy_ext.server.jobs.versions.environments import Environments, LocalProject
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.connection_limits import HEARTBEATS, NODE
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError
from scrapy_ext.server.store.fencing import Attempt, over

if TYPE_CHECKING:
    from scrapy_ext.server.jobs.nodes.node import Node, Pools
    from scrapy_ext.server.jobs.nodes.notifier import Notifier

_URL_SECONDS: Final = 15
#: Seconds in which the start of a node is repeated while rows are locked, and between two attempts.
_START_SECONDS: Final = 60.0
_PAUSE: Final = 1.0
#: An attempt that never existed: only a server with the same secret, which is in the database, reports it as over.
_NEVER: Final = Attempt(JobKey(1, 1, 1), 0)

logger = logging.getLogger(__name__)


async def check_server_url(url: str, store: Store) -> None:
    """Check that the server of a URL uses this database; raise :class:`ConfigError`."""
    import aiohttp

    token = await AttemptTokens(store).token(_NEVER)
    where = f"{url}/jobs/{_NEVER.key}"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_URL_SECONDS)) as session,
            session.get(where, auth=aiohttp.BasicAuth(token, ""), allow_redirects=False) as response,
        ):
            status, answer = response.status, (await response.content.read(4096)).decode(errors="replace")
    except (aiohttp.ClientError, OSError, *TIMEOUT_ERRORS, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise ConfigError(f"--url {url} cannot be reached ({reason}). Start the server, or omit --url.") from error
    if status == 403 and over(_NEVER).rule in answer:
        return
    if status in (401, 403):
        raise ConfigError(
            f"--url {url} refuses this database's jobs ({status}): it uses another database. Name a server of this one."
        )
    raise ConfigError(f"--url {url} is no platform: it answers {status}. Use the URL of a server of this database.")


def _local(config: ServerConfig) -> LocalProject | None:
    return None if config.local_project is None else LocalProject(config.local_project_id, config.local_project)


def environments_of(store: Store, config: ServerConfig) -> Environments:
    """Return the environments of this machine for a configuration of a server or a worker."""
    policy = Policy(config.job_user, config.job_read, config.job_deny, config.database)
    return Environments(store, config.environments_folder, _local(config), confining=Confining(policy))


async def start_node(
    store: Store, config: ServerConfig, environments: Environments, stack: contextlib.AsyncExitStack
) -> Node:
    """Start a node, which ``stack`` stops."""
    from scrapy_ext.server.jobs.nodes.dead_nodes import NodeLocks
    from scrapy_ext.server.jobs.nodes.node import Node, NodeConfig

    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.host, config.host)  # noqa: S104
    pools = await _pools(store, config, stack)
    node = Node(
        pools,
        environments,
        config.server_url or f"http://{host}:{config.port}",
        NodeConfig(
            config.units,
            frozenset(config.node_tags),
            _local(config),
            config.stop_grace,
            config.unit_memory,
            config.job_timeout,
            config.job_opentelemetry,
        ),
        await _notifier(store, config),
        locks=NodeLocks(config.data if config.database is None else None),
    )
    await _until_started(node)
    stack.push_async_callback(node.stop)
    return node


async def _until_started(node: Node) -> None:
    """Start a node, and wait for its rows: those that a killed process was writing stay locked until the database has
    noticed its end, at times for longer than a node waits for a lock."""
    until = elapsing() + _START_SECONDS
    while True:
        try:
            await node.start()
        except StoreAwayError:
            raise
        except StoreBusyError as error:
            if elapsing() > until:
                raise
            logger.warning("The node is not started yet; it is tried again: %s", error)
            await asyncio.sleep(_PAUSE)
        else:
            return


async def _pools(store: Store, config: ServerConfig, stack: contextlib.AsyncExitStack) -> Pools:
    from scrapy_ext.server.jobs.nodes.node import Pools

    if config.database is None:
        return Pools(store, store, store)
    stores = []
    for limits in (NODE, HEARTBEATS):
        stores.append(await store.with_pool(config.database, limits))
        stack.push_async_callback(stores[-1].close)
    return Pools(store, *stores)


async def _notifier(store: Store, config: ServerConfig) -> Notifier | None:
    if config.database is None:
        return None
    # Imported where it is used: the driver is an extra.
    from scrapy_ext.server.jobs.nodes.notifier import Notifier

    return await Notifier.open(store, config.database)
