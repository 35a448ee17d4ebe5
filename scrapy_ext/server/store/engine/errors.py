"""Every way in which the store itself can fail. Input that breaks a rule raises ``ContractError`` instead."""

from __future__ import annotations

from typing import ClassVar


class StoreError(Exception):
    """The store cannot do what it was asked; the message says what to do about it. Nothing was stored.

    The message may name the database's address or its files. ``public`` is what anyone may be told instead.
    """

    public: ClassVar[str] = "The store failed to do this. The log of the server says why."


class StoreFullError(StoreError):
    """The disk took no more: full, over a quota, or failing."""

    public = "The disk of the store takes no more. Try again when there is room on it."


class StoreBusyError(StoreError):
    """The database was held by others for too long, or is away. The same call may work later."""

    public = "The store is busy. Try again later."


class StoreAwayError(StoreBusyError):
    """The database cannot be reached."""

    public = "The store is away. Try again later."


class StoreUncertainError(StoreBusyError):
    """The database went away while it was committing and cannot tell any more whether it did. Look before repeating."""

    public = (
        "The store went away while it was committing. What was sent may be stored or not: look, or send it again if "
        "that does no harm."
    )


class SchemaError(StoreError):
    """The database was written by a newer version of this package, or is not one of its databases."""
