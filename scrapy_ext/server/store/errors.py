"""Every way in which the store itself can fail. Input that breaks a rule raises ``ContractError`` instead."""

from __future__ import annotations


class StoreError(Exception):
    """The store cannot do what it was asked; the message says what to do about it. Nothing was stored."""


class StoreFullError(StoreError):
    """The disk took no more: full, over a quota, or failing."""


class StoreBusyError(StoreError):
    """Another process held the database for too long. The same call may work later."""


class SchemaError(StoreError):
    """The database was written by a newer version of this package, or is not one of its databases."""
