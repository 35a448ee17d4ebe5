"""Settings of the provider, and the errors of a login."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from scrapy_ext.api.masking import shown_address
from scrapy_ext.server.config.config import ConfigError, ServerConfig

#: Path of the pages to which the provider sends a person back.
CALLBACK = "/login/oidc/callback"


#: Remedies for the operator by outcome; :data:`_CHECK` for the others.
_REMEDIES: Final = {
    "state": "Compare the address that people open with --public-url",
    "not-allowed": "Add a rule with --oidc-allowed, if the person may log in",
    "disabled": "`scrapy platform users enable` lets the person log in again",
    "full": "Remove users that are not needed with `scrapy platform users remove`",
}
_CHECK: Final = "Check the options --oidc-… and the client at the provider"


class LoginError(Exception):
    """A login failed. The message is for the person; ``detail`` and ``remedy`` are for the operator's log, ``outcome``
    for metrics."""

    def __init__(self, outcome: str, status: int, message: str, detail: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.outcome, self.status, self.detail = outcome, status, detail or message
        self.remedy = remedy or _REMEDIES.get(outcome, _CHECK)


def provider_error(detail: str) -> LoginError:
    """Return the error of a provider that cannot be reached, or that does not keep to the standard."""
    return LoginError(
        "provider", 502, "The provider did not answer as it should. Try again, or ask the operator.", detail
    )


def untrusted(detail: str, remedy: str = "") -> LoginError:
    """Return the error of an ID token that proves nothing."""
    return LoginError("token", 403, "The provider's answer could not be verified. Ask the operator.", detail, remedy)


def expired() -> LoginError:
    return LoginError("state", 400, "This login was not begun here, took too long, or was used already. Log in again.")


class OidcSettings(NamedTuple):
    """The provider and the client that is registered there."""

    issuer: str
    client_id: str
    client_secret: str | None
    public_url: str
    scope: str
    groups_claim: str
    name: str

    @property
    def redirect_uri(self) -> str:
        return self.public_url + CALLBACK

    @classmethod
    def of(cls, config: ServerConfig) -> OidcSettings | None:
        """Return the settings of a server, None without a provider; raises ``ConfigError``."""
        if config.oidc_issuer is None:
            return None
        if config.public_url is None or not config.oidc_client_id:
            missing, remedy = (
                ("--public-url", "Add the address to which the provider sends people back.")
                if config.public_url is None
                else ("--oidc-client-id", "Add the ID that the provider has given to this client.")
            )
            raise ConfigError(f"--oidc-issuer needs {missing}. {remedy}")
        for option, url in (("--oidc-issuer", config.oidc_issuer), ("--public-url", config.public_url)):
            if not is_safe(url):
                raise ConfigError(
                    f"{option} must begin with https://, except on this machine (localhost){shown_address(url)}. "
                    "Write its https address."
                )
        if urlsplit(config.public_url).path:
            raise ConfigError(
                f"--public-url must have no path with --oidc-issuer{shown_address(config.public_url)}. Write the "
                "address without it."
            )
        if "openid" not in config.oidc_scope.split():
            raise ConfigError(f"--oidc-scope must have the scope openid, got {config.oidc_scope!r}. Add it.")
        return cls(
            config.oidc_issuer,
            config.oidc_client_id,
            config.oidc_client_secret,
            config.public_url,
            config.oidc_scope,
            config.oidc_groups_claim,
            config.oidc_name or urlsplit(config.oidc_issuer).hostname or config.oidc_issuer,
        )


def is_safe(url: str) -> bool:
    """Return true for an encrypted address, and for one on this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1"))
