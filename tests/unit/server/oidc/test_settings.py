"""Options of the login by OpenID Connect: what a server refuses to start with."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scrapy_ext.server.config.command_line import OPTIONS
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.oidc.settings import OidcSettings

ISSUER, PUBLIC = "https://login.example", "https://crawls.example"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"oidc_issuer": ISSUER}, "--oidc-issuer needs --public-url"),
        ({"oidc_issuer": ISSUER, "public_url": PUBLIC}, "--oidc-issuer needs --oidc-client-id"),
        (
            {"oidc_issuer": "http://login.example", "public_url": PUBLIC, "oidc_client_id": "a"},
            "--oidc-issuer must begin with https://",
        ),
        (
            {"oidc_issuer": "https://[", "public_url": PUBLIC, "oidc_client_id": "a"},
            "--oidc-issuer must begin with https://",
        ),
        (
            {"oidc_issuer": ISSUER, "public_url": "http://crawls.example", "oidc_client_id": "a"},
            "--public-url must begin with https://",
        ),
        (
            {"oidc_issuer": ISSUER, "public_url": f"{PUBLIC}/path", "oidc_client_id": "a"},
            "--public-url must have no path",
        ),
        (
            {"oidc_issuer": ISSUER, "public_url": PUBLIC, "oidc_client_id": "a", "oidc_scope": "email"},
            "--oidc-scope must have the scope openid",
        ),
    ],
)
def test_a_server_to_which_nobody_could_log_in_does_not_start(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        OidcSettings.of(ServerConfig(**options))


def test_without_an_issuer_there_is_no_login_by_a_provider() -> None:
    assert OidcSettings.of(ServerConfig()) is None


def test_the_redirect_uri_is_of_the_public_address() -> None:
    settings = OidcSettings.of(ServerConfig(oidc_issuer=ISSUER, public_url=PUBLIC, oidc_client_id="a"))
    assert settings is not None
    assert settings.redirect_uri == f"{PUBLIC}/login/oidc/callback"
    assert settings.name == "login.example"


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("oidc_roles", "ops=7:root", "must be one of view, run, manage"),
        ("oidc_roles", "ops=x:run", "must be a number or all"),
        ("oidc_roles", "ops", "must be GROUP=PROJECT:ROLE"),
        ("oidc_roles", "=7:run", "must be GROUP=PROJECT:ROLE"),
        ("oidc_allowed", "example.com", "must be @DOMAIN"),
        ("oidc_allowed", "a@b@example.com", "must be @DOMAIN"),
        ("oidc_allowed", "group:", "must be @DOMAIN"),
    ],
)
def test_a_rule_that_says_nothing_is_refused(field: str, text: str, words: str) -> None:
    option = next(option for option in OPTIONS if option.field == field)
    with pytest.raises(Exception, match=re.escape(words)):
        option.reader(text)


def test_rules_are_read_as_they_count() -> None:
    readers = {option.field: option.reader for option in OPTIONS}
    assert readers["oidc_allowed"]("@Example.COM") == "@example.com"
    assert readers["oidc_roles"]("a=b=all:view") == "a=b=all:view"
