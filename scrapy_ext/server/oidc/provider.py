"""The provider over HTTP: its metadata and keys, which are cached, tokens, and claims of a user.

Every connection passes the guard of outgoing connections (``net.guard``). The operator has named the issuer, so its
host and port are allowed whatever address they have; other hosts that its metadata names must be public, or allowed
with ``--allow-host``. Each answer has a timeout and a maximum of bytes, and no redirect is followed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from yarl import URL

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.api.masking import without_user
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.net.resolver import GuardedResolver
from scrapy_ext.server.oidc.settings import OidcSettings, is_safe, provider_error

#: Timeout of one answer of the provider, in seconds.
TIMEOUT: Final = 10.0
#: Maximum bytes of one answer.
MAX_BYTES: Final = 256 * 1024
#: Seconds until metadata and keys are read again.
_FRESH: Final = 3600.0
#: Minimum seconds between two reads of the keys because of a token with an unknown key.
_UNKNOWN: Final = 10.0
#: Requests to the provider at the same time; others wait.
_AT_ONCE: Final = 16

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ProviderMetadata(msgspec.Struct):
    """The metadata of a provider (OpenID Connect Discovery 1.0)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] = msgspec.field(default_factory=lambda: ["client_secret_basic"])
    code_challenge_methods_supported: list[str] | None = None
    authorization_response_iss_parameter_supported: bool = False


class Provider:
    """The provider of the settings. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        settings: OidcSettings,
        allow_hosts: Iterable[str] = (),
        connect_to: Iterable[str] = (),
        *,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._guard = Guard((*allow_hosts, _host_of(settings.issuer)), connect_to)
        self._timeout = timeout
        self._clock = clock
        self._permits = asyncio.Semaphore(_AT_ONCE)
        self._metadata: ProviderMetadata | None = None
        self._metadata_read = 0.0
        self._keys: KeySet | None = None
        self._keys_read = 0.0

    async def metadata(self) -> ProviderMetadata:
        """Return the metadata; raises :class:`LoginError`."""
        if self._metadata is None or self._clock() - self._metadata_read >= _FRESH:
            address = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
            self._metadata = self._checked(await self._json("GET", address))
            self._metadata_read = self._clock()
        return self._metadata

    def _checked(self, read: dict[str, Any]) -> ProviderMetadata:
        try:
            found = msgspec.convert(read, ProviderMetadata)
        except msgspec.ValidationError as error:
            raise provider_error(f"The provider's metadata are invalid: {error}") from None
        # Some providers end their issuer with a slash, which the option does not have.
        if found.issuer.rstrip("/") != self.settings.issuer:
            raise provider_error(f"The provider's metadata are of the issuer {found.issuer[:200]!r}")
        needed = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
        for url in (*needed, found.userinfo_endpoint, found.end_session_endpoint):
            if url is not None and not is_safe(url):
                raise provider_error(
                    f"The provider's metadata have the address {without_user(url)[:200]!r}, which is not encrypted"
                )
        if "S256" not in (found.code_challenge_methods_supported or ("S256",)):
            raise provider_error("The provider does not support PKCE with S256")
        return found

    async def keys(self, *, again: bool = False) -> KeySet | None:
        """Return the keys of the provider's tokens; raises :class:`LoginError`.

        With ``again``, because of a token with an unknown key, they are read again, None when that was done lately.
        """
        age = self._clock() - self._keys_read
        if self._keys is None or age >= (_UNKNOWN if again else _FRESH):
            metadata = await self.metadata()
            read = await self._json("GET", metadata.jwks_uri)
            try:
                self._keys = KeySet.import_key_set({"keys": _public(read.get("keys"))})
            except (JoseError, ValueError, TypeError, KeyError) as error:
                raise provider_error(f"The provider's keys are invalid: {type(error).__name__}") from None
            self._keys_read = self._clock()
        elif again:
            return None
        return self._keys

    async def post(self, url: str, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the answer to a form; raises :class:`LoginError`."""
        return await self._json("POST", url, body, headers)

    async def get(self, url: str, token: str) -> dict[str, Any]:
        """Return the answer to a request with an access token; raises :class:`LoginError`."""
        return await self._json("GET", url, None, {"Authorization": f"Bearer {token}"})

    async def _json(
        self, method: str, url: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        place = f"{method} {without_user(url.partition('?')[0])[:200]}"
        try:
            async with timeout_after(self._timeout), self._permits:
                status, read = await self._read(method, url, body, headers or {})
        except TIMEOUT_ERRORS:
            raise provider_error(f"{place}: no answer within {self._timeout:g} seconds") from None
        except ExtractionError as error:
            raise provider_error(f"{place}: {error}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise provider_error(f"{place}: {type(error).__name__}") from None
        try:
            decoded = _decode(read)
        except (msgspec.DecodeError, RecursionError):
            raise provider_error(f"{place}: status {status}, and no JSON object") from None
        if status != 200:
            # The standard's errors are codes such as invalid_client.
            raise provider_error(f"{place}: status {status}, error {str(decoded.get('error'))[:100]!r}")
        return decoded

    async def _read(self, method: str, url: str, body: str | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        address = URL(url)
        # aiohttp calls its resolver for names only, not for addresses.
        await self._guard.endpoints(address.raw_host or "", address.port or 0)
        connector = aiohttp.TCPConnector(resolver=GuardedResolver(self._guard), use_dns_cache=False, force_close=True)
        session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False
        )
        sent = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "scrapy-ext",
            **({"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}),
            **headers,
        }
        async with (
            session,
            session.request(method, address, data=body, headers=sent, allow_redirects=False) as answer,
        ):
            read = bytearray()
            async for piece in answer.content.iter_chunked(16 * 1024):
                read += piece
                if len(read) > MAX_BYTES:
                    raise provider_error(
                        f"{method} {without_user(url.partition('?')[0])[:200]}: the answer is longer than "
                        f"{MAX_BYTES} bytes"
                    )
            return answer.status, bytes(read)


def _public(keys: object) -> list[dict[str, Any]]:
    """Return the RSA and EC keys for signatures: others, such as symmetric ones, verify nothing here."""
    found = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
    return [key for key in found if key.get("kty") in ("RSA", "EC") and key.get("use", "sig") == "sig"]


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
