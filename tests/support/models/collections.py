"""Collections of the four types: each key is linearizable, copies and expiry are exact, and names move whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from hypothesis import strategies as st

from scrapy_ext.api.platform.collections import EXPIRY_MS, CollectionType
from scrapy_ext.server.store.collections.selections import Collection, RecordSelection, key_range, prefix_range
from tests.support.models.history import REFUSED, UNKNOWN, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import HttpWorld, RefusedError, StoreWorld, accepted

NAMES = ("a", "b")
KEYS = ("k", "k1", "m\u00fc")
_HOUR = 3_600_000


class Write(NamedTuple):
    type: CollectionType
    name: str
    records: tuple[tuple[str, int], ...]
    now: int = 0


class Get(NamedTuple):
    type: CollectionType
    name: str
    key: str
    now: int = 0


class Copies(NamedTuple):
    type: CollectionType
    name: str
    key: str
    now: int = 0


class Scan(NamedTuple):
    """All records of keys with a prefix."""

    type: CollectionType
    name: str
    prefix: str
    now: int = 0


class Delete(NamedTuple):
    """The records of keys with a prefix, stored before a time that is so many hours ago."""

    type: CollectionType
    name: str
    prefix: str
    hours: int | None
    now: int = 0


class DeleteKeys(NamedTuple):
    type: CollectionType
    name: str
    keys: tuple[str, ...]
    now: int = 0


class Drop(NamedTuple):
    name: str


class Rename(NamedTuple):
    name: str
    new_name: str


class Names(NamedTuple):
    pass


class Count(NamedTuple):
    """Number of records, then their keys, one call after the other."""

    type: CollectionType
    name: str
    now: int = 0


class Wait(NamedTuple):
    """Time that passes: all clocks are set forward."""

    milliseconds: int


#: The copies of one key, newest first, as (when, value), by collection.
State = tuple[tuple[tuple[str, str], tuple[tuple[int, int], ...]], ...]
#: The part with the collections that there are.
_ALL = "collections"


class Collections:
    """The model: a key is what it is in every collection; which collections there are is a part of its own."""

    tables = ("collection_records", "collections")
    #: The type that most calls of a history are about.
    focuses = st.sampled_from(CollectionType)
    focus = CollectionType.STORE

    def initial(self, part: Any) -> Any:
        return frozenset() if part == _ALL else ()

    def parts(self, call: Call) -> Iterator[tuple[str, Call]]:
        operation = call.operation
        match operation:
            case Write():
                yield _ALL, call
                for key, value in dict(operation.records).items():
                    yield key, call._replace(operation=operation._replace(records=((key, value),)))
            case Get() | Copies():
                yield operation.key, call
            case Scan(prefix=prefix):
                for key in KEYS:
                    if key.startswith(prefix):
                        found = call.result if call.result is UNKNOWN else dict(call.result).get(key)
                        yield key, call._replace(operation=Get(*operation[:2], key, operation.now), result=found)
            case Delete(prefix=prefix):
                for key in KEYS:
                    if key.startswith(prefix):
                        yield key, call
            case DeleteKeys(keys=keys):
                for key in keys:
                    yield key, call
            case Drop() | Rename():
                yield _ALL, call
                for key in KEYS:
                    yield key, call
            case Names():
                yield _ALL, call

    def step(self, state: Any, operation: Any, result: Any) -> Iterator[Any]:
        return (self._of_all if isinstance(state, frozenset) else self._of_key)(state, operation, result)

    def _of_all(self, state: frozenset[tuple[str, str]], operation: Any, result: Any) -> Iterator[Any]:
        match operation:
            case Write(kind, name):
                yield state | {(kind.value, name)}
            case Names():
                yield from only(either(result, sorted(state)), state)
            case Drop(name):
                left = frozenset(each for each in state if each[1] != name)
                yield from only(either(result, left != state, None), left)
            case Rename(name, new_name):
                there = any(each[1] == name for each in state)
                if there and any(each[1] == new_name for each in state):
                    yield from only(either(result, REFUSED), state)
                else:
                    renamed = frozenset((kind, new_name if each == name else each) for kind, each in state)
                    yield from only(either(result, there), renamed)

    def _of_key(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        stored = dict(state)
        match operation:
            case Write(kind, name, ((_, value),), now):
                stored[kind.value, name] = written(kind, stored.get((kind.value, name), ()), now, value)
            case Get(kind, name, _, now):
                copies = alive(kind, stored.get((kind.value, name), ()), now)
                yield from only(either(result, copies[0] if copies else None), state)
                return
            case Copies(kind, name, _, now):
                yield from only(either(result, alive(kind, stored.get((kind.value, name), ()), now)), state)
                return
            case Delete() if result is REFUSED:
                pass
            case Delete(kind, name, _, hours, now):
                copies = alive(kind, stored.get((kind.value, name), ()), now)
                if copies and (hours is None or copies[0][0] < now - hours * _HOUR):
                    del stored[kind.value, name]
            case DeleteKeys(kind, name):
                stored.pop((kind.value, name), None)
            case Drop(name):
                if result is UNKNOWN:
                    yield state
                elif result is False and any(each == name for _, each in stored):
                    return
                stored = {place: copies for place, copies in stored.items() if place[1] != name}
            case Rename(name, new_name):
                if result is UNKNOWN or result is REFUSED:
                    yield state
                if result is REFUSED or (result is False and any(each == name for _, each in stored)):
                    return
                stored = {(kind, new_name if each == name else each): copies for (kind, each), copies in stored.items()}
        yield tuple(sorted(stored.items()))

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        kinds = st.sampled_from([*[self.focus] * 8, *CollectionType])
        names, keys = st.sampled_from([*NAMES, NAMES[0], NAMES[0]]), st.sampled_from(KEYS)
        prefixes = st.sampled_from(["", "k", "m", "none"])
        records = st.lists(st.tuples(keys, st.integers(0, 1)), min_size=1, max_size=3).map(tuple)
        write = made(Write, kinds, names, records)
        some = st.lists(keys, min_size=1, max_size=2, unique=True).map(tuple)
        each: list[st.SearchStrategy[Any]] = [
            *(write, write, write),
            *(made(Get, kinds, names, keys), made(Copies, kinds, names, keys)),
            *(made(Scan, kinds, names, prefixes), st.just(Names())),
            made(Delete, kinds, names, prefixes, st.none() | st.integers(0, 2)),
            *(made(DeleteKeys, kinds, names, some), made(Drop, st.sampled_from(NAMES))),
            st.sampled_from([Rename("a", "b"), Rename("b", "a")]),
        ]
        if not at_once:
            each.append(made(Wait, st.sampled_from([1, 1, _HOUR, EXPIRY_MS // 2, EXPIRY_MS - 1, EXPIRY_MS])))
            each.append(made(Count, kinds, names))
        return st.one_of(each)


def written(
    kind: CollectionType, before: tuple[tuple[int, int], ...], now: int, value: int
) -> tuple[tuple[int, int], ...]:
    """The copies of a key after a write: one that changes nothing makes no copy."""
    if kind.copies == 1:
        return ((now, value),)
    if kind.expires and before and before[0][0] + EXPIRY_MS <= now:
        before = ()
    kept = before[1:] if before and before[0][1] == value else before
    return ((now, value), *kept)[: kind.copies]


def alive(kind: CollectionType, copies: tuple[tuple[int, int], ...], now: int) -> list[tuple[int, int]]:
    """The copies that have not expired; none of a record that has."""
    if not kind.expires:
        return list(copies)
    if not copies or copies[0][0] + EXPIRY_MS <= now:
        return []
    return [copy for copy in copies if copy[0] + EXPIRY_MS > now]


def value_of(value: bytes) -> int:
    number: int = msgspec.json.decode(value)["v"]
    return number


class OnStores:
    """Operations of two stores in turn."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        self._world, self._project, self._turn = world, project, 0

    def resolved(self, operation: Any) -> Any:
        return operation._replace(now=self._world.clock.now) if "now" in operation._fields else operation

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store = self._world.stores[self._turn % 2].collections
        if isinstance(operation, Wait):
            self._world.clock.now += operation.milliseconds
            return None
        if isinstance(operation, Drop):
            return await store.drop(self._project, operation.name)
        if isinstance(operation, Rename):
            return await store.rename(self._project, operation.name, operation.new_name)
        if isinstance(operation, Names):
            return sorted((each.type, each.name) for each in await store.names(self._project))
        which = Collection(self._project, operation.type, operation.name)
        match operation:
            case Write(records=records):
                return await store.write(which, [(key.encode(), b'{"v":%d}' % value) for key, value in records])
            case Get(key=key):
                record = await store.get(which, key.encode())
                return None if record is None else (record.ts, value_of(record.value))
            case Copies(key=key):
                return [(copy.ts, value_of(copy.value)) for copy in await store.copies(which, key.encode())]
            case Scan(prefix=prefix):
                selection = RecordSelection((prefix_range(prefix.encode()),))
                pages = [page async for page in store.scan(which, selection)]
                found = [
                    (record.key.decode(), (record.ts, value_of(record.value))) for page in pages for record in page
                ]
                assert found == sorted(found, key=lambda each: each[0].encode())
                return found
            case Delete(prefix=prefix, hours=hours, now=now):
                end = None if hours is None else now - hours * _HOUR
                await store.delete(which, RecordSelection((prefix_range(prefix.encode()),), endts=end))
            case DeleteKeys(keys=keys):
                await store.delete_keys(which, [key.encode() for key in keys])
            case Count():
                everything = RecordSelection((prefix_range(b""),))
                one_by_one = RecordSelection(tuple(map(key_range, sorted(key.encode() for key in KEYS))))
                found = [record for page in [page async for page in store.scan(which, everything)] for record in page]
                named = [record for page in [page async for page in store.scan(which, one_by_one)] for record in page]
                assert found == named
                for most in (1, 2, None):
                    first = [
                        each for page in [page async for page in store.scan(which, everything, most)] for each in page
                    ]
                    assert first == found[:most]
                assert (await store.count(which, everything)).count == len(found)
        return None


class OverHttp:
    """The same over HTTP, where nobody moves the clock: what counts of a time is that there is one."""

    def __init__(self, world: HttpWorld, project: int) -> None:
        self._world, self._project = world, project

    def resolved(self, operation: Any) -> Any:
        return operation

    async def make(self, operation: Any) -> Any:
        http, project = self._world.http, self._project
        if isinstance(operation, Drop):
            accepted(await http.post(f"/collections/{project}/delete?name={operation.name}"))
            return None
        if isinstance(operation, Rename):
            answer = await http.post(
                f"/collections/{project}/rename?name={operation.name}&new_name={operation.new_name}"
            )
            return answer.status != 404 and bool(accepted(answer, 400, 409))
        if isinstance(operation, Names):
            lines = accepted(await http.get(f"/collections/{project}/list")).lines
            return sorted((line["type"], line["name"]) for line in lines)
        if isinstance(operation, Wait | Count):
            return None
        path = f"/collections/{project}/{operation.type.value}/{operation.name}"
        match operation:
            case Write(records=records):
                accepted(await http.post(path, [{"_key": key, "v": value} for key, value in records]))
            case Get(key=key):
                answer = await http.get(f"{path}/{_quoted(key)}")
                return None if answer.status == 404 else (0, accepted(answer).lines[0]["v"])
            case Copies(key=key):
                answer = await http.get(f"{path}/{_quoted(key)}?copies=3")
                return [] if answer.status == 404 else [(0, line["v"]) for line in accepted(answer).lines]
            case Scan(prefix=prefix):
                lines = accepted(await http.get(f"{path}?prefix={_quoted(prefix)}&meta=_key")).lines
                return [(line["_key"], (0, line["v"])) for line in lines]
            case Delete(prefix=prefix, hours=hours):
                end = "" if hours is None else "&endts=1"  # what was stored in the last hours stays
                answer = await http.call("DELETE", f"{path}?prefix={_quoted(prefix)}{end}")
                if not prefix:  # it is the start of every key: one never deletes a whole collection so
                    assert answer.status == 400, (answer.status, answer.body)
                    raise RefusedError
                accepted(answer)
            case DeleteKeys(keys=keys):
                accepted(await http.post(f"{path}/deleted", list(keys)))
        return None


def _quoted(text: str) -> str:
    return quote(text, safe="")
