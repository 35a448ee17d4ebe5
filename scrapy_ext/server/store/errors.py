"""Every way in which the store itself can fail. Input that breaks a rule raises ``ContractError`` instead."""

from __future__ import annotations


class StoreError(Exception):
    """The store cannot do what it was asked; the message says what to do about it. Nothing was stored."""


class StoreFullError(StoreError):
    """The disk took no more: full, over a quota, or failing."""


class StoreBusyError(StoreError):
    """The database was held by another process for too long, or is away. The same call may work later."""


class StoreUncertainError(StoreBusyError):
    """The database went away while it was committing and cannot tell any more whether it did. Look before repeating."""


class SchemaError(StoreError):
    """The database was written by a newer version of this package, or is not one of its databases."""
