"""The name of ``zipfile`` that replaces the compressor of a part of an archive.

Without it the part is compressed by zlib, which takes three times as long.
"""

from __future__ import annotations

from typing import IO, Any


def compress_with(part: IO[bytes], compressor: Any) -> bool:
    """Give a part that was opened for writing another compressor, of raw deflate; return false if it takes none."""
    if getattr(part, "_compressor", None) is None:
        return False
    part._compressor = compressor  # type: ignore[attr-defined]
    return True
