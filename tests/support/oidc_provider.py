"""An OpenID Connect provider on this machine, which logs in whoever a test says, and can do everything wrong."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from joserfc import jws
from joserfc.jwk import ECKey, KeySet, RSAKey

from scrapy_ext.compatibility.python import Self

CLIENT = "scrapy-ext"
SECRET = "a-secret-of-the-client"

ADA = {"sub": "ada", "name": "Ada Lovelace", "email": "ada@example.com", "email_verified": True, "groups": []}


def unsigned(claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
    """Return an ID token without a signature."""
    parts = (header or {"alg": "none", "typ": "JWT"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, ""])


def _new_key(algorithm: str) -> Any:
    parameters: Any = {"kid": secrets.token_hex(4), "use": "sig"}
    return ECKey.generate_key("P-256", parameters) if algorithm == "ES256" else RSAKey.generate_key(2048, parameters)


#: The first key of the providers of a process: a new one takes a while.
_first_key = functools.cache(_new_key)


class OidcProvider:
    """Logs in ``person``, or refuses with ``error``. ``change_claims`` and ``sign`` make other ID tokens,
    ``change_metadata`` other metadata; ``huge`` names an endpoint with an endless answer, ``slow`` one without."""

    def __init__(self, *, algorithm: str = "RS256") -> None:
        self.algorithm = algorithm
        self.person: dict[str, Any] = dict(ADA)
        self.error = ""
        self.change_claims: Callable[[dict[str, Any]], None] = lambda _: None
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.change_metadata: dict[str, Any] = {}
        self.in_userinfo: tuple[str, ...] = ()
        self.huge = self.slow = ""
        self.answers: dict[str, tuple[int, str]] = {}
        #: Requests by endpoint.
        self.asked: list[str] = []
        self.last_authorization: dict[str, str] = {}
        self.last_token_form: dict[str, str] = {}
        self.last_token_headers: Any = {}
        self.issuer_in_answer: str | None = ""
        #: The key to publish in place of that which signs.
        self.published: Any = None
        self.logged_out: list[dict[str, str]] = []
        self._codes: dict[str, tuple[dict[str, str], dict[str, Any]]] = {}
        self._tokens: dict[str, dict[str, Any]] = {}
        self.key = _first_key(algorithm)

    def rotate(self) -> None:
        """Sign with a new key, and publish that alone."""
        self.key = _new_key(self.algorithm)

    async def __aenter__(self) -> Self:
        app = web.Application()
        for path, handler in (
            ("/.well-known/openid-configuration", self._metadata),
            ("/authorize", self._authorize),
            ("/token", self._token),
            ("/jwks", self._jwks),
            ("/userinfo", self._userinfo),
            ("/logout", self._logout),
        ):
            app.router.add_route("*", path, self._maybe_wrong(path, handler))
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = "http://127.0.0.1:%d" % self._runner.addresses[0][1]  # noqa: UP031
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def options(self, public_url: str = "http://127.0.0.1:8700") -> tuple[str, ...]:
        """Return the options of a server that uses this provider."""
        return ("--oidc-issuer", self.url, "--oidc-client-id", CLIENT, "--public-url", public_url)

    def _maybe_wrong(self, path: str, handler: Callable[[web.Request], Any]) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.StreamResponse:
            self.asked.append(path)
            if self.slow == path:
                await asyncio.sleep(3600)
            if self.huge == path:
                return await _endless(request)
            if path in self.answers:
                status, text = self.answers[path]
                return web.Response(status=status, text=text, content_type="application/json")
            return await handler(request)

        return answer

    async def _metadata(self, _: web.Request) -> web.Response:
        places = {
            "authorization_endpoint": "/authorize",
            "token_endpoint": "/token",
            "jwks_uri": "/jwks",
            "userinfo_endpoint": "/userinfo",
            "end_session_endpoint": "/logout",
        }
        found: dict[str, Any] = {
            "issuer": self.url,
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.algorithm],
            "code_challenge_methods_supported": ["S256"],
            **{name: self.url + path for name, path in places.items()},
            **self.change_metadata,
        }
        return web.json_response({name: value for name, value in found.items() if value is not None})

    async def _jwks(self, _: web.Request) -> web.Response:
        return web.json_response(KeySet([self.published or self.key]).as_dict(private=False))

    async def _authorize(self, request: web.Request) -> web.Response:
        query = self.last_authorization = dict(request.query)
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        answer = {"state": query["state"]}
        if self.issuer_in_answer is not None:
            answer["iss"] = self.issuer_in_answer or self.url
        if self.error:
            answer["error"] = self.error
        else:
            answer["code"] = secrets.token_urlsafe(24)
            self._codes[answer["code"]] = (query, dict(self.person))
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode(answer)}")

    async def _token(self, request: web.Request) -> web.Response:
        form = self.last_token_form = {name: str(value) for name, value in (await request.post()).items()}
        self.last_token_headers = request.headers
        client = base64.b64decode(request.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        client = client or f"{form.get('client_id')}:{form.get('client_secret')}"
        if client != f"{CLIENT}:{SECRET}":
            return web.json_response({"error": "invalid_client"}, status=401)
        query, person = self._codes.pop(form.get("code", ""), ({}, {}))
        hashed = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(hashed).decode().rstrip("=")
        fits = query and query["redirect_uri"] == form["redirect_uri"]
        if not fits or not hmac.compare_digest(challenge, query["code_challenge"]):
            return web.json_response({"error": "invalid_grant"}, status=400)
        access_token = secrets.token_urlsafe(16)
        self._tokens[access_token] = person
        now = int(time.time())
        kept = {name: value for name, value in person.items() if name not in self.in_userinfo}
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": query["nonce"], **kept}
        self.change_claims(claims)
        tokens = {"access_token": access_token, "token_type": "Bearer", "id_token": self.sign(claims)}
        return web.json_response(tokens)

    def signed(self, claims: dict[str, Any]) -> str:
        # Not by jwt.encode, which escapes nothing, so that halves of characters stay.
        return self.signed_bytes(json.dumps(claims).encode())

    def signed_bytes(self, payload: bytes) -> str:
        """Return a signed text of any payload."""
        return jws.serialize_compact({"alg": self.algorithm, "typ": "JWT", "kid": self.key.kid}, payload, self.key)

    def signed_with_public_key(self, claims: dict[str, Any]) -> str:
        """Return an ID token signed by an HMAC with the public key as its secret."""
        text = ".".join(unsigned(claims, {"alg": "HS256", "typ": "JWT", "kid": self.key.kid}).split(".")[:2])
        digest = hmac.new(self.key.as_pem(private=False), text.encode(), hashlib.sha256).digest()
        return f"{text}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    async def _userinfo(self, request: web.Request) -> web.Response:
        person = self._tokens.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        return web.json_response(person or {"error": "invalid_token"}, status=200 if person else 401)

    async def _logout(self, request: web.Request) -> web.Response:
        self.logged_out.append(dict(request.query))
        raise web.HTTPFound(request.query["post_logout_redirect_uri"])


async def _endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    try:
        while True:
            await answer.write(b" " * 65_536)
    except ConnectionError:
        return answer
