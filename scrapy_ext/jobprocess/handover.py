"""Data that one process passes to the next by a descriptor. Others can read the arguments and environment of a running
program, so that secrets do not belong there. Imports the standard library alone: builds of projects have no other."""

from __future__ import annotations

import os


def offer(data: bytes) -> int:
    """Return a descriptor from which a process that inherits it can :func:`take` the data. Close it afterwards."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("handover")
    else:
        # Imported where it is used: each job has a supervisor, and this is much for one.
        import tempfile

        with tempfile.TemporaryFile() as file:  # which has no name
            descriptor = os.dup(file.fileno())
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def take(descriptor: int) -> bytes:
    """Return the data that was offered; raises ``OSError``."""
    with open(descriptor, "rb") as file:
        return file.read()
