"""Starts the node of a server or a worker: its lines to the database, its carrier, and what it is told."""

from __future__ import annotations

import contextlib

from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.jobs.attempts.execution import Door
from scrapy_ext.server.jobs.confining import Confining, Policy
from scrapy_ext.server.jobs.nodes.liveness import Presence
from scrapy_ext.server.jobs.nodes.node import Lines, Node, NodeConfig
from scrapy_ext.server.jobs.nodes.notifiers import Carrier
from scrapy_ext.server.jobs.nodes.notifiers.local import LocalCarrier
from scrapy_ext.server.jobs.versions.environments import Environments, LocalProject
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.postgresql.pool_sizes import BEATS, RUNNER


def _local(config: ServerConfig) -> LocalProject | None:
    return None if config.local_project is None else LocalProject(config.local_project_id, config.local_project)


def environments_of(store: Store, config: ServerConfig) -> Environments:
    """The environments of this machine, as a server or a worker is configured."""
    policy = Policy(config.job_user, config.job_read, config.job_deny, config.database)
    return Environments(store, config.environments_folder, _local(config), confining=Confining(policy))


async def start_node(
    store: Store, config: ServerConfig, environments: Environments, stack: contextlib.AsyncExitStack
) -> Node:
    """Start a node, which ``stack`` will stop."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.host, config.host)  # noqa: S104
    lines = await _lines(store, config, stack)
    node = Node(
        lines,
        environments,
        Door(config.server_url or f"http://{host}:{config.port}"),
        NodeConfig(
            config.units,
            frozenset(config.node_tags),
            _local(config),
            config.stop_grace,
            config.unit_memory,
            config.job_timeout,
        ),
        await _carrier(lines.nodes, config),
        presence=Presence(config.data if config.database is None else None),
    )
    await node.start()
    stack.push_async_callback(node.stop)
    return node


async def _lines(store: Store, config: ServerConfig, stack: contextlib.AsyncExitStack) -> Lines:
    if config.database is None:
        return Lines(store, store, store)
    beside = []
    for line in (RUNNER, BEATS):
        beside.append(await store.beside(config.database, line))
        stack.push_async_callback(beside[-1].close)
    return Lines(store, *beside)


async def _carrier(store: Store, config: ServerConfig) -> Carrier:
    if config.database is None:
        return LocalCarrier()
    try:
        # Imported where it is used: the queue engine is an extra.
        from scrapy_ext.server.jobs.nodes.notifiers.procrastinate import ProcrastinateCarrier
    except ImportError as error:
        if error.name != "procrastinate":
            raise
        raise StoreError(f'{config.database} needs Procrastinate: pip install "scrapy-ext[postgresql]".') from error
    return await ProcrastinateCarrier.open(store, config.database)
