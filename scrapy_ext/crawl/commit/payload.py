"""Items of a commit, laid down before it, so that whoever takes over can store them again.

Without that, a crawl that dies between two steps leaves open whether its items are stored, or whether they still
arrive: a call of a dead process can sit in a socket. With it, a successor stores the very same bytes at the very same
place, and it does not matter which of the two comes first.

A payload is some records of a collection. Its key has the name of its process and a number that the process uses once:
whatever arrives late changes nothing. It is removed when no record of a journal names it any more.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.client.platform.collections import Collections

#: The collection, one in a project.
COLLECTION: Final = "scrapy_commits"
_TYPE: Final = CollectionType.STORE.value
#: Characters of one record: less than the platform takes, for the rest of the record.
_PART: Final = 900_000


class Payloads:
    """The payloads of a project."""

    def __init__(self, client: Collections, project: int) -> None:
        self._client = client
        self._project = project

    async def write(self, owner: str, number: int, packed: bytes) -> None:
        """Lay down items: JSON lines, compressed."""
        text = base64.b64encode(packed).decode()
        pieces = [text[first : first + _PART] for first in range(0, len(text), _PART)]
        # The first piece last: whoever finds it finds the others.
        for place, piece in reversed(list(enumerate(pieces))):
            record = {"_key": _key(owner, number, place), "pieces": len(pieces), "items": piece}
            line = msgspec.json.encode(record) + b"\n"
            await self._client.write(self._project, _TYPE, COLLECTION, line, attempts=1, encoding="identity")

    async def read(self, owner: str, number: int) -> bytes | None:
        """The items as they were laid down; None when they are not there."""
        pieces: list[str] = []
        total = 1
        while len(pieces) < total:
            key = _key(owner, number, len(pieces))
            record: dict[str, Any] | None = await self._client.get(self._project, _TYPE, COLLECTION, key)
            if record is None:
                return None
            pieces.append(record["items"])
            total = record["pieces"]
        return base64.b64decode("".join(pieces))

    async def delete(self, owner: str, numbers: Iterable[int]) -> None:
        """Remove what was laid down under these numbers."""
        prefixes = [f"{owner}/{number}." for number in numbers]
        await self._client.delete(self._project, _TYPE, COLLECTION, prefix=prefixes)

    async def delete_all(self, prefix: str) -> None:
        """Remove what was laid down by owners whose names start so."""
        await self._client.delete(self._project, _TYPE, COLLECTION, prefix=prefix)


def _key(owner: str, number: int, place: int) -> str:
    return f"{owner}/{number}.{place}"
