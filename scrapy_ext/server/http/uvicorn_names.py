"""The names of uvicorn's inside that the server uses, and their check before it starts.

uvicorn documents no hook for bounds on a request before the application sees it, or for the bytes that a client has not
read. So ``http/protocol.py`` extends its protocol class, and ``serve.py`` its server. A release that renames a method
which is replaced here would not fail: the bounds would be gone. Hence the check, and the bounds of the version in
``pyproject.toml``; ``nox --session uvicorn-newest-python-3.13`` tests the newest release.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

#: The releases of ``pyproject.toml``: those that are tested.
SUPPORTED: Final = "uvicorn>=0.34,<0.55"

#: The names, by class: methods that are called or replaced, and attributes.
NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "uvicorn.protocols.http.httptools_impl.HttpToolsProtocol": (
            # callbacks of the parser, which httptools names
            *("on_body", "on_header", "on_headers_complete", "on_message_begin", "on_url"),
            *("on_response_complete", "send_400_response", "timeout_keep_alive_handler"),
            # ``cycle`` is the current request with its answer, ``pipeline`` the requests after it, newest first
            *("client", "cycle", "flow", "headers", "loop", "pipeline", "scope", "transport", "url"),
        ),
        "uvicorn.protocols.http.httptools_impl.RequestResponseCycle": (
            # ``body`` is the part of a request that the application has not read. ``transport`` is replaced before the
            # application runs, ``keep_alive`` is set to False; the others are read.
            *("body", "chunked_encoding", "disconnected", "keep_alive", "response_complete", "scope", "transport"),
            # read, or set, for an answer that is sent in one piece
            *("default_headers", "message_event", "response_started", "waiting_for_100_continue"),
        ),
        "uvicorn.protocols.http.flow_control.FlowControl": (
            *("drain", "read_paused", "resume_reading", "write_paused"),
        ),
        "uvicorn.Server": ("capture_signals", "force_exit", "should_exit", "started", "startup"),
    }
)


def unsupported() -> str:
    """Return the reason why the server does not run on this release of uvicorn; empty where it does."""
    missing = list(_missing())
    if not missing:
        return ""
    version = getattr(importlib.import_module("uvicorn"), "__version__", "")
    return f"uvicorn {version} has no {', '.join(missing)}; the server needs {SUPPORTED}: pip install '{SUPPORTED}'"


def _missing() -> Iterator[str]:
    for path, names in NAMES.items():
        module, _, name = path.rpartition(".")
        try:
            found: object = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            yield path
            continue
        # Attributes are set when an object is made, which takes a connection, and when a request begins.
        codes = [getattr(getattr(found, each, None), "__code__", None) for each in ("__init__", "on_message_begin")]
        known = {*dir(found), *(each for code in codes if code is not None for each in code.co_names)}
        yield from (f"{name}.{each}" for each in names if each not in known)
