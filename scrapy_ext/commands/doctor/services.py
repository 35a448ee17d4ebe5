"""Checks of remote services: addresses, TLS, keys, versions, and the clock of this machine.

The extraction service gets an empty request, which it refuses without a fetch and without a price.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.client.http import authorization, is_local, proxy_of
from scrapy_ext.client.platform import PlatformUrls
from scrapy_ext.commands.doctor.checking import SECONDS, Check, Finding, blocking, ok, problem, warning
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.crawl.session import services as configured
from scrapy_ext.settings import SettingError

_EXTRACTION: Final = "extraction"
_PLATFORM: Final = "platform"
_CLOCK: Final = "clock"
#: Seconds by which clocks may differ, and by which leases, certificates and logs begin to suffer.
_DIFFERS: Final = 5.0
_DIFFERS_MUCH: Final = 60.0
_NTP: Final = "Synchronise the clock: timedatectl set-ntp true (Linux), sntp -sS time.apple.com (macOS)."
_MOST_BYTES: Final = 4 * 2**20

_Kind = TypeVar("_Kind")


class Configuration(NamedTuple):
    """The services that the settings name."""

    #: Checks of those whose settings are right.
    checks: list[Check]
    wrong: list[SettingError]
    #: False: an embedded server would be used.
    is_remote: bool


class _Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    #: Time of this machine in the middle of the exchange, and half of its length: the uncertainty.
    time: float
    uncertainty: float


class _UnreachableError(Exception):
    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


class _Info(msgspec.Struct):
    version: str = ""


class _Document(msgspec.Struct):
    """The beginning of an OpenAPI document."""

    info: _Info


class _Refusal(msgspec.Struct):
    """A problem of the extraction service (RFC 9457)."""

    type: str
    status: int = 0


def found_in(settings: BaseSettings) -> Configuration:
    """Read the settings of both services. One that is wrong hides no other."""
    wrong: list[SettingError] = []

    def tried(read: Callable[[], _Kind]) -> _Kind | None:
        try:
            return read()
        except SettingError as error:
            wrong.append(error)
            return None

    checks = []
    url = tried(partial(configured.extraction_url, settings))
    extracts = url is not None or bool(wrong)
    key = tried(
        partial(configured.service_key, settings, names.EXTRACT_API_KEY, names.EXTRACT_API_URL, is_remote=extracts)
    )
    if url is not None and key is not None:
        checks.append(Check(_EXTRACTION, lambda: _extraction(url, key), 2 * SECONDS))
    before = len(wrong)
    for setting in names.PLATFORM_ADDRESSES:
        tried(partial(configured.service_url, settings, setting))
    urls = tried(partial(configured.platform_urls, settings)) if len(wrong) == before else None
    stores = urls is not None or len(wrong) > before
    of_platform = tried(
        partial(configured.service_key, settings, names.PLATFORM_API_KEY, names.PLATFORM_URL, is_remote=stores)
    )
    project: int | None = tried(partial(names.PLATFORM_PROJECT.read, settings))
    if urls is not None and of_platform is not None and project is not None:
        checks.append(Check(_PLATFORM, lambda: _platform(urls, of_platform, project), 3 * SECONDS))
    return Configuration(checks, wrong, is_remote=extracts and stores)


async def _extraction(url: str, key: str) -> list[Finding]:
    try:
        answer = await _call("POST", f"{url}/extract", key, names.EXTRACT_API_KEY.name, b"{}")
    except _UnreachableError as error:
        return [problem(_EXTRACTION, f"{url}: {error}", _started(error.remedy, names.EXTRACT_API_URL.name))]
    found = [*_unencrypted(_EXTRACTION, url), *_clock(answer, url)]
    refusal = _decoded(answer.body, _Refusal)
    if answer.status in (401, 403):
        setting = names.EXTRACT_API_KEY.name
        return [
            problem(
                _EXTRACTION,
                f"{url} refuses the key ({answer.status})",
                f"Set {setting} to a key of the extraction service; that of the platform is another one.",
            ),
            *found,
        ]
    if answer.status == 400 and refusal is not None and refusal.type.startswith("/request/"):
        return [ok(_EXTRACTION, f"{url} answers, and accepts the key"), *found]
    return [_other(_EXTRACTION, url, answer, names.EXTRACT_API_URL.name), *found]


async def _platform(urls: PlatformUrls, key: str, project: int) -> list[Finding]:
    found = []
    for url in dict.fromkeys((urls.storage, urls.app, urls.jobq)):
        try:
            found += await _host(url, urls, key, project)
        except _UnreachableError as error:
            found.append(problem(_PLATFORM, f"{url}: {error}", _started(error.remedy, names.PLATFORM_URL.name)))
    return found


async def _host(url: str, urls: PlatformUrls, key: str, project: int) -> list[Finding]:
    setting = names.PLATFORM_API_KEY.name
    found = list(_unencrypted(_PLATFORM, url))
    if url == urls.storage:
        answer = await _call("GET", f"{url}/system/ts", "", setting)
        stamp = answer.body.strip()
        if answer.status != 200 or not stamp.isdigit():
            return [_other(_PLATFORM, url, answer, names.PLATFORM_URL.name), *found]
        found += _difference(int(stamp) / 1000 - answer.time, answer.uncertainty, url)
    if url not in (urls.jobq, urls.storage):
        path = f"/api/jobs/count.json?project={project}"
    elif url == urls.jobq:
        path = f"/jobq/{project}/count"
    else:
        path = f"/items/{project}/stats"
    answer = await _call("GET", f"{url}{path}", key, setting)
    if answer.status == 401:
        return [
            problem(
                _PLATFORM,
                f"{url} refuses the key (401)",
                f"Set {setting} to a key of the platform; that of the extraction service is another one.",
            ),
            *found,
        ]
    if answer.status == 403:
        return [
            problem(
                _PLATFORM,
                f"{url} gives the key no access to project {project} (403)",
                f"Set {names.PLATFORM_PROJECT.name} to a project of the key, or use another key.",
            ),
            *found,
        ]
    if answer.status >= 400 and answer.status != 404:
        return [_other(_PLATFORM, url, answer, names.PLATFORM_URL.name), *found]
    text = f"{url} answers, and accepts the key for project {project}"
    server = await _version(url)
    if server:
        found += await _rights(url, key, project)
        own = _own_version()
        if server != own:
            found.append(
                warning(
                    _PLATFORM,
                    f"{url} runs scrapy-ext {server}, and this is {own}",
                    f"pip install scrapy-ext=={server}, or upgrade the server.",
                )
            )
        text = f"{text}; it runs scrapy-ext {server}"
    return [ok(_PLATFORM, text), *found]


async def _rights(url: str, key: str, project: int) -> list[Finding]:
    """Return a warning for a key that may only read: it changes no setting of the project."""
    answer = await _call("POST", f"{url}/projects/{project}/settings", key, names.PLATFORM_API_KEY.name, b"{}")
    if answer.status == 403:
        return [
            warning(
                _PLATFORM,
                f"the key may only read project {project}; crawls cannot store anything",
                "Use a key that may write: scrapy platform keys add --help, on the server.",
            )
        ]
    return []


async def _version(url: str) -> str:
    """Return the version of a server of this package; empty for another implementation."""
    answer = await _call("GET", f"{url}/openapi.json", "", "")
    document = _decoded(answer.body, _Document) if answer.status == 200 else None
    return document.info.version if document is not None else ""


def _own_version() -> str:
    try:
        return version("scrapy-ext")
    except PackageNotFoundError:
        return "unknown"


def _decoded(body: bytes, kind: type[_Kind]) -> _Kind | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _other(subject: str, url: str, answer: _Answer, setting: str) -> Finding:
    if answer.status >= 500:
        return problem(subject, f"{url} answers {answer.status}", "Look at its log; it is up, and cannot work.")
    kind = answer.headers.get("Content-Type", "no type").partition(";")[0]
    return problem(
        subject,
        f"{url} answers {answer.status} with {kind}: this is not the service",
        f"Correct {setting}, or the proxy in front of the service.",
    )


def _unencrypted(subject: str, url: str) -> Iterator[Finding]:
    if url.startswith("http://") and not is_local(url):
        yield warning(
            subject, f"keys are sent to {url} without encryption", "Use https, or a network that nobody else can read."
        )


def _clock(answer: _Answer, url: str) -> list[Finding]:
    try:
        sent = parsedate_to_datetime(answer.headers.get("Date", "")).timestamp()
    except (TypeError, ValueError):
        return []
    # The header has whole seconds.
    return _difference(sent + 0.5 - answer.time, answer.uncertainty + 0.5, url)


def _difference(seconds: float, uncertainty: float, url: str) -> list[Finding]:
    beyond = abs(seconds) - uncertainty
    text = f"this machine is {abs(seconds):.0f} s {'behind' if seconds > 0 else 'ahead of'} {url}"
    if beyond > _DIFFERS_MUCH:
        return [problem(_CLOCK, text, _NTP)]
    if beyond > _DIFFERS:
        return [warning(_CLOCK, text, _NTP)]
    return [ok(_CLOCK, f"that of this machine agrees with {url}")]


def _started(remedy: str, setting: str) -> str:
    return remedy or f"Start the service, or correct {setting}."


async def _call(method: str, url: str, key: str, setting: str, body: bytes | None = None) -> _Answer:
    """Make one call; raises :class:`_UnreachableError` without an answer."""
    headers = {"Accept": "application/json, text/plain"}
    if key:
        headers["Authorization"] = authorization(key, setting)
    if body is not None:
        headers["Content-Type"] = "application/json"
    proxy = proxy_of(url)
    if proxy is None:
        await _resolve(url)
    try:
        timeout = aiohttp.ClientTimeout(total=SECONDS, sock_connect=SECONDS / 2)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            began, counted = time.time(), time.monotonic()
            async with session.request(
                method, url, data=body, headers=headers, proxy=proxy, allow_redirects=False
            ) as got:
                half = (time.monotonic() - counted) / 2
                content = await got.content.read(_MOST_BYTES)
                while not got.content.at_eof() and len(content) < _MOST_BYTES:
                    content += await got.content.read(_MOST_BYTES)
                return _Answer(got.status, dict(got.headers), content, began + half, half)
    except aiohttp.ClientConnectorCertificateError as error:
        reason = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        raise _UnreachableError(
            f"its certificate is not valid ({reason})",
            "Correct the certificate or the name in the address, or name your authority with SSL_CERT_FILE=FILE.",
        ) from None
    except (aiohttp.ClientSSLError, ssl.SSLError):
        raise _UnreachableError(
            "it does not speak TLS there", "Correct the scheme or the port of the address."
        ) from None
    except aiohttp.ClientConnectorError as error:
        # asyncio's own text has the address instead of the reason.
        reason = os.strerror(error.errno) if error.errno else str(error.os_error)
        raise _UnreachableError(f"no connection ({reason})", "") from None
    except TIMEOUT_ERRORS:
        raise _UnreachableError(f"no answer within {SECONDS:g} s", "Check firewalls and the address.") from None
    except (aiohttp.ClientError, OSError) as error:
        raise _UnreachableError(f"no HTTP answer ({type(error).__name__})", "") from None


async def _resolve(url: str) -> None:
    """Look up the name of a host in a thread that may be left behind, unlike those of the event loop."""
    parts = urlsplit(url)
    try:
        await blocking(lambda: socket.getaddrinfo(parts.hostname, parts.port or parts.scheme, type=socket.SOCK_STREAM))
    except socket.gaierror as error:
        raise _UnreachableError(
            f"the host {parts.hostname} is not known ({error.strerror})",
            "Correct the name of the host, or the name servers of this machine.",
        ) from None
