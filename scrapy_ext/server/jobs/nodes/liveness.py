"""Whether nodes of this machine are there, told at once by a lock that ends with its process.

For nodes that share a folder with SQLite. Their beats would tell it, too, but a server that was killed and is started
again need not wait for that: the node of the process before it is dead, and its jobs can go on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_FOLDER: Final = "nodes"


class Presence:
    """The locks in a folder of data; None: there is none, and nothing is known."""

    def __init__(self, data: Path | None) -> None:
        self._folder = None if data is None else data / _FOLDER
        self._held: dict[str, int] = {}

    def show(self, name: str) -> None:
        """From now on until this process ends, a node is there. Best effort: without it, the beat tells."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)
            self._held[name] = file
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def hide(self, name: str) -> None:
        """A node has left."""
        file = self._held.pop(name, None)
        if file is not None and self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
            os.close(file)

    def gone(self, names: Iterable[str]) -> list[str]:
        """Of these nodes those that are certainly not there any more."""
        return [name for name in names if name not in self._held and self._is_gone(name)]

    def _is_gone(self, name: str) -> bool:
        if self._folder is None or "/" in name:
            return False
        try:
            file = os.open(self._folder / name, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self._folder / name).unlink()
        except OSError:
            return False
        finally:
            os.close(file)
        return True
