"""Tests that need Python alone: one that starts a process, opens a socket or a database fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

#: Audit events of Python for what belongs into another lane.
_REAL_PARTS = frozenset({"os.exec", "os.fork", "os.posix_spawn", "socket.bind", "socket.connect", "sqlite3.connect"})
_REAL_PARTS |= {"subprocess.Popen"}

_under_test = False


def _refuse(event: str, arguments: object) -> None:
    if _under_test and event in _REAL_PARTS:
        raise AssertionError(f"{event} in a unit test: it belongs into tests/integration")


@pytest.fixture(scope="session")
def _audited() -> None:
    """An audit hook stays, and slows each import, so it is added where one of these tests runs."""
    sys.addaudithook(_refuse)


@pytest.fixture(autouse=True)
def _python_alone(_audited: None) -> Iterator[None]:
    global _under_test  # noqa: PLW0603 - an audit hook stays for the life of the process
    _under_test = True
    yield
    _under_test = False
