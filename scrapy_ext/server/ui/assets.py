"""Static files of the pages: style sheet, script, and the vendored files of ``tools/get_assets.py``.

A URL contains a hash of the contents, so that browsers may cache the file.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_TYPES: Final = {".css": "text/css; charset=UTF-8", ".js": "text/javascript; charset=UTF-8"}
#: Cache-Control for a URL with the current version, and for any other.
_KEPT: Final = "max-age=31536000, immutable"
_SHORT: Final = "max-age=300"


class Assets:
    """Files of a folder and of its optional folder ``vendor``."""

    def __init__(self, folder: Traversable | None = None) -> None:
        folder = folder or files("scrapy_ext.server.ui").joinpath("static")
        self._files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_TYPES))}
        vendor = folder.joinpath("vendor")
        if vendor.is_dir():
            self._files |= {f"vendor/{file.name}": file.read_bytes() for file in vendor.iterdir() if _served(file)}
        self._versions = {name: sha256(data).hexdigest()[:12] for name, data in self._files.items()}

    def has(self, name: str) -> bool:
        """Return true for an existing file."""
        return name in self._files

    def address(self, name: str) -> str:
        """Return the versioned URL of an existing file."""
        return f"/ui/static/{name}?v={self._versions[name]}"

    async def serve(self, request: Request) -> Response:
        """Serve one file."""
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("Not Found\n", 404, {"X-Content-Type-Options": "nosniff"})
        kept = request.query_params.get("v") == self._versions[name]
        headers = {"Cache-Control": _KEPT if kept else _SHORT, "X-Content-Type-Options": "nosniff"}
        return Response(self._files[name], media_type=_TYPES[name[name.rindex(".") :]], headers=headers)


def _served(file: Traversable) -> bool:
    return file.name.endswith(tuple(_TYPES))
