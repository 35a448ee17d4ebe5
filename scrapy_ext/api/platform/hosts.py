"""The hosts of the platform, which a server of this package has as one (platform-api.md, Hosts)."""

from __future__ import annotations

from enum import Enum


class Host(str, Enum):
    APP = "app"
    STORAGE = "storage"
    JOBQ = "jobq"
