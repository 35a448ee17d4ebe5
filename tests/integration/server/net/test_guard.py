from __future__ import annotations

import socket

import pytest

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.net.guard import Endpoint, Guard

PUBLIC = "93.184.215.14"


def guard_of(*answers: list[str] | Exception, **options: object) -> Guard:
    """A guard whose resolver gives these answers, one a lookup, the last one for ever."""
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Guard(resolve=resolve, **{"cache_time": 0.0, **options})  # type: ignore[arg-type]


async def test_a_connection_tries_the_next_address_when_one_is_dead() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        guard = guard_of(["127.0.0.2", "127.0.0.1"], allow_hosts=[f"two.example:{port}"])
        _, writer = await guard.connect("two.example", port)
        assert writer.get_extra_info("peername")[0] == "127.0.0.1"
        writer.close()


async def test_a_name_that_turns_private_between_two_connections_is_never_connected_to() -> None:
    # The listener is the only thing that could be reached; its name is public for the first lookup alone.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        guard = guard_of([PUBLIC], ["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::ffff:127.0.0.1"])
        assert await guard.endpoints("rebind.example", 8080) == [Endpoint(PUBLIC, 8080)]
        for _ in range(3):
            with pytest.raises(ExtractionError, match="not public"):
                await guard.connect("rebind.example", 8080)
        with pytest.raises(ExtractionError, match=f"Port {port}"):
            await guard.connect("rebind.example", port)
        # Connections come in their order: the first is the test's own.
        with socket.create_connection(("127.0.0.1", port)) as own:
            connection, first = listener.accept()
            connection.close()
            assert first == own.getsockname()
