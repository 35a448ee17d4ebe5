"""The steps of a login by OpenID Connect: the authorization code flow with PKCE.

:meth:`Logins.begin` sends a person to the provider, with a cookie that has a random ID, the time when the login ends,
the page to open afterwards and the ID of the session that the login replaces, signed by the server. State, nonce and
code verifier are HMACs of the ID with a secret of the database: no server stores them, each server of the database
knows them, and the browser never has the verifier.

:meth:`Logins.complete` takes the provider's answer. The state must be that of the browser's own cookie, so that nobody
logs in another person's browser, and each login is completed once.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
from authlib.oauth2.auth import encode_client_secret_basic
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from scrapy_ext.server.auth.tokens import Signer
from scrapy_ext.server.auth.users import UserRules
from scrapy_ext.server.oidc.id_tokens import account_of, verified
from scrapy_ext.server.oidc.provider import Provider, ProviderMetadata
from scrapy_ext.server.oidc.settings import LoginError, expired, provider_error
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.users import StoredUser

#: Seconds until a login must be completed.
LASTS: Final = 600
#: Maximum characters of a code, which the standard does not bound.
_MAX_CODE: Final = 4096
_SECRET: Final = "logins"  # noqa: S105 - the name of a secret
_decode: Final = msgspec.json.Decoder(tuple[str, int, str, str]).decode


class Begun(NamedTuple):
    """A login that begins: the provider's page, and the cookie."""

    url: str
    cookie: str


class Completed(NamedTuple):
    """A login that succeeded, the path of the page to open, and the ID of the session that it replaces, "" without
    one."""

    user: StoredUser
    onward: str
    session: str


class _Client(NamedTuple):
    client_id: str
    client_secret: str


class Logins:
    """Logins at the provider, on all servers of one database."""

    def __init__(self, provider: Provider, store: Store, users: UserRules) -> None:
        self._provider = provider
        self._store = store
        self._users = users
        self._signer = Signer(store, _SECRET)

    @property
    def provider(self) -> Provider:
        return self._provider

    async def begin(self, onward: str, session: str = "") -> Begun:
        """Return the provider's page and the cookie of a new login; raises :class:`LoginError`.

        ``session``: the ID of the browser's session, which the login replaces.
        """
        await self._signer.load()
        metadata, settings = await self._provider.metadata(), self._provider.settings
        login = secrets.token_hex(16)
        url = prepare_grant_uri(
            metadata.authorization_endpoint,
            settings.client_id,
            "code",
            settings.redirect_uri,
            settings.scope,
            self._signer.sign("state", login),
            nonce=self._signer.sign("nonce", login),
            code_challenge=create_s256_code_challenge(self._signer.sign("verifier", login)),
            code_challenge_method="S256",
        )
        ends = self._store.clock() // 1000 + LASTS
        return Begun(url, self._signer.sealed("login", (login, ends, onward, session)))

    async def complete(self, query: Mapping[str, str], cookie: str) -> Completed:
        """Return the user of the provider's answer; raises :class:`LoginError`, and ``StoreError``."""
        await self._signer.load()
        opened = self._signer.opened("login", cookie)
        if opened is None:
            raise expired()
        login, ends, onward, session = _decode(opened)
        state = self._signer.sign("state", login).encode()
        if not hmac.compare_digest(state, query.get("state", "").encode()) or self._store.clock() // 1000 >= ends:
            raise expired()
        # Before the code is used, so that of two requests with the same answer one alone proceeds.
        if not await self._store.users.use_login(login, LASTS):
            raise expired()
        metadata = await self._provider.metadata()
        code = self._code(metadata, query)
        claims = await self._claims(metadata, code, login)
        account = account_of(self._provider.settings.issuer, claims, self._provider.settings.groups_claim)
        if not self._users.may_log_in(account):
            detail = f"The rules of --oidc-allowed do not admit {account.email or account.subject!r}"
            if claims.get("email") and not account.email:
                detail += ", whose e-mail address the provider does not report as verified"
            raise LoginError("not-allowed", 403, "Your account may not log in here. Ask the operator.", detail)
        user = await self._store.users.log_in(account)
        if user.disabled:
            raise LoginError(
                "disabled", 403, "Your access is disabled. Ask the operator.", f"{user.handle} is disabled."
            )
        return Completed(user, onward, session)

    def _code(self, metadata: ProviderMetadata, query: Mapping[str, str]) -> str:
        """Return the code of the provider's answer; its ``iss`` (RFC 9207) must be right where there is one."""
        issuer = query.get("iss")
        if issuer is None and metadata.authorization_response_iss_parameter_supported:
            raise provider_error("The provider's answer has no iss, though its metadata announce it")
        if issuer is not None and issuer.rstrip("/") != self._provider.settings.issuer:
            raise provider_error("The answer is of another issuer")
        if error := query.get("error"):
            detail = f"The provider refused the login: {error[:100]!r}."
            raise LoginError("refused", 403, "The provider refused the login. Log in again.", detail)
        code = query.get("code", "")
        if not 0 < len(code) <= _MAX_CODE:
            raise expired()
        return code

    async def _claims(self, metadata: ProviderMetadata, code: str, login: str) -> dict[str, Any]:
        answer = await self._token(metadata, code, self._signer.sign("verifier", login))
        token = answer.get("access_token")
        now = self._store.clock() // 1000
        nonce = self._signer.sign("nonce", login)
        claims = await verified(self._provider, answer.get("id_token"), nonce, token, now)
        missing = [name for name in ("email", self._provider.settings.groups_claim) if name not in claims]
        if missing and metadata.userinfo_endpoint is not None and isinstance(token, str):
            more = await self._provider.get(metadata.userinfo_endpoint, token)
            if more.get("sub") != claims["sub"]:
                raise provider_error("The provider's user info is of another subject")
            claims = {**more, **claims}
        return claims

    async def _token(self, metadata: ProviderMetadata, code: str, verifier: str) -> dict[str, Any]:
        """Return the answer of the token endpoint to a code."""
        settings = self._provider.settings
        body = prepare_token_request(
            "authorization_code", redirect_uri=settings.redirect_uri, code=code, code_verifier=verifier
        )
        headers: dict[str, str] = {}
        if settings.client_secret is None:
            body += "&" + urlencode({"client_id": settings.client_id})
        elif "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            client = _Client(settings.client_id, settings.client_secret)
            _, headers, body = encode_client_secret_basic(client, "POST", metadata.token_endpoint, headers, body)
        else:
            body += "&" + urlencode({"client_id": settings.client_id, "client_secret": settings.client_secret})
        return await self._provider.post(metadata.token_endpoint, body, headers)

    async def logout_url(self) -> str | None:
        """Return the provider's page for logging out (OpenID Connect RP-Initiated Logout 1.0); None without one."""
        try:
            metadata = await self._provider.metadata()
        except LoginError:
            return None
        if metadata.end_session_endpoint is None:
            return None
        settings = self._provider.settings
        query = {"client_id": settings.client_id, "post_logout_redirect_uri": f"{settings.public_url}/login"}
        mark = "&" if "?" in metadata.end_session_endpoint else "?"
        return f"{metadata.end_session_endpoint}{mark}{urlencode(query)}"
