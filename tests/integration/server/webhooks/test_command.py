"""``scrapy platform webhooks`` as its user runs it, on a server; and the receiver of the guide."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.webhooks import new_secret, signed_headers
from tests.support.servers import RunningServer
from tests.support.terminal_commands import scrapy

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "howto" / "webhooks.rst"


def run(server: RunningServer, project: int, *arguments: str) -> tuple[int, str, str]:
    """Exit code and output of the command, run in this process."""
    named = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": str(project)}
    done = scrapy("platform", "webhooks", *arguments, environment={**os.environ, **named})
    return done.returncode, done.stdout, done.stderr


def test_they_are_added_listed_tried_and_removed(server: RunningServer, project: int) -> None:
    code, out, error = run(server, project, "add", "http://localhost:8001/hook", "job:*", "else")
    assert (code, out[:6], out.count("\n")) == (0, "whsec_", 1)
    assert "webhook 1" in error
    secret = out.strip()
    code, out, error = run(server, project, "--json")
    assert (code, error) == (0, "")
    assert secret not in out
    webhook = json.loads(out)
    assert (webhook["id"], webhook["url"], webhook["events"]) == (1, "http://localhost:8001/hook", ["job:*", "else"])
    code, out, error = run(server, project, "test", "1")
    assert (code, out) == (1, "")
    assert "the test was not accepted: " in error
    assert "not public" in error
    code, out, _ = run(server, project, "deliveries", "1", "--json")
    assert code == 0
    (delivery,) = [json.loads(line) for line in out.splitlines()]
    assert (delivery["event"], delivery["state"], delivery["attempts"]) == ("webhook:test", "given up", 1)
    code, out, error = run(server, project, "resend", "1", delivery["id"])
    assert (code, out) == (1, "")
    assert "the delivery was not accepted: " in error
    (again,) = [json.loads(line) for line in run(server, project, "deliveries", "1", "--json")[1].splitlines()]
    assert again == {**delivery, "attempts": 2}
    for action, disabled in (("disable", True), ("enable", False)):
        assert run(server, project, action, "1") == (0, "", "")
        assert json.loads(run(server, project, "list", "--json")[1])["disabled"] is disabled
    assert run(server, project, "remove", "1") == (0, "", "")
    assert run(server, project, "--json")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "1"), "list takes no arguments"),
        (("add", "https://hooks.example/"), "add needs a URL and events"),
        (("add", "hooks.example", "*"), "url: is not a URL"),
        (("test",), "test needs the number of a webhook"),
        (("test", "x"), "webhook: must be a whole number"),
        (("resend", "1"), "resend needs a webhook and a delivery"),
        (("resend", "1", "x-y"), "delivery: must be a whole number"),
        (("resend", "99", "1-99-7"), "there is no delivery 7 that was given up"),
        (("test", "99"), "no webhook of the platform has this number"),
        (("deliveries", "99"), "no webhook of the platform has this number"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_what_is_wrong_is_reported_in_one_line(
    server: RunningServer, project: int, arguments: tuple[str, ...], message: str
) -> None:
    code, out, error = run(server, project, *arguments)
    assert (code, out) == (1, "")
    assert error.startswith("scrapy platform webhooks: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def guide() -> dict[str, Any]:
    """The receiver that the guide shows."""
    shown = GUIDE.read_text("utf-8").partition(".. test: file receiver.py\n")[2].splitlines()[2:]
    end = next(number for number, line in enumerate(shown) if line and not line.startswith("   "))
    names: dict[str, Any] = {"__name__": "receiver"}
    exec("\n".join(line[3:] for line in shown[:end]), names)
    return names


def test_the_receiver_of_the_guide_believes_nobody_else(guide: dict[str, Any]) -> None:
    secret, now, body = new_secret(), int(time.time()), b'{"event":"a"}'
    headers = signed_headers(secret, "1-1-1", now, body)
    assert guide["verify"](secret, headers, body) == {"event": "a"}
    several = {**headers, "webhook-signature": f"v1,bm9uZQ== {headers['webhook-signature']}"}
    assert guide["verify"](secret, several, body) == {"event": "a"}
    for changed in (
        {"webhook-id": "1-1-2"},
        {"webhook-timestamp": str(now + 1)},
        {"webhook-signature": "v1,bm9uZQ=="},
        {"webhook-signature": ""},
    ):
        with pytest.raises(ValueError, match="signature"):
            guide["verify"](secret, {**headers, **changed}, body)
    with pytest.raises(ValueError, match="signature"):
        guide["verify"](secret, headers, b'{"event":"b"}')
    with pytest.raises(ValueError, match="signature"):
        guide["verify"](new_secret(), headers, body)
    old = signed_headers(secret, "1-1-1", now - 3600, body)
    with pytest.raises(ValueError, match="old"):
        guide["verify"](secret, old, body)
