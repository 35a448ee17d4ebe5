"""Run spiders in every wiring against the site, and compare what they do with what plain Scrapy does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scrapy_ext.compatibility.python import Self
from tests.acceptance.parity.outcome import differences, fields
from tests.acceptance.parity.site import OTHER, Sites
from tests.acceptance.parity.wirings import PLAIN, WIRINGS
from tests.support import forked
from tests.support.servers import ForkedServer, RunningServer, without_keys

#: Seconds for all spiders of one wiring.
_TIMEOUT = 900


class Comparison:
    """Runs the spiders when it is entered: one process for each wiring, all at once, and a site for each run."""

    def __init__(self, spiders: Sequence[str], folder: Path, wirings: Mapping[str, Any] = WIRINGS) -> None:
        self._spiders = spiders
        self._folder = folder
        self._wirings = wirings
        self._outcomes: dict[tuple[str, str], dict[str, Any]] = {}

    def differences(self, spider: str, wiring: str) -> dict[str, tuple[Any, Any]]:
        """Fields that are not what they are with plain Scrapy, with both values."""
        return differences(self._outcomes[spider, PLAIN], self._outcomes[spider, wiring])

    def outcome(self, spider: str, wiring: str) -> dict[str, Any]:
        """All that is compared of a spider's run."""
        return self._outcomes[spider, wiring]

    def __enter__(self) -> Self:
        sites = Sites(len(self._spiders) * len(self._wirings))
        try:
            self._run(sites)
        finally:
            sites.close()
        return self

    def __exit__(self, *_: object) -> None: ...

    def _run(self, sites: Sites) -> None:
        free = iter(sites.ports)
        ports = {wiring: {spider: next(free) for spider in self._spiders} for wiring in self._wirings}
        # Port 1, where nothing listens, for a connection that is refused.
        allowed = ["localhost:1", *(f"{host}:{port}" for port in sites.ports for host in ("localhost", OTHER))]
        connect = [option for port in sites.ports for option in ("--connect-to", f"{OTHER}:{port}=127.0.0.1:{port}")]
        with ForkedServer(self._folder / "data", allow_hosts=allowed, options=connect) as server:
            processes = {wiring: self._start(wiring, ports[wiring], server) for wiring in self._wirings}
            try:
                for wiring, process in processes.items():
                    code = process.wait(_TIMEOUT)
                    assert code == 0, f"{wiring}: exit code {code}\n{self._errors(wiring).read_text()[-5000:]}"
            finally:
                for process in processes.values():
                    process.kill()
                    process.wait()
        for wiring in self._wirings:
            for spider, port in ports[wiring].items():
                folder = self._folder / wiring / spider
                written = Path(f"{folder}.json").read_text()
                self._outcomes[spider, wiring] = fields(written, sites.visits[port], port, str(folder))

    def _start(
        self, wiring: str, ports: Mapping[str, int], server: RunningServer
    ) -> subprocess.Popen[bytes] | forked.ForkedProcess:
        plan = {
            "wiring": wiring,
            "settings": {
                "PLATFORM_URL": server.url,
                "PLATFORM_API_KEY": server.platform_key,
                "EXTRACT_API_URL": f"{server.url}/v1",
                "EXTRACT_API_KEY": server.extract_key,
                # One server for all spiders stands for the embedded one, of which a crawl knows what it knows.
                "EXTRACT_API_EXTRA_FIELDS": "followRedirect,omitHttpRequestHeaders",
            },
            "spiders": {
                spider: {"port": port, "folder": str(self._folder / wiring / spider)} for spider, port in ports.items()
            },
        }
        path = self._folder / f"{wiring}.json"
        path.write_text(json.dumps(plan))
        with self._errors(wiring).open("wb") as errors:
            return forked.start(
                [sys.executable, "-m", "tests.acceptance.parity.run", str(path)],
                cwd=Path(__file__).parents[3],
                env=without_keys(),
                stderr=errors,
            )

    def _errors(self, wiring: str) -> Path:
        return self._folder / f"{wiring}.err"
