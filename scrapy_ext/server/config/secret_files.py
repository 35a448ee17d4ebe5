"""Secrets in files: the variable ``NAME_FILE`` names the file with the value of ``NAME``.

Container platforms and systemd provide secrets as files. A value that was never in the environment cannot be read
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

SUFFIX: Final = "_FILE"
#: A longer file is not a secret, but something else.
_LONGEST: Final = 65_536


class SecretFileError(ValueError):
    """A file has no usable secret. ``name`` is the variable that names the file."""

    def __init__(self, name: str, rule: str, remedy: str) -> None:
        super().__init__(f"{name} {rule}. {remedy}")
        self.name, self.rule, self.remedy = name, rule, remedy


def secret_in(environ: Mapping[str, str], name: str) -> str | None:
    """Return the value of a variable, else that in the file which ``NAME_FILE`` names, without white space around it.

    Returns None without either. Raises :class:`SecretFileError`.
    """
    path = environ.get(name + SUFFIX)
    if environ.get(name) or not path:
        return environ.get(name)
    try:
        with Path(path).open(encoding="utf-8") as file:
            value = file.read(_LONGEST + 1).strip()
    except OSError as error:
        raise _wrong(
            name, path, f"cannot be read ({error.strerror or error})", "Correct the path or the rights"
        ) from None
    except UnicodeDecodeError:
        raise _wrong(name, path, "is not text", "Name the file with the secret alone") from None
    if not value:
        raise _wrong(name, path, "is empty", "Write the secret into it")
    if len(value) > _LONGEST:
        raise _wrong(name, path, f"is longer than {_LONGEST} characters", "Name the file with the secret alone")
    return value


def _wrong(name: str, path: str, rule: str, remedy: str) -> SecretFileError:
    return SecretFileError(name + SUFFIX, f"names {path}, which {rule}", f"{remedy}, or set {name} instead.")
