"""The files of this Python, its packages and this package: what every confined process of it may read."""

from __future__ import annotations

import site
import sys
import sysconfig
from pathlib import Path


def interpreter_paths() -> list[str]:
    python = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), f"{sys.prefix}/pyvenv.cfg"]
    python += [f"{prefix}/{part}" for prefix in (sys.base_prefix, sys.base_exec_prefix) for part in ("bin", "lib")]
    python += [f"{sys.prefix}/bin", str(Path(sys.executable).parent)]
    return [*python, *package_folders(), str(Path(__file__).resolve().parents[2])]


def package_folders() -> list[str]:
    """Return the folders of installed packages."""
    known = [*site.getsitepackages(), site.getusersitepackages()]
    return [folder for folder in sys.path if folder in known or folder.endswith(("site-packages", "dist-packages"))]
