"""Clocks of child processes that can be set forward and back, without privileges and without touching the machine's."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

_SOURCE = Path(__file__).with_name("offset_clock.c")


def library(folder: Path) -> Path | None:
    """Compile the library that shifts the clock, into a folder; None where that is not possible."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        return None
    built = folder / "offset_clock.so"
    done = subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", built, _SOURCE], check=False, capture_output=True)
    return built if done.returncode == 0 else None


class Clock:
    """The clock of one process and of all that it starts."""

    def __init__(self, built: Path, file: Path) -> None:
        self._file = file
        file.write_bytes(struct.pack("=q", 0))
        self.environment = {"LD_PRELOAD": str(built), "OFFSET_CLOCK": str(file)}

    def step(self, seconds: float) -> None:
        """Set the clock so many seconds before (or, negative, behind) that of the machine."""
        with self._file.open("r+b") as file:  # not replaced: the processes have it in their memory
            file.write(struct.pack("=q", round(seconds * 1e9)))
