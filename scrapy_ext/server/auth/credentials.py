"""Credentials of requests, and the callers of the extraction service that they name."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple


class Caller(NamedTuple):
    """A caller of the extraction service: the name of its key and its organisation, which share limits of a domain.

    ``refusal`` is the reason why the key has no access to the service, or "".
    """

    name: str
    organisation: str
    refusal: str = ""


class CallerLookupError(Exception):
    """The caller of a key cannot be looked up now."""


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    """Return user name and password of an ``Authorization: Basic`` header; None when it is absent or malformed."""
    scheme, _, payload = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(payload.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, separator, password = decoded.partition(":")
    return (name, password) if separator else None


def key_in(authorization: str) -> str:
    """Return the key of an ``Authorization`` header: the user name of Basic, or the token of Bearer; "" without one."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() == "bearer":
        # A user name has no colon, so that each key can be sent in both ways.
        return "" if ":" in token else token.strip()
    name, _ = basic_credentials(authorization) or ("", "")
    return name
