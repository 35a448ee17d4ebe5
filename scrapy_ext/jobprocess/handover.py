"""Secrets that one process hands to the next by a descriptor: what a program is executed with, its command line and its
environment, can be read by others for as long as it runs."""

from __future__ import annotations

import os
import tempfile


def offer(data: bytes) -> int:
    """A descriptor from which a process that is given it can :func:`take` the data. Close it here afterwards."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("handover")
    else:
        with tempfile.TemporaryFile() as file:  # which has no name
            descriptor = os.dup(file.fileno())
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def take(descriptor: int) -> bytes:
    """The data that was offered; raises ``OSError``."""
    with open(descriptor, "rb") as file:
        return file.read()
