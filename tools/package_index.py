"""Package index on loopback (PEP 503) with our distributions; other packages come from the usual index.

It redirects for every other name, so ``scrapy-ext`` can come from here alone, whatever the usual index has.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from distributions import sha256

PROJECT = "scrapy-ext"
USUAL = "https://pypi.org/simple"


def usual_index() -> str:
    """Return the index that pip is configured with."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    return (done.stdout.strip() or USUAL).rstrip("/")


class PackageIndex:
    """Index with some files of one project. ``served`` has the names of the files that were downloaded."""

    def __init__(self, files: Sequence[Path], *, others: str) -> None:
        self.served: list[str] = []
        index = self
        by_name = {path.name: path for path in files}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                folder, _, name = self.path.strip("/").partition("/")
                if folder == "simple" and name == PROJECT:
                    links = [
                        f'<a href="/files/{each}#sha256={sha256(path)}">{each}</a>' for each, path in by_name.items()
                    ]
                    self._answer(f"<!doctype html><title>{PROJECT}</title>{''.join(links)}".encode(), "text/html")
                elif folder == "simple" and name:
                    self.send_response(302)
                    self.send_header("Location", f"{others}/{name}/")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                elif folder == "files" and name in by_name:
                    index.served.append(name)
                    self._answer(by_name[name].read_bytes(), "application/octet-stream")
                else:
                    self.send_error(404)

            # uv looks whether it can read a part of a file.
            def do_HEAD(self) -> None:
                self.do_GET()

            def _answer(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                # pip would find these bytes again in its cache, also after another build.
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/simple/"

    def __enter__(self) -> PackageIndex:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
