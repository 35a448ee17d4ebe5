"""Alerts by Apprise, sent to receivers on this machine."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from scrapy_ext.api.platform.alerts import masked, target_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.dispatching import SendError
from scrapy_ext.server.monitors.sending import AlertSender, without_parts
from scrapy_ext.server.store.monitors.alerts import ClaimedMessage
from tests.support.mail_receiver import MailReceiver
from tests.support.webhook_receiver import Receiver


def message(url: str) -> ClaimedMessage:
    return ClaimedMessage(1, 1, 1, "alert", 0, 1, "books: a monitor fails", "items is 12\nJob 1/2/3", url)


async def test_a_message_arrives_by_http() -> None:
    async with Receiver() as receiver:
        sender = AlertSender([receiver.host])
        assert await sender.send(message(f"json://{receiver.host}/a-token")) == "accepted"
        (body,) = receiver.bodies
    assert body["title"] == "books: a monitor fails"
    assert body["message"] == "items is 12\nJob 1/2/3"


async def test_a_message_arrives_by_mail() -> None:
    async with MailReceiver() as receiver:
        sender = AlertSender([receiver.host])
        url = f"mailto://{receiver.host}?from=platform@crawls.example&to=night@crawls.example&mode=insecure"
        assert await sender.send(message(url)) == "accepted"
        (mail,) = receiver.messages
    assert mail["Subject"] == "books: a monitor fails"
    assert "night@crawls.example" in mail["To"]
    body = mail.get_body(("plain",))
    assert body is not None
    assert "items is 12" in body.get_content()


@pytest.mark.full
async def test_a_refusal_of_the_receiver_is_the_outcome_without_the_token() -> None:
    async with Receiver() as receiver:
        receiver.status = 403
        with pytest.raises(SendError, match="403") as raised:
            await AlertSender([receiver.host]).send(message(f"json://{receiver.host}/a-secret-token"))
    assert "a-secret-token" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["json", "mailto"])
async def test_addresses_that_are_not_public_are_refused(scheme: str) -> None:
    async with Receiver() as receiver:
        target = f"{scheme}://{receiver.host}/token?from=a@b.example&to=c@d.example&mode=insecure"
        with pytest.raises(SendError, match="not public; the operator of the server can allow it"):
            await AlertSender().send(message(target))
        assert receiver.requests == []


@pytest.mark.full
async def test_a_redirect_to_an_address_that_is_not_public_is_refused() -> None:
    async with Receiver() as allowed, Receiver() as other:
        allowed.status, allowed.host, host = 307, other.host, allowed.host
        with pytest.raises(SendError):
            await AlertSender([host]).send(message(f"json://{host}/"))
        assert len(allowed.requests) == 1
        assert other.requests == []


@pytest.mark.full
async def test_a_receiver_that_does_not_answer_is_given_up_in_time() -> None:
    async with Receiver() as receiver:
        receiver.gate.clear()
        with pytest.raises(SendError, match="no answer within 3 seconds"):
            await AlertSender([receiver.host], timeout=3).send(message(f"json://{receiver.host}/"))


async def test_an_address_that_apprise_cannot_read_is_not_in_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SendError, match="not one that Apprise accepts"):
        await AlertSender().send(message("slack://a-secret"))
    assert "a-secret" not in "".join(capfd.readouterr())


@pytest.mark.full
async def test_a_closed_port_is_a_failure_with_a_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        host = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(SendError, match=r"\w"):
        await asyncio.wait_for(AlertSender([host]).send(message(f"json://{host}/")), 60)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("", "must be printable text"),
        ("slack", "must begin with the scheme"),
        ("syslog://", "has the scheme syslog, which is not supported"),
        ("dbus://", "not supported"),
        ("file:///etc/passwd", "not supported"),
        ("mailto://a:b@c.example?pgpkey=/etc/passwd", "has the parameter pgpkey"),
        ("json://host/?+attach=/etc/passwd", "has the parameter attach"),
        ("json://host/?a=b;Attach=/etc/passwd", "has the parameter attach"),
        ("mailto://a:b@c.example#?pgpkey=/etc/passwd", "has the parameter pgpkey"),
        ("json://host/?%70gpkey=/etc/passwd", "has the parameter pgpkey"),
        ("discord://a/b/?template=/etc/passwd", "has the parameter template"),
        ("slack://a/b/c/#channel?template=/etc/passwd", "has the parameter template"),
        ("tgram://a/b/?template=/etc/passwd", "has the parameter template"),
        ("workflows://host/a/b/?template=/etc/passwd", "has the parameter template"),
        ("json://[::1", "is not a URL"),
        ("json://a\nb", "must be printable"),
    ],
)
def test_a_wrong_address_is_refused_without_repeating_it(url: str, rule: str) -> None:
    with pytest.raises(ContractError, match=rule) as raised:
        target_of({"name": "on-call", "url": url})
    assert not url or url not in str(raised.value).replace("slack://TOKEN", "").replace("the scheme syslog", "")


@pytest.mark.parametrize("url", ["slack://a/b/c/#attach/#template", "rocket://user:pass@host/#keyfile"])
def test_a_channel_with_the_name_of_a_parameter_is_accepted(url: str) -> None:
    assert target_of({"name": "on-call", "url": url}).url == url


def test_a_template_that_a_service_keeps_is_no_file() -> None:
    url = "sendgrid://key:from@a.example/to@b.example/?template=d-1234"
    assert target_of({"name": "on-call", "url": url}).url == url


async def test_a_target_that_names_a_file_of_the_server_does_not_read_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"content": "a-secret"}', "utf-8")
    url = f"discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js/?template={secret}"
    with pytest.raises(SendError, match=r"Discord .* could not be read"):
        await AlertSender().send(message(url))


def test_no_part_of_an_address_is_in_lists_and_outcomes() -> None:
    url = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#channel?footer=no%20secret"
    assert masked(url) == "slack://***"
    text = without_parts("POST https://hooks/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ no secret\r\nfailed", url)
    assert text == "POST https://hooks/***/***/*** *** failed"
