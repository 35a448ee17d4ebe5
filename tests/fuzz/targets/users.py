"""Answers of an OpenID Connect provider, and changes of users."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import msgspec
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from scrapy_ext.api.platform.users import MAX_TEXT, is_allowed, parse_allowed, parse_change, parse_group_role
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.oidc.id_tokens import account_of, verified
from scrapy_ext.server.oidc.provider import Provider, ProviderMetadata
from scrapy_ext.server.oidc.settings import LoginError, OidcSettings
from scrapy_ext.server.store.users import StoredUser
from tests.fuzz.calls import run
from tests.fuzz.target import target

_ISSUER, _CLIENT, _NONCE, _NOW = "https://login.example", "client", "nonce", 1_700_000_000
_KEY = ECKey.generate_key("P-256", {"kid": "a"})
_SETTINGS = OidcSettings(_ISSUER, _CLIENT, None, "https://crawls.example", "openid", "groups", "Test")
_GOOD = {"iss": _ISSUER, "aud": _CLIENT, "sub": "1", "exp": _NOW + 60, "iat": _NOW, "nonce": _NONCE}


class _Provider(Provider):
    """A provider without a network, which has one key."""

    async def metadata(self) -> ProviderMetadata:
        return ProviderMetadata(_ISSUER, f"{_ISSUER}/a", f"{_ISSUER}/t", f"{_ISSUER}/k")

    async def keys(self, *, again: bool = False) -> KeySet | None:
        return KeySet([_KEY])


_provider = _Provider(_SETTINGS)


def _encoded(part: Any) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


@target(
    "id-token",
    [
        f"{_encoded({'alg': 'none'})}.{_encoded(_GOOD)}.".encode(),
        f"{_encoded({'alg': 'ES256', 'kid': 'a'})}.{_encoded(_GOOD)}.{'A' * 86}".encode(),
        f"{_encoded({'alg': 'HS256', 'kid': ['a'], 'crit': ['b64']})}.{_encoded([])}.AAAA".encode(),
        f"{_encoded({'alg': 'RS256', 'jwk': {'kty': 'oct', 'k': 'AA'}})}.e30.AA".encode(),
        b"...",
        b"\xff.\xff.\xff",
    ],
    refuses=(LoginError,),
    calls=(20_000, 400),
)
def id_token(data: bytes) -> None:
    """Nobody without the key makes a token that is believed."""
    run(verified(_provider, data.decode("latin-1"), _NONCE, None, _NOW))
    raise AssertionError("a token without a signature was verified")


@target(
    "id-token-claims",
    [
        json.dumps(each).encode()
        for each in (
            _GOOD,
            {**_GOOD, "email": "Ada@Example.com", "email_verified": True, "groups": ["ops", 7], "name": "A\nda"},
            {**_GOOD, "aud": [_CLIENT, "other"], "azp": _CLIENT, "at_hash": "x", "amr": [], "auth_time": 1},
            {**_GOOD, "exp": 1e400, "iat": True, "nbf": "x", "nonce": [_NONCE], "sub": {"a": 1}},
            {**_GOOD, "name": ["\u202e"], "preferred_username": "api", "email": "a@b@c", "groups": {"ops": True}},
        )
    ],
    refuses=(LoginError,),
    calls=(40_000, 400),
)
def id_token_claims(data: bytes) -> None:
    """Claims that the provider signed are those of this login, and the account can be shown in one line."""
    try:
        claims = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(claims, dict):
        return
    try:
        text = jwt.encode({"alg": "ES256", "kid": "a"}, claims, _KEY)
    except (TypeError, ValueError, OverflowError):
        return
    read = run(verified(_provider, text, _NONCE, "token", _NOW))
    assert read["nonce"] == _NONCE
    assert read["iss"] == _ISSUER
    account = account_of(_ISSUER, read, "groups")
    handle = StoredUser(7, account, False, 0, 0, 0).handle
    assert "@" in handle or handle.endswith("(user 7)")
    assert max(len(account.name), len(account.email), *map(len, account.groups), 0) <= MAX_TEXT
    assert account.email == account.email.lower()
    assert "\n" not in handle


@target(
    "user-change",
    [
        b'{"disabled": true}',
        b'{"roles": {"7": "run", "all": null}}',
        b'{"roles": {"7": {}}, "disabled": null}',
        b'{"roles": {"\\u0667": "run"}}',
    ],
    refuses=(ContractError,),
    calls=(10_000, 100),
)
def user_change(data: bytes) -> None:
    """A change that is read changes something, in projects with numbers."""
    try:
        fields = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return
    if isinstance(fields, dict):
        change = parse_change(fields)
        assert change.roles or change.disabled is not None
        assert all(project is None or 0 <= project < 10**19 for project in change.roles)


@target(
    "login-rule",
    [b"@example.com", b"ada@example.com", b"group:ops", b"ops=7:run", b"a=b=all:view", b"@", b"=:"],
    refuses=(ContractError,),
    calls=(10_000, 100),
)
def login_rule(data: bytes) -> None:
    """A rule of people admits nobody without a verified address or a group; a rule of a group has both parts."""
    text = data.decode("utf-8", "replace")
    if "=" in text:
        assert parse_group_role(text).group
    assert not is_allowed([parse_allowed(text)], "", ())
