"""A temporary certificate for this machine, made with the ``openssl`` program."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@contextmanager
def certificate() -> Generator[str]:
    """A folder with ``certificate.pem``, which signs itself, and ``key.pem``. A process trusts it that has
    :func:`trusting` in its environment."""
    if shutil.which("openssl") is None:
        raise SystemExit("openssl is needed: apt-get install openssl")
    with tempfile.TemporaryDirectory() as folder:
        kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
        names = ("-subj", "/CN=localhost", "-addext", _NAMES)
        files = ("-keyout", str(Path(folder, "key.pem")), "-out", str(Path(folder, "certificate.pem")))
        command = ["openssl", "req", *kind, *names, *files]
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        yield folder


def trusting(folder: str) -> dict[str, str]:
    """Return the environment variables that make Python and OpenSSL trust the certificate."""
    return {"SSL_CERT_FILE": str(Path(folder, "certificate.pem"))}
