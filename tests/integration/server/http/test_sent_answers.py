"""Answers on the wire: one piece where they are short, at once where they have no body."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.support.servers import RunningServer

_SECONDS = 60
#: A project without jobs: those of other tests have some.
COUNT = "/jobq/660001/count"


@contextmanager
def connected(server: RunningServer) -> Iterator[socket.socket]:
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), _SECONDS) as connection:
        yield connection


def head(server: RunningServer, method: str, path: str, *more: str) -> bytes:
    credentials = b64encode(f"{server.platform_key}:".encode()).decode()
    lines = (f"{method} {path} HTTP/1.1", "Host: a", f"Authorization: Basic {credentials}", *more)
    return "\r\n".join([*lines, "", ""]).encode()


def received(connection: socket.socket, body: int) -> bytes:
    """All of an answer with a body of so many bytes."""
    data = b""
    while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < body:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


def test_a_short_answer_is_sent_as_one_piece(server: RunningServer) -> None:
    with connected(server) as connection:
        for _ in range(20):
            connection.sendall(head(server, "GET", COUNT))
            found, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            assert found.startswith(b"HTTP/1.1 200 ")
            assert body == b"0"


def test_an_answer_without_a_body_is_sent_at_once(server: RunningServer) -> None:
    with connected(server) as connection:
        for _ in range(3):
            connection.sendall(head(server, "HEAD", COUNT))
            assert connection.recv(65536).endswith(b"\r\n\r\n")


def test_a_body_is_asked_for_before_its_answer(server: RunningServer) -> None:
    with connected(server) as connection:
        for number in range(3):
            line = b'{"text": "%s"}' % (b"x" * 100_000)
            expecting = ("Expect: 100-continue", f"Content-Length: {len(line)}")
            connection.sendall(head(server, "POST", f"/items/66/1/1?start={number}", *expecting))
            assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(line)
            assert received(connection, 0).startswith(b"HTTP/1.1 200 ")
            connection.sendall(head(server, "GET", f"/items/66/1/1/{number}"))
            assert received(connection, len(line) + 1).endswith(line + b"\n")


def test_pipelined_requests_are_answered_whole_and_in_their_order(server: RunningServer) -> None:
    paths = ["/system/ts", COUNT, "/nowhere", COUNT]
    with connected(server) as connection:
        connection.sendall(b"".join(head(server, "GET", path) for path in paths))
        data = b""
        while data.count(b"\r\n\r\n") < len(paths) or not data.endswith(b"\r\n\r\n0"):
            piece = connection.recv(65536)
            assert piece, data
            data += piece
    statuses = [part[:3] for part in data.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"200", b"404", b"200"]


def test_the_key_of_the_server_is_checked_on_every_request(server: RunningServer) -> None:
    wrong = b64encode(f"{server.platform_key[:-1]}:".encode()).decode()
    for _ in range(2):
        with connected(server) as connection:
            connection.sendall(head(server, "GET", COUNT))
            assert received(connection, 1).startswith(b"HTTP/1.1 200 ")
            refused = f"GET {COUNT} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {wrong}\r\n\r\n"
            connection.sendall(refused.encode())
            assert received(connection, 1).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", [COUNT, "/nowhere"])
def test_the_connection_is_closed_after_the_answer_where_the_client_wants_that(
    server: RunningServer, path: str
) -> None:
    with connected(server) as connection:
        connection.sendall(head(server, "GET", path, "Connection: close"))
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert b"\r\nconnection: close\r\n" in data.partition(b"\r\n\r\n")[0].lower() + b"\r\n"
