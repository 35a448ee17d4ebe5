"""A connection to the server that breaks once, at a chosen place of an answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit

from scrapy_ext.compatibility.python import Self


class CutConnection:
    """Passes bytes both ways, and closes one connection ``after`` so many bytes of an answer to the method."""

    def __init__(self, url: str, *, after: int, answers_to: str = "GET") -> None:
        target = urlsplit(url)
        self._target = (target.hostname, target.port)
        self._after = after
        self._method = answers_to.encode()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in accept() is not woken by closing the socket alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        far = socket.create_connection(self._target)
        state = {"answered": 0, "counts": False}
        back = threading.Thread(target=self._back, args=(near, far, state), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                if data.startswith(self._method):
                    state.update(answered=0, counts=True)
                far.sendall(data)
        with contextlib.suppress(OSError):
            far.shutdown(socket.SHUT_RDWR)

    def _back(self, near: socket.socket, far: socket.socket, state: dict[str, int]) -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                state["answered"] += len(data)
                if state["counts"] and state["answered"] > self._after and self._cut():
                    break
                near.sendall(data)
        for end in (near, far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _cut(self) -> bool:
        with self._lock:
            self.cuts += 1
            if self.cuts > 1:
                self.cuts = 1
                return False
            return True
