"""Numbers of connections to PostgreSQL in the documentation and the files for deployment."""

from __future__ import annotations

import re
from pathlib import Path

from scrapy_ext.server.store.engine.connection_limits import NODE, SERVER, WORKER, ConnectionLimits

_ROOT = Path(__file__).parents[3]
#: Of a process that runs jobs: the pool of its node, a writer for heartbeats, which are never read, and notifications.
_OF_NODE = NODE.writers + NODE.readers + 1 + 1
_ADMINISTRATORS = 10


def _of(limits: ConnectionLimits, *, with_node: bool = True) -> int:
    return limits.writers + limits.readers + (_OF_NODE if with_node else 0)


def _numbers(file: str, pattern: str) -> list[int]:
    text = " ".join((_ROOT / file).read_text().split())
    found = re.search(pattern, text)
    assert found is not None, file
    return [int(number) for number in found.groups()]


def test_the_compose_file_has_room_for_the_connections_that_it_names() -> None:
    named = r"# (\d+) connections of the server, (\d+) of each worker, (\d+) for administrators"
    assert _numbers("deploy/compose.yaml", named) == [_of(SERVER), _of(WORKER), _ADMINISTRATORS]
    (most,) = _numbers("deploy/compose.yaml", r"max_connections=(\d+)")
    assert most >= _of(SERVER) + 3 * _of(WORKER) + _ADMINISTRATORS  # as its first lines start it


def test_the_pages_name_the_connections_of_the_pools() -> None:
    of_server = r"connections of a server - up to (\d+): (\d+) for writing and (\d+) for reading"
    assert _numbers("docs/howto/many-machines.rst", of_server) == [_of(SERVER), SERVER.writers, SERVER.readers]
    of_worker = r"connections of a worker - up to (\d+): (\d+) for writing, (\d+) for reading, and the same (\d+)"
    assert _numbers("docs/howto/many-machines.rst", of_worker) == [
        _of(WORKER),
        WORKER.writers,
        WORKER.readers,
        _OF_NODE,
    ]
    of_process = (
        r"takes up to (\d+) connections; (\d+) of them are for running jobs: with ``--no-runner`` it takes (\d+)"
    )
    assert _numbers("docs/howto/operate-store.rst", of_process) == [_of(SERVER), _OF_NODE, _of(SERVER, with_node=False)]
