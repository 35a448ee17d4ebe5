"""Basic authentication as both services take it: the key as user name, an empty password."""

from __future__ import annotations

import base64


def authorization(key: str, setting: str) -> str:
    """The ``Authorization`` header of a key; raises :class:`ValueError` naming ``setting``, and never the key."""
    if not key:
        raise ValueError(f"{setting} is not set. Set it to the key of the service.")
    if ":" in key or not key.isprintable() or key != key.strip():
        raise ValueError(
            f"{setting} must be a key of printable characters without ':' or blanks around it. Copy the key again."
        )
    return f"Basic {base64.b64encode(f'{key}:'.encode()).decode()}"
