"""Users and roles in the database, on both engines."""

from __future__ import annotations

import asyncio
import json

import pytest

from scrapy_ext.api.platform.users import MAX_ROLES, Role, UserChange
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.activity import SERVER
from scrapy_ext.server.store.users import Account
from tests.support.stores import Clock

ADA = Account("https://login.example", "ada", "Ada", "ada@example.com", ("ops",))


async def events(store: Store, project: int) -> list[dict[str, object]]:
    return [json.loads(message.event) for message in await store.activity.page(project, 2**62, 100)]


async def test_one_person_is_one_user_however_often_and_at_once_they_log_in(store: Store, clock: Clock) -> None:
    found = await asyncio.gather(*(store.users.log_in(ADA) for _ in range(8)))
    assert {user.number for user in found} == {found[0].number}
    other = await store.users.log_in(ADA._replace(issuer="https://other.example"))
    assert other.number != found[0].number
    changed = await store.users.log_in(ADA._replace(email="", name="Ada L.", groups=()))
    assert (changed.number, changed.handle) == (found[0].number, f"Ada L. (user {found[0].number})")
    assert len(await store.users.listed()) == 2
    assert [event["event"] for event in await events(store, SERVER)] == ["user:created", "user:created"]


async def test_roles_and_access_change_together_with_their_messages(store: Store) -> None:
    number = (await store.users.log_in(ADA)).number
    roles = {None: Role.VIEW, 8: Role.RUN, 7: Role.MANAGE}
    user = await store.users.change(number, UserChange(None, roles), "api")
    assert user is not None
    assert [(given.project, given.role, given.by) for given in user.roles] == [
        (None, Role.VIEW, "api"),
        (7, Role.MANAGE, "api"),
        (8, Role.RUN, "api"),
    ]
    message = {"event": "user:changed", "user": "api", "of": "ada@example.com", "id": number}
    assert await events(store, 7) == [{**message, "role": "manage", "before": None}]
    await store.users.change(number, UserChange(None, {7: Role.MANAGE}), "grace")  # changes nothing
    assert len(await events(store, 7)) == 1
    disabled = await store.users.change(number, UserChange(True, {7: None}), "grace")
    assert disabled is not None
    assert (disabled.disabled, disabled.epoch, len(disabled.roles)) == (True, 1, 2)
    assert (await events(store, 7))[0] == {**message, "user": "grace", "role": None, "before": "manage"}
    assert (await events(store, SERVER))[0] == {**message, "user": "grace", "disabled": True}
    assert await store.users.get(number) == disabled
    assert await store.users.remove(number, "grace")
    assert not await store.users.remove(number, "grace")
    assert await store.users.change(number, UserChange(False, {}), "grace") is None
    again = await store.users.log_in(ADA)
    assert again.number != number
    assert again.roles == ()


async def test_too_many_roles_are_refused_and_none_is_given(store: Store) -> None:
    number = (await store.users.log_in(ADA)).number
    await store.users.change(number, UserChange(None, dict.fromkeys(range(MAX_ROLES), Role.VIEW)), "api")
    with pytest.raises(ContractError, match=f"must be in {MAX_ROLES} projects at most"):
        await store.users.change(number, UserChange(None, {MAX_ROLES: Role.VIEW, None: Role.VIEW}), "api")
    user = await store.users.get(number)
    assert user is not None
    assert len(user.roles) == MAX_ROLES
    assert await events(store, MAX_ROLES) == []


async def test_of_many_uses_of_a_login_one_counts(store: Store) -> None:
    used = await asyncio.gather(*(store.users.use_login("a", 600) for _ in range(8)))
    assert sum(used) == 1


async def test_a_login_and_a_removal_at_once_leave_one_user_or_none(store: Store) -> None:
    for _ in range(10):
        number = (await store.users.log_in(ADA)).number
        user, _ = await asyncio.gather(store.users.log_in(ADA), store.users.remove(number, "api"))
        left = await store.users.listed()
        assert len(left) <= 1
        assert all(each.number == user.number for each in left)
        for each in left:
            await store.users.remove(each.number, "api")
