"""Redaction of an extraction request's fields for errors, logs and request records, and of URLs in texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote_plus

from scrapy_ext.api.extraction.forms import is_private_header

#: Characters of a string that are shown.
LONGEST: Final = 200
#: Items of an array that are shown.
MOST_ITEMS: Final = 20

_HIDDEN: Final = "(hidden)"
#: Names of headers and members whose values are credentials, without regard to case and dashes.
_SECRET_NAME: Final = re.compile(
    r"auth|cookie|token|secret|password|api-?key|session|csrf|xsrf|credential", re.IGNORECASE
)
_USER_IN_URL: Final = re.compile(r"(?<=://)[^/?#@]*@")
_URL: Final = re.compile(r"""[a-z][a-z0-9+.-]{0,20}://[^\s"'<>]+""", re.IGNORECASE)
#: Parameter of a URL or of its fragment.
_PARAMETER: Final = re.compile(r"(?<=[?&;#])([^=&;#]{1,200})=[^&;#]+")
#: Fields of the request body, which may be a login form.
_BODIES: Final = ("httpRequestBody", "httpRequestText")


def without_user(text: str) -> str:
    """Remove the user names and passwords from the URLs in a text."""
    return _USER_IN_URL.sub("", text)


def without_secrets(text: str) -> str:
    """Hide the credentials in the URLs of a text: users with passwords, and parameters with names of secrets."""
    return _URL.sub(lambda url: _PARAMETER.sub(_parameter, without_user(url[0])), text)


def _parameter(found: re.Match[str]) -> str:
    name = unquote_plus(found[1])
    return f"{found[1]}={_HIDDEN}" if is_private_header(name) else found[0]


def redacted(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without credentials, cookies and bodies, and with long values cut."""
    return {name: _field(name, value) for name, value in fields.items()}


def _field(name: str, value: Any) -> Any:
    if name in _BODIES and isinstance(value, str):
        return f"({len(value)} characters)"
    if name == "url" and isinstance(value, str):
        return _cut(without_user(value))
    return _value(name, value)


def _value(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _object(name, value)
    if isinstance(value, list | tuple):
        shown = [_value(name, item) for item in value[:MOST_ITEMS]]
        return shown if len(value) <= MOST_ITEMS else [*shown, f"(and {len(value) - MOST_ITEMS} more)"]
    return _cut(value) if isinstance(value, str) else value


def _object(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    shown = {member: _value(member, inner) for member, inner in value.items()}
    for member in shown:
        if _SECRET_NAME.search(member):
            shown[member] = _HIDDEN
    # {name, value} pairs: the value of a secret name is secret, and so are all cookies. The text of an action may be a
    # password.
    secret_pair = name == "requestCookies" or _SECRET_NAME.search(str(value.get("name", "")))
    if "value" in shown and secret_pair:
        shown["value"] = _HIDDEN
    if name == "actions" and "text" in shown:
        shown["text"] = _HIDDEN
    return shown


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"
