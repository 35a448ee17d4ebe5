"""A server on loopback that nobody allowed must see no connection, whatever a page tries."""

from __future__ import annotations

import asyncio
import socket

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

INSIDE = ("localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "inside.example")


async def loopback(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.fixture(scope="module")
def attacked(site: Target) -> Service:  # type: ignore[misc]
    """A service whose resolver knows every name as loopback, with one allowed site."""
    limits = ServiceLimits(load=3, quiet=0.3, settle=2, resolve_cache=0)
    with Service(allow_hosts=(site.host,), resolve=loopback, limits=limits) as running:
        yield running


ATTACKS = {
    "elements": "<img src='{url}'><link rel=stylesheet href='{url}'><script src='{url}'></script>"
    "<iframe src='{url}'></iframe><object data='{url}'></object><embed src='{url}'>"
    "<link rel=preconnect href='{url}'><link rel=prefetch href='{url}'>"
    "<link rel=dns-prefetch href='{url}'><link rel=preload as=fetch href='{url}'>",
    "scripts and workers": "<script>fetch('{url}', {{mode: 'no-cors'}}); navigator.sendBeacon('{url}', 'x');"
    "new Image().src = '{url}'; new WebSocket('{ws}'); new EventSource('{url}');"
    "{{const code = URL.createObjectURL(new Blob([\"fetch('{url}', {{mode: 'no-cors'}})\"]));"
    "new Worker(code); new SharedWorker(code)}}</script>",
    "windows and WebRTC": "<form action='{url}' method=post target=other></form>"
    "<script>window.open('{url}'); document.forms[document.forms.length - 1].submit();"
    "{{const peer = new RTCPeerConnection({{iceServers: [{{urls: 'turn:{host}?transport=tcp',"
    "username: 'u', credential: 'p'}}]}}); peer.createDataChannel('x');"
    "peer.createOffer().then(offer => peer.setLocalDescription(offer))}}</script>",
}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_page_loads_reaches_a_private_address(
    attacked: Service, site: Target, forbidden: Target, attack: str
) -> None:
    code = "".join(
        ATTACKS[attack].format(
            url=f"http://{host}:{forbidden.port}/", ws=f"ws://{host}:{forbidden.port}/", host=f"{host}:{forbidden.port}"
        )
        for host in INSIDE
    )
    url = site.page("/attack", f"<h1>attack</h1>{code}")
    result = attacked.result(url=url, browserHtml=True, includeIframes=True)
    assert "attack" in result["browserHtml"]
    assert "inside" not in result["browserHtml"].replace("inside.example", "")
    assert forbidden.connections == 0


@pytest.mark.long
def test_the_same_pages_do_reach_a_server_that_is_allowed(service: Service, site: Target) -> None:
    # Otherwise the test above would show nothing.
    code = "".join(
        template.format(url=site.url(f"/reached?{number}"), ws=f"ws://{site.host}/reached?{number}", host=site.host)
        for number, template in enumerate(ATTACKS.values())
    )
    site.page("/reached", "x")
    service.result(url=site.page("/attack", code), browserHtml=True)
    calls = [call.path.partition("?")[2] for call in site.calls_of("/reached")]
    assert {number: calls.count(number) > 1 for number in ("0", "1", "2")} == {"0": True, "1": True, "2": True}


@pytest.mark.parametrize("host", INSIDE)
def test_a_redirect_to_a_private_address_is_421(attacked: Service, site: Target, forbidden: Target, host: str) -> None:
    url = site.page("/to-inside", "", 302, Location=f"http://{host}:{forbidden.port}/")
    attacked.problem(421, "/website/domain-unreachable", url=url, browserHtml=True)
    assert forbidden.connections == 0


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_page_that_moves_itself_to_a_private_address_is_421(
    attacked: Service, site: Target, forbidden: Target, scheme: str
) -> None:
    target = f"{scheme}://127.0.0.1:{forbidden.port}/"
    url = site.page("/moves", f"<h1>moves</h1><script>location.href = '{target}'</script>")
    attacked.problem(421, "/website/domain-unreachable", url=url, browserHtml=True)
    assert forbidden.connections == 0


def test_a_url_that_names_a_private_address_is_421_before_a_browser_starts(forbidden: Target) -> None:
    with Service() as running:
        detail = running.problem(421, "/website/domain-unreachable", url=forbidden.url(), browserHtml=True)
        assert running.service.browser.launches == 0
    assert f"--allow-host localhost:{forbidden.port}" in detail
    assert forbidden.connections == 0


def test_a_name_that_changes_to_a_private_address_after_the_page_was_loaded_is_refused(
    site: Target, forbidden: Target
) -> None:
    # The page comes from the name; then its address changes, and what it loads from itself goes elsewhere.
    lookups: list[int] = []

    async def rebinding(host: str, port: int) -> list[str]:
        lookups.append(port)
        return ["127.0.0.1"]

    with Service(
        connect_to=(f"rebind.example:80=127.0.0.1:{site.port}",),
        resolve=rebinding,
        limits=ServiceLimits(resolve_cache=0),
    ) as running:
        inside = f"http://rebind.example:{forbidden.port}/"
        site.page("/rebinding", f"<h1>page</h1><script>fetch('{inside}').catch(() => document.title = 'no')</script>")
        result = running.result(url="http://rebind.example/rebinding", browserHtml=True)
    assert "<title>no</title>" in result["browserHtml"]
    assert forbidden.port in lookups
    assert forbidden.connections == 0


@pytest.mark.parametrize(
    "to", ["file:///etc/hostname", "view-source:file:///etc/passwd", "chrome://version", "data:text/html,x"]
)
def test_other_schemes_are_not_followed(service: Service, site: Target, to: str) -> None:
    url = site.page("/scheme", "", 302, Location=to)
    service.problem(521, "/download/internal-error", url=url, browserHtml=True)


def test_a_page_cannot_show_a_file(service: Service, site: Target) -> None:
    code = "<iframe src='file:///etc/passwd'></iframe><script>location.href = 'file:///etc/passwd'</script>"
    result = service.result(url=site.page("/files", code), browserHtml=True, includeIframes=True)
    assert "root:" not in result["browserHtml"]


def test_a_service_worker_is_not_registered(service: Service, site: Target) -> None:
    site.page("/sw.js", "self.addEventListener('fetch', () => {})", Content_Type="text/javascript")
    service.result(
        url=site.page("/worker", "<script>navigator.serviceWorker.register('/sw.js')</script>"), browserHtml=True
    )
    assert not site.calls_of("/sw.js")


def test_the_public_part_of_a_page_is_loaded_beside_what_is_refused(
    service: Service, site: Target, forbidden: Target
) -> None:
    site.page("/ok.js", "document.body.append('script ran')")
    url = site.page("/mixed", f"<body><img src='{forbidden.url()}'><script src='/ok.js'></script>")
    assert "script ran" in service.result(url=url, browserHtml=True)["browserHtml"]
    assert forbidden.connections == 0


def test_a_websocket_to_an_allowed_host_goes_through(service: Service, site: Target) -> None:
    async def refuse(call: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    site.handle("/socket", refuse)
    url = site.page("/sockets", f"<script>new WebSocket('ws://{site.host}/socket')</script>")
    service.result(url=url, browserHtml=True)
    assert site.calls_of("/socket")[-1].header("upgrade") == "websocket"


def test_no_datagram_leaves_a_page(service: Service, site: Target) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        port = listener.getsockname()[1]
        script = f"""
          const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}},
            {{urls: 'turn:127.0.0.1:{port}?transport=udp', username: 'u', credential: 'p'}}]}});
          peer.createDataChannel('x');
          const candidates = [];
          const gathered = new Promise(done => peer.onicecandidate = event =>
            event.candidate ? candidates.push(event.candidate.candidate) : done());
          peer.createOffer().then(offer => peer.setLocalDescription(offer));
          const refused = new WebTransport('https://127.0.0.1:{port}/').ready.catch(error => error.name);
          await gathered;
          [candidates.length, await refused];
        """
        url = site.page("/datagrams", "<h1>datagrams</h1>")
        actions = [{"action": "evaluate", "source": script, "timeout": 20}]
        results = service.result(url=url, browserHtml=True, actions=actions)["actions"]
        assert results[0].get("result") == [0, "WebTransportError"], results
        with pytest.raises(BlockingIOError):
            listener.recv(1)
