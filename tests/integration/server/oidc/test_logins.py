"""Logins by OpenID Connect at a real provider over HTTP: which answers prove who somebody is, and what others cost."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest

from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.auth.users import UserRules
from scrapy_ext.server.oidc.logins import Completed, Logins
from scrapy_ext.server.oidc.provider import Provider
from scrapy_ext.server.oidc.settings import LoginError, OidcSettings
from scrapy_ext.server.store import Store
from tests.support.oidc_provider import ADA, CLIENT, SECRET, OidcProvider, unsigned

PUBLIC = "http://127.0.0.1:8700"


class Clock:
    """The monotonic clock of a provider's client."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with OidcProvider() as provider:
        yield provider


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


def logins_at(
    provider: OidcProvider,
    store: Store,
    *allowed: str,
    secret: str | None = SECRET,
    clock: Any = None,
    timeout: float = 10,
) -> Logins:
    settings = OidcSettings(provider.url, CLIENT, secret, PUBLIC, "openid profile email", "groups", "Test")
    client = Provider(settings, timeout=timeout, clock=clock or time.monotonic)
    return Logins(client, store, UserRules.of(provider.url, allowed, ()))


@pytest.fixture
def logins(provider: OidcProvider, store: Store) -> Logins:
    return logins_at(provider, store)


async def begin(logins: Logins, onward: str = "/") -> tuple[dict[str, str], str]:
    """Begin a login; return the provider's answer and the cookie."""
    begun = await logins.begin(onward)
    async with aiohttp.ClientSession() as session, session.get(begun.url, allow_redirects=False) as answer:
        back = answer.headers["Location"]
    assert back.startswith(f"{PUBLIC}/login/oidc/callback?")
    return dict(parse_qsl(urlsplit(back).query)), begun.cookie


async def log_in(logins: Logins, onward: str = "/") -> Completed:
    return await logins.complete(*await begin(logins, onward))


async def failure(logins: Logins) -> LoginError:
    with pytest.raises(LoginError) as caught:
        await log_in(logins)
    assert SECRET not in caught.value.detail
    return caught.value


async def test_a_person_is_the_same_user_at_each_login(logins: Logins, provider: OidcProvider, store: Store) -> None:
    first = await log_in(logins, "/ui/7/jobs")
    assert (first.user.handle, first.onward, first.user.roles) == ("ada@example.com", "/ui/7/jobs", ())
    provider.person |= {"email": "lovelace@example.com"}
    again = await log_in(logins)
    assert (again.user.number, again.user.handle) == (first.user.number, "lovelace@example.com")
    provider.person |= {"sub": "another"}
    assert (await log_in(logins)).user.number != first.user.number
    assert len(await store.users.listed()) == 2


async def test_the_request_to_the_provider_has_all_that_binds_its_answer(
    logins: Logins, provider: OidcProvider
) -> None:
    await log_in(logins)
    query = provider.last_authorization
    assert query["redirect_uri"] == f"{PUBLIC}/login/oidc/callback"
    assert query["scope"] == "openid profile email"
    verifier = provider.last_token_form["code_verifier"]
    bound = {query["state"], query["nonce"], query["code_challenge"], verifier}
    assert len(bound) == 4
    assert min(map(len, bound)) >= 43
    (_, cookie), _ = await begin(logins), None
    assert not any(each in cookie for each in bound)


def claim(name: str, value: Any) -> Any:
    def change(claims: dict[str, Any]) -> None:
        claims[name] = value
        if value is None:
            del claims[name]

    return change


TOKENS = {
    "another nonce": claim("nonce", "another"),
    "no nonce": claim("nonce", None),
    "another issuer": claim("iss", "https://evil.example"),
    "no issuer": claim("iss", None),
    "for another client": claim("aud", "another"),
    "for several, without azp": claim("aud", ["scrapy-ext", "another"]),
    "for several, of another": lambda claims: claims.update(aud=["scrapy-ext", "another"], azp="another"),
    "expired": lambda claims: claims.update(exp=claims["iat"] - 90),
    "no expiry": claim("exp", None),
    "not yet valid": lambda claims: claims.update(nbf=claims["iat"] + 600),
    "of the future": lambda claims: claims.update(iat=claims["iat"] + 600),
    "no subject": claim("sub", None),
    "a number as subject": claim("sub", 7),
    "a long subject": claim("sub", "a" * 256),
    "half a character as subject": claim("sub", "ada\ud800"),
    "the hash of another access token": claim("at_hash", "AAAA"),
}


@pytest.mark.parametrize("fault", TOKENS)
async def test_an_id_token_that_proves_nothing_logs_nobody_in(
    fault: str, provider: OidcProvider, logins: Logins, store: Store
) -> None:
    provider.change_claims = TOKENS[fault]
    error = await failure(logins)
    assert (error.status, error.outcome) == (403, "token")
    assert await store.users.listed() == []


async def test_no_signature_but_that_of_the_providers_own_key_counts(
    provider: OidcProvider, logins: Logins, store: Store
) -> None:
    async with OidcProvider() as other:
        other.rotate()

        def with_own_kid(claims: dict[str, Any]) -> str:
            parts = other.signed(claims).split(".")
            return ".".join([provider.signed(claims).split(".")[0], *parts[1:]])

        for sign in (
            unsigned,
            provider.signed_with_public_key,
            other.signed,
            with_own_kid,
            lambda claims: provider.signed(claims)[:-4] + "AAAA",
            lambda _: "no.token.here",
            lambda _: "é",
            lambda _: "a" * 100_000,
            lambda _: provider.signed_bytes(b"[" * 50_000),
            lambda _: 7,
            lambda _: None,
        ):
            provider.sign = sign  # type: ignore[assignment]
            assert (await failure(logins)).outcome == "token"
    assert await store.users.listed() == []


async def test_small_differences_of_clocks_do_no_harm(provider: OidcProvider, logins: Logins) -> None:
    provider.change_claims = lambda claims: claims.update(iat=claims["iat"] + 30, exp=claims["iat"] - 30)
    await log_in(logins)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
async def test_rotated_keys_are_read_again_but_not_for_each_unknown_key(algorithm: str, store: Store) -> None:
    clock = Clock()
    async with OidcProvider(algorithm=algorithm) as provider:
        logins = logins_at(provider, store, clock=clock)
        await log_in(logins)
        await log_in(logins)
        assert provider.asked.count("/jwks") == 1
        provider.rotate()
        clock.now += 60
        await log_in(logins)
        assert provider.asked.count("/jwks") == 2
        published = provider.key
        provider.rotate()
        provider.published = published
        for _ in range(5):
            assert (await failure(logins)).outcome == "token"
        assert provider.asked.count("/jwks") == 2
        clock.now += 3600
        provider.published = None
        await log_in(logins)
        assert provider.asked.count("/.well-known/openid-configuration") == 2


async def test_state_and_code_count_once_and_with_the_cookie_of_their_login(
    provider: OidcProvider, logins: Logins
) -> None:
    answer, cookie = await begin(logins)
    other_answer, other_cookie = await begin(logins)
    text, _, signature = cookie.partition(".")
    for query, sent in (
        (answer, ""),
        (answer, other_cookie),
        (other_answer, cookie),
        (answer, f"{text}.{signature[:-1]}0x"),
        (answer, f"x{text}.{signature}"),
        ({**answer, "state": "0" * 64}, cookie),
        ({**answer, "state": "é"}, cookie),
        ({"code": answer["code"]}, cookie),
    ):
        with pytest.raises(LoginError) as caught:
            await logins.complete(query, sent)
        assert (caught.value.status, caught.value.outcome) == (400, "state")
    assert "/token" not in provider.asked
    await logins.complete(answer, cookie)
    with pytest.raises(LoginError, match="was used already"):
        await logins.complete(answer, cookie)
    # A code that was stolen from another login fails, since the verifier is that of this one.
    stolen, _ = await begin(logins)
    mine, cookie = await begin(logins)
    with pytest.raises(LoginError) as caught:
        await logins.complete({**mine, "code": stolen["code"]}, cookie)
    assert caught.value.outcome == "provider"


async def test_a_login_ends_after_ten_minutes_and_its_mark_is_removed_later(
    provider: OidcProvider, tmp_path: Path
) -> None:
    now = time.time_ns() // 1_000_000
    store = await Store.open(tmp_path / "clock", lambda: now)
    try:
        logins = logins_at(provider, store)
        late, cookie = await begin(logins)
        now += 601_000
        with pytest.raises(LoginError, match="took too long"):
            await logins.complete(late, cookie)
        assert await store.users.use_login("a", 600)
        assert not await store.users.use_login("a", 600)
        now += 601_000
        assert await store.users.use_login("b", 600)
        assert await store.keys.get("used login a") is None
    finally:
        await store.close()


FAULTS: list[tuple[dict[str, Any], bool]] = [
    # the fault, and whether the login begins
    ({"huge": "/.well-known/openid-configuration"}, False),
    ({"slow": "/.well-known/openid-configuration"}, False),
    ({"answers": {"/.well-known/openid-configuration": (200, "[" * 100_000)}}, False),
    ({"answers": {"/.well-known/openid-configuration": (200, "{}")}}, False),
    ({"answers": {"/.well-known/openid-configuration": (500, "no")}}, False),
    ({"change_metadata": {"issuer": "https://evil.example"}}, False),
    ({"change_metadata": {"token_endpoint": "http://login.example/token"}}, False),
    ({"change_metadata": {"end_session_endpoint": "javascript:alert(1)"}}, False),
    ({"change_metadata": {"jwks_uri": "https://["}}, False),
    ({"change_metadata": {"userinfo_endpoint": "https://[x]/"}}, False),
    ({"change_metadata": {"code_challenge_methods_supported": ["plain"]}}, False),
    # Not public, and not the port of the issuer.
    ({"change_metadata": {"token_endpoint": "https://127.0.0.1:9/token"}}, True),
    ({"change_metadata": {"jwks_uri": "https://169.254.169.254/keys"}}, True),
    ({"change_metadata": {"authorization_response_iss_parameter_supported": True}, "issuer_in_answer": None}, True),
    ({"issuer_in_answer": "https://evil.example"}, True),
    ({"huge": "/token"}, True),
    ({"slow": "/token"}, True),
    ({"answers": {"/token": (302, "{}")}}, True),
    ({"answers": {"/token": (200, "[]")}}, True),
    ({"huge": "/jwks"}, True),
    ({"answers": {"/jwks": (200, '{"keys": "none"}')}}, True),
    ({"answers": {"/jwks": (200, '{"keys": [{"kty": "oct", "k": "AAAA"}]}')}}, True),
    ({"answers": {"/jwks": (200, '{"keys": [{"kty": "RSA", "n": 7}]}')}}, True),
    ({"in_userinfo": ("email",), "answers": {"/userinfo": (200, '{"sub": "eve", "email": "x"}')}}, True),
    ({"in_userinfo": ("email",), "huge": "/userinfo"}, True),
]


@pytest.mark.parametrize(("fault", "begins"), FAULTS, ids=range(len(FAULTS)))
@pytest.mark.long(keep=6)
async def test_a_slow_a_huge_and_a_wrong_answer_cost_a_login_and_no_more(
    fault: dict[str, Any], begins: bool, provider: OidcProvider, store: Store
) -> None:
    for name, value in fault.items():
        setattr(provider, name, value)
    logins = logins_at(provider, store, timeout=1 if "slow" in fault else 10)
    if not begins:
        with pytest.raises(LoginError) as caught:
            await logins.begin("/")
        assert (caught.value.status, caught.value.outcome) == (502, "provider")
        return
    assert (await failure(logins)).outcome == "provider"
    assert await store.users.listed() == []


async def test_a_wrong_secret_of_the_client_is_named_in_the_log(provider: OidcProvider, store: Store) -> None:
    error = await failure(logins_at(provider, store, secret="wrong"))
    assert "error 'invalid_client'" in error.detail
    provider.change_metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    await log_in(logins_at(provider, store))
    assert "Authorization" not in provider.last_token_headers


async def test_a_provider_that_refuses_is_reported(provider: OidcProvider, logins: Logins) -> None:
    provider.error = "access_denied"
    error = await failure(logins)
    assert (error.status, error.outcome) == (403, "refused")
    assert "access_denied" in error.detail


@pytest.mark.parametrize(
    ("rules", "change", "ok"),
    [
        ([], {}, True),
        (["@example.com"], {"email": "Ada@Example.COM"}, True),
        (["ada@example.com"], {}, True),
        (["@example.org"], {}, False),
        (["@example.com"], {"email": "eve@evil.example.com"}, False),
        (["@example.com"], {"email": "eve@example.com@evil.example"}, False),
        (["@example.com"], {"email": "eve@evil.example\n@example.com"}, False),
        (["@example.com"], {"email_verified": False}, False),
        (["@example.com"], {"email_verified": "true"}, False),
        (["@example.org", "group:ops"], {"groups": ["ops"]}, True),
        (["group:ops"], {"groups": "ops"}, True),
        (["group:ops"], {"groups": ["ops2", 7, None]}, False),
        (["group:ops"], {"groups": {"ops": True}}, False),
    ],
    ids=range(13),
)
async def test_the_operator_says_who_may_log_in(
    rules: list[str], change: dict[str, Any], ok: bool, provider: OidcProvider, store: Store
) -> None:
    provider.person |= change
    logins = logins_at(provider, store, *rules)
    if ok:
        await log_in(logins)
    else:
        assert (await failure(logins)).outcome == "not-allowed"
    assert len(await store.users.listed()) == ok


async def test_the_log_names_the_cause_and_the_remedy_of_a_failed_login(provider: OidcProvider, store: Store) -> None:
    logins = logins_at(provider, store, "@example.com")
    provider.person["email_verified"] = False
    error = await failure(logins)
    assert error.detail.endswith(", whose e-mail address the provider does not report as verified")
    assert "--oidc-allowed" in error.remedy
    provider.person["email_verified"] = True
    for change, detail, remedy in (
        ({"aud": "another"}, "Invalid claim: 'aud'", "Check the options"),
        ({"iat": int(time.time()) + 3600}, "The token was issued in the future", "Compare the clocks"),
        ({"exp": int(time.time()) - 3600}, "The token is expired", "Compare the clocks"),
    ):
        provider.change_claims = lambda claims, change=change: claims.update(change)
        error = await failure(logins)
        assert error.detail == f"The ID token is invalid: {detail}"
        assert remedy in error.remedy


async def test_claims_that_only_the_user_info_has_count_too(provider: OidcProvider, logins: Logins) -> None:
    provider.in_userinfo = ("email", "email_verified", "name", "groups")
    provider.person["groups"] = ["ops"]
    account = (await log_in(logins)).user.account
    assert (account.email, account.name, account.groups) == ("ada@example.com", "Ada Lovelace", ("ops",))


async def test_halves_of_characters_are_not_stored(provider: OidcProvider, logins: Logins) -> None:
    provider.person |= {"email": "ada@example.com\ud800", "name": "Ada\ud800", "groups": ["ops\ud800", "ops"]}
    account = (await log_in(logins)).user.account
    assert (account.email, account.name, account.groups) == ("", "Ada", ("ops",))


async def test_nobody_can_take_the_name_of_another_in_the_activity(provider: OidcProvider, logins: Logins) -> None:
    for change in (
        {"sub": "1", "name": "api"},
        {"sub": "2", "name": "ada@example.com"},
        {"sub": "3", "name": "ada@example.com (user 1)\n\x00", "email_verified": False},
        {"sub": "4", "name": "", "preferred_username": "1/2/3"},
    ):
        provider.person = {**ADA, "email": None, **change}
        user = (await log_in(logins)).user
        assert user.handle.endswith(f" (user {user.number})")
        assert user.handle.isprintable()
        assert not re.fullmatch(r"[\w.\-]{1,64}", user.handle)


async def test_there_is_an_end_of_new_users(
    provider: OidcProvider, logins: Logins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_ext.server.store.users.MAX_USERS", 1)
    await log_in(logins)
    await log_in(logins)
    provider.person["sub"] = "another"
    with pytest.raises(ContractError, match="would be number 2"):
        await log_in(logins)
