"""Reports of the workers of a job, as their processes send them."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support.http import Http


async def joined(http: Http, key: str, place: int, workers: str) -> dict[str, Any]:
    """Add a worker to a running job; return the answer to its join."""
    return await _sent(http, {"job": key, "nonce": f"{place:032x}", "number": 1, "workers": workers})


async def reported(http: Http, key: str, attempt: int, number: int, **fields: Any) -> dict[str, Any]:
    """Send a report of a worker that has joined; return the answer."""
    return await _sent(http, {"job": key, "attempt": attempt, "number": number, **fields})


async def _sent(http: Http, report: dict[str, Any]) -> dict[str, Any]:
    project = report["job"].split("/")[0]
    answer = await http.post(f"/jobq/{project}/report", msgspec.json.encode(report))
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json
    return found
