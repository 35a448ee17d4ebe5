"""ID tokens: signature and claims (OpenID Connect Core 1.0, 3.1.3.7).

The algorithms are a fixed list of asymmetric ones; the header of a token chooses among them. So neither ``none`` nor an
HMAC with a public key verifies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeGuard

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, ClaimError, ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from scrapy_ext.api.platform.users import MAX_TEXT
from scrapy_ext.server.oidc.provider import Provider
from scrapy_ext.server.oidc.settings import untrusted
from scrapy_ext.server.store.users import Account

ALGORITHMS: Final = ("RS256", "ES256")
#: Tolerated difference between the clocks of the provider and this server, in seconds.
LEEWAY: Final = 60
#: Claims with times, and the remedy of a wrong one.
_TIMES: Final = ("exp", "iat", "nbf")
_CLOCKS: Final = "Compare the clocks of this server and the provider"
_MAX_SUBJECT: Final = 255
_MAX_GROUPS: Final = 200
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


async def verified(provider: Provider, text: object, nonce: str, access_token: object, now: int) -> dict[str, Any]:
    """Return the claims of an ID token; raises :class:`LoginError`.

    A token with an unknown key makes the server read the provider's keys again: they may have been rotated.
    """
    if not isinstance(text, str):
        raise untrusted("The provider sent no ID token")
    expected = _Expected((await provider.metadata()).issuer, provider.settings.client_id, nonce, access_token, now)
    try:
        return _verified(text, await provider.keys(), expected)
    except (InvalidKeyIdError, BadSignatureError):
        keys = await provider.keys(again=True)
    try:
        return _verified(text, keys, expected)
    except (InvalidKeyIdError, BadSignatureError) as error:
        raise untrusted(f"The ID token's signature is wrong: {type(error).__name__}") from None


class _Expected(NamedTuple):
    issuer: str
    client: str
    nonce: str
    access_token: object
    now: int


def _verified(text: str, keys: KeySet | None, expected: _Expected) -> dict[str, Any]:
    if keys is None:
        raise untrusted("The ID token is signed with a key that the provider does not have")
    try:
        token = jwt.decode(text, keys, algorithms=list(ALGORITHMS))
        claims = CodeIDToken(
            token.claims,
            token.header,
            options={
                "iss": {"essential": True, "value": expected.issuer},
                "aud": {"essential": True, "value": expected.client},
            },
            params={
                "nonce": expected.nonce,
                "client_id": expected.client,
                "access_token": expected.access_token,
            },
        )
        claims.validate(expected.now, LEEWAY)
    except (InvalidKeyIdError, BadSignatureError):
        raise
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        # The token itself is not logged.
        reason = error.description if isinstance(error, ClaimError) else f"{type(error).__name__} {error}"
        of_time = isinstance(error, ExpiredTokenError) or (isinstance(error, ClaimError) and error.claim in _TIMES)
        raise untrusted(f"The ID token is invalid: {_one_line(reason)}", _CLOCKS if of_time else "") from None
    # Authlib compares it only where it is expected.
    if not expected.nonce or claims.get("nonce") != expected.nonce:
        raise untrusted("The ID token has another nonce")
    return dict(claims)


def account_of(issuer: str, claims: Mapping[str, Any], groups_claim: str) -> Account:
    """Return the account of verified claims; raises :class:`LoginError`."""
    subject = claims.get("sub")
    if not _is_storable(subject, _MAX_SUBJECT):
        raise untrusted(f"The ID token's sub is not a text of 1 to {_MAX_SUBJECT} characters")
    names = (claims.get(name) for name in ("name", "preferred_username", "nickname"))
    name = next((_one_line(each) for each in names if isinstance(each, str) and each.strip()), "")
    return Account(issuer, subject, name, _email(claims), _groups(claims.get(groups_claim)))


def _email(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address in lower case, "" unless the provider has verified it: anybody can claim another."""
    email = claims.get("email")
    if claims.get("email_verified") is not True or not _is_storable(email, MAX_TEXT):
        return ""
    return email.lower() if re.fullmatch(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+", email) else ""


def _groups(groups: object) -> tuple[str, ...]:
    """Return the groups, of which some providers send one as a text."""
    several = groups if isinstance(groups, list) else [groups]
    texts = (each for each in several if _is_storable(each, MAX_TEXT))
    return tuple(dict.fromkeys(texts))[:_MAX_GROUPS]


def _is_storable(value: object, most: int) -> TypeGuard[str]:
    """Return true for a text that databases store: without NUL, and without halves of surrogate pairs, which JSON can
    escape."""
    return isinstance(value, str) and 0 < len(value) <= most and _UNSTORABLE.search(value) is None


def _one_line(text: str) -> str:
    return "".join(mark if mark.isprintable() else " " for mark in text).strip()[:MAX_TEXT]
