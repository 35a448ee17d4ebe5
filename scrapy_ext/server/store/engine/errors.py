"""Errors of the store itself. Input that breaks a rule raises ``ContractError`` instead."""

from __future__ import annotations

from typing import ClassVar, Final

#: Remedies for a data directory that cannot be written.
OTHER_PLACE: Final = (
    "Name a folder that can be written, with --data or the setting SERVER_DATA; or store elsewhere, with --database or "
    "the setting PLATFORM_URL."
)


class StoreError(Exception):
    """The store failed, and stored nothing. The message says what to do.

    The message may name the address of the database or its files. Clients receive ``public`` instead.
    """

    public: ClassVar[str] = "The store failed to do this. The log of the server says why."


class DamagedRecordsError(StoreError):
    """Stored records cannot be read; all others can."""


class StoreFullError(StoreError):
    """The disk refused a write: it is full, over a quota, or failing."""

    public = "The disk of the store takes no more. Try again when there is room on it."


class StoreBusyError(StoreError):
    """The database was locked for too long, or is unavailable. The same call may succeed later."""

    public = "The store is busy. Try again later."


class StoreAwayError(StoreBusyError):
    """The database cannot be reached."""

    public = "The store is away. Try again later."


class StoreUncertainError(StoreBusyError):
    """The connection was lost during a commit, and the result is unknown. Read before repeating the call."""

    public = (
        "The store could not be reached during a commit. What was sent may be stored or not: read it, or send it again "
        "if that does no harm."
    )


class SchemaError(StoreError):
    """The schema of the database is not one that this version supports, or is another program's."""
