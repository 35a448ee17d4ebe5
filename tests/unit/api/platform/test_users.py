"""Roles: the one table of what each may do, and the rights that follow from several of them."""

from __future__ import annotations

from scrapy_ext.api.platform.users import LEAST, Action, Role, parse_group_role
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.auth.users import UserRules
from scrapy_ext.server.store.users import Account, GivenRole, StoredUser


def user(*roles: tuple[int | None, Role], groups: tuple[str, ...] = (), disabled: bool = False) -> StoredUser:
    account = Account("https://login.example", "1", "Ada", "ada@example.com", groups)
    given = tuple(GivenRole(project, role, "api", 0) for project, role in roles)
    return StoredUser(1, account, disabled, 0, 0, 0, given)


def grant(*roles: tuple[int | None, Role], groups: tuple[str, ...] = (), rules: tuple[str, ...] = ()) -> Grant:
    found = UserRules.of("https://login.example", (), rules).grant(user(*roles, groups=groups))
    assert found is not None
    return found


def test_each_role_may_do_all_that_a_lower_one_may() -> None:
    assert Role.MANAGE > Role.RUN > Role.VIEW
    assert set(LEAST) == set(Action)
    for action, least in LEAST.items():
        for role in Role:
            assert Grant("a", role=role).may(action, 7) == (role >= least)


def test_without_a_role_nothing_is_allowed() -> None:
    nobody = grant()
    for action in Action:
        assert not nobody.may(action, 7)
        assert not nobody.may_somewhere(action)
        assert not nobody.may_everywhere(action)
    assert not nobody.all_projects
    assert not nobody.may_manage_users


def test_of_several_roles_the_highest_counts_in_its_projects() -> None:
    found = grant((None, Role.VIEW), (7, Role.RUN), (7, Role.VIEW), (8, Role.MANAGE))
    assert [found.may(Action.RUN, project) for project in (7, 8, 9)] == [True, True, False]
    assert [found.may(Action.MANAGE, project) for project in (7, 8, 9)] == [False, True, False]
    assert found.all_projects
    assert not found.may_everywhere(Action.RUN)
    assert found.may_somewhere(Action.MANAGE)


def test_groups_add_roles_and_the_star_is_for_everybody() -> None:
    rules = ("ops=7:manage", "*=8:view", "others=all:manage")
    found = grant((7, Role.VIEW), groups=("ops",), rules=rules)
    assert found.may(Action.MANAGE, 7)
    assert found.may(Action.READ, 8)
    assert not found.may(Action.READ, 9)
    assert parse_group_role("a=b=all:view") == ("a=b", None, Role.VIEW)


def test_only_the_servers_key_and_managers_of_all_projects_manage_users() -> None:
    assert Grant("api").may_manage_users
    assert grant((None, Role.MANAGE)).may_manage_users
    assert not grant((None, Role.MANAGE)).may_manage_keys
    assert not grant((None, Role.RUN), (7, Role.MANAGE)).may_manage_users
    assert not Grant("ci").may_manage_users


def test_a_user_of_another_issuer_and_a_disabled_one_have_no_rights() -> None:
    assert UserRules.of("https://other.example", (), ()).grant(user((None, Role.MANAGE))) is None
    assert UserRules.of(None, (), ()).grant(user((None, Role.MANAGE))) is None
    disabled = user((None, Role.MANAGE), disabled=True)
    assert UserRules.of("https://login.example", (), ()).grant(disabled) is None
