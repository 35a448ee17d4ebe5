"""Environment variables of processes that run code of projects: the server's without its secrets."""

from __future__ import annotations

import os
from typing import Final

#: Variables for builds: access to package indexes, and locale.
_PASSED: Final = (
    *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
)
#: Variables for processes of deployed code.
_PASSED_TO_JOBS: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SSL_CERT_FILE",
)
#: Prefixes of variables that no process of a job receives.
_SECRET: Final = ("SERVER_", "PG", "ATTRIBUTES_API_KEY", "EXTRACT_API_KEY_FILE", "PLATFORM_API_KEY_FILE")
#: Prefix of OpenTelemetry's variables. Of these, the name of the server is not that of a job.
_OPENTELEMETRY: Final = "OTEL_"
_SERVICE_NAME: Final = "OTEL_SERVICE_NAME"
_PASSED_PREFIXES: Final = ("PIP_", "LC_")


def bare_environment() -> dict[str, str]:
    """Return the variables for builds."""
    return {
        name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    } | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}


def job_environment(*, opentelemetry: bool = False) -> dict[str, str]:
    """Return the variables for processes of deployed code, with those of OpenTelemetry if the operator allows it."""
    prefixes = (_OPENTELEMETRY,) if opentelemetry else ()
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_TO_JOBS or (name.startswith(prefixes) and name != _SERVICE_NAME)
    }


def local_environment() -> dict[str, str]:
    """Return the variables for processes of the operator's own project: all without the server's secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_SECRET) and name != _SERVICE_NAME}
