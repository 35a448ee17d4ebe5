"""Masking of secrets in what people read: logs, request records, stats, snapshots, lists and pages.

Whoever shows or stores a text calls these functions; nothing else decides what is a secret. Credentials are known by
their places (users in URLs), by the names of their values (settings, arguments, parameters of URLs), and, in the log of
a crawl, by the values of its settings. What a job needs to run is never masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote_plus

#: Text in place of a secret, in logs and in JSON; pages have their own.
HIDDEN: Final = "(hidden)"
#: Levels of nested settings that are searched for secrets.
_MAX_DEPTH: Final = 5

# ── headers sent only to the origin of the requested URL, never to another one after a redirect ──

#: Parts of names of keys, tokens, sessions and accounts, but not of author, keyword and keyboard.
_PRIVATE: Final = re.compile(
    r"auth(?!or(?!i[sz]))|cookie|token|secret|passw|passphrase|credential|session|csrf|xsrf|jwt|signature|signed|bearer|hmac"
    r"|ticket|certificate|licen[cs]e|app-?id|client-?id|(?<!mon)key(?!word|board)"
    r"|access(?!-control|ib)|user-id"
    # Short ones match as whole words only: X-Sid and JSESSIONID, not Residence; X-Pin, not Shopping.
    r"|(?<![a-z])(?:\w*sid|pwd|pass|pin|otp|totp|cert|identity|username|userid|login|account)(?![a-z])",
    re.IGNORECASE,
)


def is_private_header(name: str) -> bool:
    """Return true when a request header probably holds a credential, like ``Authorization`` and ``X-Api-Key``."""
    return _PRIVATE.search(name) is not None


# ── URLs ──

#: User and password before a host, also with an @ in the password. A password with a slash is known by its colon, which
#: no port follows. USER:PASSWORD@ is that of an example.
_USER_IN_URL: Final = re.compile(
    r"""(?<=://)(?!USER(?::PASSWORD)?@)(?:[^\s/?#"'<>]*@|[^\s/?#"'<>:@\[]*:(?![0-9]*[/?#])[^\s"'<>@]*@)"""
)
#: The same without a scheme, as proxies are listed: name:password@host:port. The schemes of addresses are no names.
_USER_OF_HOST: Final = re.compile(
    r"""(?<![\w/@:.%+-])(?!(?i:mailto|sips?):)[\w.%+-]+:[^\s@/:"'<>,]+@(?=[\w.-]+:[0-9]{1,5}\b)"""
)
_URL: Final = re.compile(r"""[a-z][a-z0-9+.-]{0,20}://[^\s"'<>]+""", re.IGNORECASE)
#: Segment of a text in which a URL may be. The last @ in it bounds the search for users: were each :// searched from to
#: the end of the text, the time would grow with the square of its length.
_SEGMENT: Final = re.compile(r"""[^\s"'<>]+""")
#: Parameter of a URL or of its fragment.
_PARAMETER: Final = re.compile(r"(?<=[?&;#])([^=&;#]{1,200})=[^&;#]+")
#: Whole words of the names of secret parameters: not designed, tickets, accessories and turkey. Words written as one
#: (accesstoken, PHPSESSID, keyid) are known by their ends.
_SECRET_PARAMETER: Final = re.compile(
    r"(?:^|-)(?:[a-z]*(?:token|secret|passphrase|passcode|credential|signature|hmac|jwt|csrf|xsrf|cookie)(?:s|id|hash|value)?"
    r"|[a-z]*passw[a-z]*|(?!(?:mon|tur|don|hoc|joc|whis)key)[a-z]*key(?:s|id)?|(?!ob|pos)[a-z]*sess(?:ion)?(?:id[a-z]*|key)?"
    r"|[a-z]*auth(?!or(?!i[sz]))[a-z]*|[a-z]*sid|access|accessid|bearer|signed|sign|sig|ticket|certificate|cert|licen[cs]e|identity"
    r"|login|account|username|(?:app|client|user)-?id|pwd|pass|pin|t?otp)[0-9]*(?:-|$)"
)
_WORD_LIMIT: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def without_user(text: str) -> str:
    """Remove the user names and passwords from the URLs in a text."""
    if "@" not in text:
        return text
    if "://" in text:
        text = _SEGMENT.sub(_without_users, text)
    return _USER_OF_HOST.sub("", text)


def _without_users(segment: re.Match[str]) -> str:
    before, at, behind = segment[0].rpartition("@")
    return _USER_IN_URL.sub("", before + at) + behind


def without_secrets(text: str) -> str:
    """Hide the credentials in the URLs of a text: users with passwords, and parameters with names of secrets."""
    return _URL.sub(lambda url: _PARAMETER.sub(_parameter, url[0]), without_user(text))


def shown_address(text: str) -> str:
    """Return ``, got '…'`` for the end of a rule about an address; empty for one that may have a password."""
    return "" if "@" in text else f", got {without_secrets(text[:200])!r}"


def _parameter(found: re.Match[str]) -> str:
    words = _WORD_LIMIT.sub("-", unquote_plus(found[1])).lower()
    return f"{found[1]}={HIDDEN}" if _SECRET_PARAMETER.search(words) else found[0]


# ── names of settings and arguments ──

#: The lookarounds exclude keyword, keyboard, monkey and author.
_NAME: Final = re.compile(
    r"(?:(?<!mon)key(?!word|board)|secret|token|passw|passphrase|pwd|credential|auth(?!or(?!i[sz]))|cookie|dsn|proxy)",
    re.IGNORECASE,
)
#: Parts of texts that contain a secret: a password in a URL; a word with a secret name, and a value behind it.
_PASSWORD: Final = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_WORD: Final = re.compile(r"[\w-]+")
_VALUE: Final = re.compile(r"['\"]?\s?[=:]\s?['\"]?[^\s=]")
_NEXT_WORD: Final = re.compile(r"\s+\S")


def is_secret(name: str) -> bool:
    """Return true when a value of this name is probably secret."""
    return _NAME.search(name) is not None


def hidden(values: Mapping[str, Any], mask: str = HIDDEN) -> dict[str, Any]:
    """Return settings or arguments with secret values hidden."""
    return {name: mask if is_secret(name) or _has_secret(value) else value for name, value in values.items()}


def _has_secret(value: object) -> bool:
    if isinstance(value, dict):
        return any(is_secret(name) or _has_secret(name) or _has_secret(each) for name, each in value.items())
    if isinstance(value, list):
        return any(_has_secret(each) for each in value)
    return isinstance(value, str) and (_PASSWORD.search(value) is not None or any(_names_secrets(value)))


def _names_secrets(text: str) -> Iterator[bool]:
    """Yield for each word with a secret name whether a value follows: ``token=x``, ``token: x``, ``--token x``.

    Words are searched once each, so that the time grows with the length of the text alone.
    """
    for word in _WORD.finditer(text):
        start, end = word.span()
        if _NAME.search(text, start, end) is None:
            continue
        option = text.find("-", start, end) + 1
        is_option = option > 0 and _NAME.search(text, option, end) is not None
        yield _VALUE.match(text, end) is not None or (is_option and _NEXT_WORD.match(text, end) is not None)


# ── values of a crawl's settings in its log ──

#: Names whose values are secret whatever they look like, and those whose values may be names, paths or numbers.
_ALWAYS: Final = re.compile(
    r"secret|passw|passphrase|(?<![a-z])pwd|(?<![a-z])pass(?![a-z])|credential|token", re.IGNORECASE
)
_MAYBE: Final = re.compile(r"(?<!mon)key(?!word|board)|auth(?!or(?!i[sz]))|cookie|dsn", re.IGNORECASE)
#: Shortest secret that is masked: shorter ones are parts of too many words.
_SHORTEST: Final = 4
#: A value that was made by a machine: long, of letters and digits.
_RANDOM: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[\x21-\x7e]{12,}")


class Secrets:
    """Secret values, which :meth:`masked` removes from texts, together with the users of URLs."""

    def __init__(self, values: Iterable[tuple[str, Any]]) -> None:
        """``values``: names and values of settings and arguments, of which the secret ones count."""
        found = {text for name, value in values for text in _secrets_of(str(name), value, 0)}
        forms = found | {quote(text, safe="") for text in found}
        # The longest first, for one may be the beginning of another.
        pattern = "|".join(re.escape(text) for text in sorted(forms, key=lambda text: (-len(text), text)))
        self._pattern = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)") if forms else None

    def masked(self, text: str) -> str:
        """Return the text without these secrets."""
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        return without_user(text)


def _secrets_of(name: str, value: object, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        if len(value) >= _SHORTEST and (_ALWAYS.search(name) or (_MAYBE.search(name) and _RANDOM.fullmatch(value))):
            yield value
    elif isinstance(value, Mapping):
        for member, inner in list(value.items()):
            yield from _secrets_of(f"{name}/{member}" if is_secret(name) else str(member), inner, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _secrets_of(name, inner, depth + 1)


def masked_values(value: object, secrets: Secrets) -> Any:
    """Return a JSON value without secrets in its texts and names."""
    if isinstance(value, str):
        return secrets.masked(value)
    if isinstance(value, dict):
        return {secrets.masked(name): masked_values(member, secrets) for name, member in value.items()}
    return [masked_values(member, secrets) for member in value] if isinstance(value, list) else value
