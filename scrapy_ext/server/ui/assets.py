"""Files that pages load: the style, our script, and what ``tools/get_assets.py`` has brought.

Their addresses have a part that changes with their contents, so that browsers may keep them.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_TYPES: Final = {".css": "text/css; charset=UTF-8", ".js": "text/javascript; charset=UTF-8"}
#: Of who asks for the version that the page names, and of anybody else (seconds).
_KEPT: Final = "max-age=31536000, immutable"
_SHORT: Final = "max-age=300"


class Assets:
    """The files in a folder, and in its folder ``vendor``, which need not be there: pages work without it."""

    def __init__(self, folder: Traversable | None = None) -> None:
        folder = folder or files("scrapy_ext.server.ui").joinpath("static")
        self._files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_TYPES))}
        vendor = folder.joinpath("vendor")
        if vendor.is_dir():
            self._files |= {f"vendor/{file.name}": file.read_bytes() for file in vendor.iterdir() if _served(file)}
        self._versions = {name: sha256(data).hexdigest()[:12] for name, data in self._files.items()}

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self._files

    def address(self, name: str) -> str:
        """Where a file is that is there."""
        return f"/ui/static/{name}?v={self._versions[name]}"

    async def serve(self, request: Request) -> Response:
        """Answer a request for one."""
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("Not Found\n", 404)
        kept = request.query_params.get("v") == self._versions[name]
        headers = {"Cache-Control": _KEPT if kept else _SHORT, "X-Content-Type-Options": "nosniff"}
        return Response(self._files[name], media_type=_TYPES[name[name.rindex(".") :]], headers=headers)


def _served(file: Traversable) -> bool:
    return file.name.endswith(tuple(_TYPES))
