"""Keys: a name is given once, a key opens what it was made for, and nothing any more when it is revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.auth.api_keys import REFRESH_SECONDS, add_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.keys import StoredKey
from tests.support.http import Http
from tests.support.models.history import UNKNOWN, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import HttpWorld, StoreWorld

NAMES = ("ann", "bob")


class Create(NamedTuple):
    """``role``: of one project, of all of them or of none; ``token`` distinguishes this key from others of the name."""

    name: str
    role: str
    may_write: bool
    token: int = 0


class Revoke(NamedTuple):
    name: str


class Suspend(NamedTuple):
    name: str
    suspended: bool


class Named(NamedTuple):
    pass


class Keep(NamedTuple):
    """Of a secret the first value is kept."""

    name: str
    value: int


class Secret(NamedTuple):
    name: str


class Use(NamedTuple):
    """A call with the newest key of a name that was made here."""

    name: str
    writes: bool
    token: int = 0


class Settle(NamedTuple):
    """Wait until servers have read the keys again."""


class Key(NamedTuple):
    token: int
    role: str
    may_write: bool
    suspended: bool = False

    def answer(self, *, writes: bool) -> int:
        """The status of a call to the project."""
        if self.suspended or self.role == "none":
            return 401
        return 403 if writes and not self.may_write else 200


#: The key of a name now, and what servers may still take for it.
State = tuple[Key | None, frozenset[Key | None]]


class Keys:
    """The model: each name by itself."""

    tables = ("api_keys",)

    def initial(self, part: Any) -> Any:
        return None if part[0] == "secret" else (None, frozenset([None]))

    def parts(self, call: Call) -> Iterator[tuple[Any, Call]]:
        operation = call.operation
        if isinstance(operation, Keep | Secret):
            yield ("secret", operation.name), call
        elif isinstance(operation, Named | Settle):
            for name in NAMES:
                result = dict(call.result).get(name) if isinstance(call.result, list) else call.result
                yield ("key", name), call._replace(result=result)
        else:
            yield ("key", operation.name), call

    def step(self, state: Any, operation: Any, result: Any) -> Iterator[Any]:
        match operation:
            case Keep(_, value):
                kept = value if state is None else state
                yield from only(either(result, kept), kept)
            case Secret():
                yield from only(either(result, state), state)
            case Use(_, writes, token):
                yield from only(result is UNKNOWN or self._may_answer(state, token, writes, result), state)
            case Settle():
                yield state[0], frozenset([state[0]])
            case Named():
                yield from only(either(result, state[0]), state)
            case _:
                yield from self._change(state, operation, result)

    def _change(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        key, known = state
        match operation:
            case Create(_, role, may_write, token):
                following = Key(token, role, may_write) if key is None else key
                done = key is None
            case Revoke():
                following, done = None, key is not None
            case Suspend(_, suspended):
                following, done = key and key._replace(suspended=suspended), key is not None
            case _:
                return
        yield from only(either(result, done), (following, known | {following}))

    def _may_answer(self, state: State, token: int, writes: bool, status: int) -> bool:
        answers = {each.answer(writes=writes) if each is not None and each.token == token else 401 for each in state[1]}
        return status in answers

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        names = st.sampled_from(NAMES)
        create = made(Create, names, st.sampled_from(["one", "all", "none"]), st.booleans())
        use = made(Use, names, st.booleans())
        secrets = [made(Keep, names, st.integers(0, 3)), made(Secret, names)]
        each: list[st.SearchStrategy[Any]] = [
            *(create, create, made(Revoke, names), made(Suspend, names, st.booleans()), st.just(Named())),
            *(*secrets, use, use),
        ]
        if not at_once:
            each.append(st.just(Settle()))
        return st.one_of(each)


class _Making:
    """Numbers for the keys that are made, and the keys themselves."""

    def __init__(self, project: int) -> None:
        self._project = project
        self._tokens = 0
        self._newest: dict[str, int] = {}

    def resolved(self, operation: Any) -> Any:
        if isinstance(operation, Create):
            self._tokens += 1
            self._newest[operation.name] = self._tokens
            return operation._replace(token=self._tokens)
        if isinstance(operation, Use):
            return operation._replace(token=self._newest.get(operation.name, 0))
        return operation

    def _name(self, name: str) -> str:
        return f"{name}-{self._project}"

    def _projects(self, role: str) -> frozenset[int] | None:
        return None if role == "all" else frozenset([self._project] if role == "one" else [])

    def _role(self, key: StoredKey) -> str:
        return "all" if key.projects is None else "one" if key.projects else "none"

    def _ours(self, found: list[StoredKey]) -> list[tuple[str, StoredKey]]:
        return [(key.name.partition("-")[0], key) for key in found if key.name.endswith(f"-{self._project}")]


class OnStores(_Making):
    """Operations of two stores in turn; nobody uses a key."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        super().__init__(project)
        self._world, self._turn = world, 0

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store = self._world.stores[self._turn % 2].keys
        match operation:
            case Create(name, role, may_write, token):
                return await store.add(StoredKey(self._name(name), str(token), self._projects(role), may_write))
            case Revoke(name):
                return await store.remove(self._name(name))
            case Suspend(name, suspended):
                return await store.suspend(self._name(name), suspended)
            case Named():
                found = self._ours(await store.named())
                return [
                    (name, Key(int(key.hash), self._role(key), key.may_write, key.suspended)) for name, key in found
                ]
            case Keep(name, value):
                return int(await store.keep(self._name(name), str(value)))
            case Secret(name):
                value = await store.get(self._name(name))
                return None if value is None else int(value)
        return UNKNOWN if isinstance(operation, Use) else None


class OverHttp(_Making):
    """Keys that are made beside the server, as the command makes them, and used over HTTP."""

    def __init__(self, world: HttpWorld, project: int) -> None:
        super().__init__(project)
        self._world = world
        self._keys: dict[int, str] = {}
        #: Opened by the first of the calls that are made at once.
        self._opening: asyncio.Task[Store] | None = None
        self._is_changed = False

    async def make(self, operation: Any) -> Any:
        self._is_changed = self._is_changed or isinstance(operation, Create | Revoke | Suspend)
        if self._opening is None:
            self._opening = asyncio.ensure_future(Store.open(self._world.where))
        store = await self._opening
        match operation:
            case Create(name, role, may_write, token):
                try:
                    key = await add_key(store, self._name(name), self._projects(role), may_write=may_write)
                except ContractError:
                    return False
                self._keys[token] = key
                return True
            case Revoke(name):
                return await store.keys.remove(self._name(name))
            case Suspend(name, suspended):
                return await store.keys.suspend(self._name(name), suspended)
            case Use(_, writes, token):
                return await self._use(self._keys.get(token, "unknown"), writes=writes)
            case Settle() if self._is_changed:
                self._is_changed = False
                await asyncio.sleep(REFRESH_SECONDS)
            case Keep() | Secret() | Named():
                return UNKNOWN
        return None

    async def _use(self, key: str, *, writes: bool) -> int:
        async with Http(self._world.url, key) as http:
            if writes:
                return (await http.post(f"/collections/{self._project}/s/x", [{"_key": "k"}])).status
            return (await http.get(f"/hcf/{self._project}/list")).status

    async def end(self) -> None:
        """Leave no key behind."""
        if self._opening is not None:
            store = await self._opening
            for name in NAMES:
                await store.keys.remove(self._name(name))
            await store.close()
