"""The server that all tests of a run share. It may fetch any port of this machine: mock servers get free ones."""

from __future__ import annotations

import sys

from scrapy_ext.server.net import guard


class _Localhost(frozenset[tuple[str, int]]):
    """Every port of ``localhost``."""

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and pair[0] == "localhost"


class _Guard(guard.Guard):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self._allowed = _Localhost()


if __name__ == "__main__":
    guard.Guard = _Guard  # type: ignore[misc]
    # Only now, for the modules of the server take the class by its name.
    from scrapy_ext.server.__main__ import main

    sys.exit(main())
