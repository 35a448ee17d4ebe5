"""Collections (platform-api.md, Collections)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.collections import RESERVED_KEYS, CollectionName, Count, check_name, parse_type
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.platform.answers import Answer
from scrapy_ext.client.platform.calls import JSON, ClientCall, Value, delete, get, path, post
from scrapy_ext.client.platform.errors import BadRequest, NotFound
from scrapy_ext.client.platform.json_lines import StoredLine, keyed_record, record, stored_line
from scrapy_ext.client.platform.resource import Pages, Resource

#: Keys in one query.
_MAX_KEYS: Final = 100
#: Bytes of the keys in one query: a server or proxy may refuse a longer one.
_QUERY_LENGTH: Final = 4000
#: Keys that can be the last segment of a path; others go into a parameter. Servers and proxies disagree on an encoded
#: slash, and a path cannot end in a dot segment or a reserved word.
_PATH_KEY: Final = re.compile(r"[^/\\?#\x00-\x1f\x7f]{1,512}")


class Collections(Resource):
    """Records by key, shared by the jobs of a project."""

    async def list(self, project: int) -> list[CollectionName]:
        return await self._lines(get(Host.STORAGE, path("collections", project, "list")), CollectionName)

    async def get(self, project: int, type: str, name: str, key: str) -> dict[str, Any] | None:
        """Return the record with this key, without ``_key``; None if there is none."""
        where = _path(project, type, name)
        call = (
            get(Host.STORAGE, where + path(key))
            if _in_path(key)
            else get(Host.STORAGE, where, ("key", key), ("count", 1))
        )
        try:
            return await self._transport.read(call, _one)
        except NotFound:
            return None

    def iter(
        self,
        project: int,
        type: str,
        name: str,
        *,
        keys: Iterable[str] | None = None,
        prefix: str | Sequence[str] | None = None,
        prefixcount: int | None = None,
        startts: int | None = None,
        endts: int | None = None,
        start: str | None = None,
        startafter: str | None = None,
        count: int | None = None,
        meta: Sequence[str] = ("_key",),
        conditions: Sequence[Sequence[Any]] = (),
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield records in the order of their keys, with the fields that ``meta`` names.

        Selected by ``keys`` (any number; absent ones are left out), ``prefix``, time of writing (milliseconds), first
        key, and ``conditions`` (``api.platform.conditions``), which all must be met. They are read in pages while they
        are consumed; a broken connection is opened again.
        """
        where = _path(project, type, name)
        filters: tuple[tuple[str, Value], ...] = (
            ("prefix", prefix),
            ("prefixcount", prefixcount),
            ("startts", startts),
            ("endts", endts),
            ("meta", tuple(dict.fromkeys(("_key", *meta)))),
            ("filter", tuple(msgspec.json.encode(each).decode() for each in conditions) or None),
        )
        parse = partial(keyed_record, keep_key="_key" in meta)
        if keys is not None:
            return self._by_keys(where, keys, filters, parse, count)

        def call(after: str | None, size: int | None) -> ClientCall:
            return get(
                Host.STORAGE,
                where,
                ("count", size),
                ("start", None if after is not None else start),
                ("startafter", startafter if after is None else after),
                *filters,
            )

        return Pages(self._transport, call, parse, count=count).read()

    def stored(
        self, project: int, type: str, name: str, *, startafter: str | None = None, startts: int | None = None
    ) -> AsyncGenerator[StoredLine]:
        """Yield records in the order of their keys, with their bytes and the times when they were stored."""

        def parse(line: bytes) -> tuple[str, StoredLine]:
            found = stored_line(line)
            return found.key, found

        def call(after: str | None, size: int | None) -> ClientCall:
            return get(
                Host.STORAGE,
                _path(project, type, name),
                ("count", size),
                ("startafter", startafter if after is None else after),
                ("startts", startts),
                ("meta", ("_key", "_ts")),
            )

        return Pages(self._transport, call, parse).read()

    async def copies(self, project: int, type: str, name: str, key: str, count: int) -> Sequence[StoredLine]:
        """Return the copies of a record that a versioned collection keeps, the newest first; none if the platform does
        not report them. An extension: the hosted platform documents no such call."""
        if key in (".", "..", *RESERVED_KEYS):
            return []
        where = _path(project, type, name) + path(key)
        call = get(Host.STORAGE, where, ("copies", count), ("meta", ("_key", "_ts")))
        try:
            return [stored_line(bytes(line)) for line in await self._lines(call, msgspec.Raw)]
        except (NotFound, BadRequest):
            return []

    async def _by_keys(
        self,
        where: str,
        keys: Iterable[str],
        filters: tuple[tuple[str, Value], ...],
        parse: Any,
        count: int | None,
    ) -> AsyncGenerator[dict[str, Any]]:
        left = count
        for some in _groups(sorted(set(keys))):

            def call(after: str | None, _: int | None, some: Sequence[str] = some) -> ClientCall:
                wanted = some if after is None else [key for key in some if key > after]
                return get(Host.STORAGE, where, ("key", wanted), ("startafter", after), *filters)

            pages = Pages(self._transport, call, parse, count=left, by_count=False)
            async for found in pages.read():
                if left is not None:
                    left -= 1
                yield found
            if left == 0:
                return

    async def write(
        self,
        project: int,
        type: str,
        name: str,
        body: bytes,
        *,
        attempts: int | None = None,
        encoding: str | None = None,
    ) -> None:
        """Create or replace records, given as JSON lines with a ``_key`` each. Repeated after a failure, since
        writing the same records twice changes nothing. ``encoding`` is the content encoding of ``body``, if it has
        one; ``identity`` leaves it uncompressed."""
        await self._transport.send(
            post(Host.STORAGE, _path(project, type, name), body, attempts=attempts, encoding=encoding)
        )

    async def delete_keys(self, project: int, type: str, name: str, keys: Iterable[str]) -> None:
        """Delete the records with these keys; absent ones are ignored."""
        await self._delete_keys(_path(project, type, name) + "/deleted", [*keys])

    async def delete(
        self,
        project: int,
        type: str,
        name: str,
        *,
        prefix: str | Sequence[str],
        prefixcount: int | None = None,
        startts: int | None = None,
        endts: int | None = None,
    ) -> None:
        """Delete the records whose keys have this prefix; faster than :meth:`delete_keys` for consecutive keys."""
        call = delete(
            Host.STORAGE,
            _path(project, type, name),
            ("prefix", prefix),
            ("prefixcount", prefixcount),
            ("startts", startts),
            ("endts", endts),
        )
        await self._transport.send(call)

    async def count(
        self,
        project: int,
        type: str,
        name: str,
        *,
        prefix: str | Sequence[str] | None = None,
        startts: int | None = None,
        endts: int | None = None,
    ) -> int:
        """Return the number of records."""
        where = _path(project, type, name) + "/count"
        filters: tuple[tuple[str, Value], ...] = (("prefix", prefix), ("startts", startts), ("endts", endts))
        return await self._count(lambda start: get(Host.STORAGE, where, *filters, ("start", start), accept=JSON), Count)

    async def drop(self, project: int, name: str) -> None:
        """Delete a collection of any type."""
        check_name(name)
        where = path("collections", project, "delete")
        await self._transport.send(post(Host.STORAGE, where, b"", parameters=(("name", name),)))

    async def rename(self, project: int, name: str, new_name: str) -> None:
        """Rename a collection of any type. Sent once, since a second attempt would not find it."""
        check_name(name)
        check_name(new_name, "new_name")
        where = path("collections", project, "rename")
        parameters = (("name", name), ("new_name", new_name))
        await self._transport.send(post(Host.STORAGE, where, b"", parameters=parameters, repeatable=False))


def _path(project: int, type: str, name: str) -> str:
    check_name(name)
    return path("collections", project, parse_type(type).value, name)


def _in_path(key: str) -> bool:
    return _PATH_KEY.fullmatch(key) is not None and key not in (".", "..", *RESERVED_KEYS)


def _one(answer: Answer) -> dict[str, Any] | None:
    found = answer.lines(msgspec.Raw)
    return record(bytes(found[0])) if found else None


def _groups(keys: Sequence[str]) -> Iterator[list[str]]:
    """Divide keys into groups that fit into a query."""
    group: list[str] = []
    length = 0
    for key in keys:
        if group and (len(group) == _MAX_KEYS or length + len(key) * 3 > _QUERY_LENGTH):
            yield group
            group, length = [], 0
        group.append(key)
        length += len(key) * 3
    if group:
        yield group
