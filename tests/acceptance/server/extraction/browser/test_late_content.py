"""Content that comes after the load event: what is in a page half a second after its last request is in its HTML,
whether that time was waited for or the clock of the page was set forward by it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.acceptance.server.extraction.browser.conftest import serving
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Call, Target

#: Appends a word that no script has as a whole.
_LATE = "document.body.append('la' + 'te')"
_DATABASE = """const opening = indexedDB.open('x');
opening.onupgradeneeded = () => opening.result.createObjectStore('s');
opening.onsuccess = () => {
  const change = opening.result.transaction('s', 'readwrite');
  change.objectStore('s').put(1, 1);
  change.oncomplete = () => LATE;
};"""
_KEYS = """const way = { name: 'PBKDF2', salt: new Uint8Array(8), iterations: 50000, hash: 'SHA-256' };
crypto.subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits'])
  .then(key => crypto.subtle.deriveBits(way, key, 256)).then(() => LATE);"""
_WORKER = """const worker = new Worker('/delayed.js');
worker.onmessage = () => LATE;"""

#: Scripts that run at the load event, by what they wait for.
CONTENT = {
    "nothing": "LATE",
    "a timer": "setTimeout(() => LATE, 300)",
    "a timer almost as long as the quiet time": "setTimeout(() => LATE, 470)",
    "a fetch after a timer": "setTimeout(() => fetch('/data').then(() => LATE), 300)",
    "a slow fetch": "fetch('/slow').then(() => LATE)",
    "a request after a timer": """setTimeout(() => {
        const request = new XMLHttpRequest();
        request.onload = () => LATE;
        request.open('GET', '/slow');
        request.send();
    }, 300)""",
    "a body that comes in parts": "setTimeout(() => fetch('/parts').then(part => part.text()).then(() => LATE), 200)",
    "fetches one after the other": """(async () => {
        for (let i = 0; i < 4; i++) { await new Promise(done => setTimeout(done, 300)); await fetch('/data'); }
        LATE;
    })()""",
    "a script that sets a timer": """setTimeout(() => {
        const script = document.createElement('script');
        script.src = '/timer.js';
        document.body.append(script);
    }, 300)""",
    "a move to another page": "setTimeout(() => { location = '/moved' }, 300)",
    "an interval": "let count = 0; setInterval(() => { if (++count == 8) LATE }, 50)",
    "messages one after the other": """const { port1, port2 } = new MessageChannel();
        let count = 0;
        port1.onmessage = () => { if (++count < 500) port2.postMessage(0); else LATE };
        port2.postMessage(0)""",
    "the time between frames": "requestIdleCallback(() => LATE)",
    "a database": _DATABASE,
    "a database after a timer": f"setTimeout(() => {{ {_DATABASE} }}, 300)",
    "keys": _KEYS,
    "keys after a timer": f"setTimeout(() => {{ {_KEYS} }}, 200)",
    "a frame": """const frame = document.createElement('iframe');
        frame.src = '/frame';
        onmessage = () => LATE;
        document.body.append(frame)""",
    "a frame of another site": """const frame = document.createElement('iframe');
        frame.src = 'http://frame.example/frame';
        onmessage = () => LATE;
        document.body.append(frame)""",
    "a dialog after a timer": "setTimeout(() => { alert('x'); LATE }, 300)",
    "another page after a timer": "setTimeout(() => { open('/frame'); setTimeout(() => LATE, 50) }, 300)",
    "a document that is written after a timer": """setTimeout(() => {
        document.open();
        document.write('<body>');
        document.close();
        LATE;
    }, 300)""",
    "the page once more after a timer": """if (sessionStorage.x) LATE;
        else { sessionStorage.x = 1; setTimeout(() => location.reload(), 200) }""",
    "a refresh": "document.head.innerHTML = '<meta http-equiv=refresh content=\"0;url=/moved\">'",
    "a task with a delay": "scheduler.postTask(() => LATE, { delay: 300 })",
    "a cache after a timer": """setTimeout(async () => {
        const cache = await caches.open('x');
        await cache.put('/x', new Response('x'));
        await cache.match('/x');
        LATE;
    }, 300)""",
    "an element that comes into view after a timer": """setTimeout(() => {
        const shown = document.body.appendChild(document.createElement('p'));
        new IntersectionObserver(() => fetch('/data').then(() => LATE)).observe(shown);
    }, 300)""",
    "a transition of views after a timer": """setTimeout(() => {
        document.startViewTransition(() => {}).finished.then(() => LATE);
    }, 50)""",
    "a file after a timer": """setTimeout(() => {
        const reader = new FileReader();
        reader.onload = () => LATE;
        reader.readAsText(new Blob(['x']));
    }, 300)""",
    "compilation after a timer": """setTimeout(() => {
        WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => LATE);
    }, 300)""",
    "a question to the browser after a timer": """setTimeout(() => {
        navigator.storage.estimate().then(() => navigator.permissions.query({ name: 'camera' })).then(() => LATE);
    }, 300)""",
    "a frame without a document of its own": """const frame = document.createElement('iframe');
        document.body.append(frame);
        frame.contentWindow.setTimeout(() => LATE, 300)""",
    "a frame without rights": """const frame = document.createElement('iframe');
        frame.sandbox = 'allow-scripts';
        frame.srcdoc = '<script>setTimeout(() => parent.postMessage(1, "*"), 250)<' + '/script>';
        onmessage = () => LATE;
        document.body.append(frame)""",
    "a timer beside long polling": "fetch('/never'); setTimeout(() => LATE, 300)",
    "a timer beside polling": """setInterval(() => fetch('/data'), 100); setTimeout(() => LATE, 300)""",
    "a timer beside advertisements without end": """setInterval(() => {
        const frame = document.createElement('iframe'), script = document.createElement('script');
        frame.src = '/frame';
        script.src = '/data';
        document.body.append(frame, script);
    }, 200);
    setTimeout(() => LATE, 300)""",
    "a timer beside tasks without end": """const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => port2.postMessage(0);
        port2.postMessage(0);
        setTimeout(() => LATE, 300)""",
}
#: Scripts that wait for something that does not depend on the clock of the page, for about a second.
IN_REAL_TIME = {
    "drawn frames": """let count = 0;
        (function draw() { if (++count < 50) requestAnimationFrame(draw); else LATE })()""",
    "a worker": _WORKER,
    "a worker after a timer": f"setTimeout(() => {{ {_WORKER} }}, 200)",
    "a shared worker": """const worker = new SharedWorker('/shared.js');
        worker.port.onmessage = () => LATE""",
    "a WebSocket": "new WebSocket(`ws://${location.host}/socket`).onmessage = () => LATE",
    "an event stream": "new EventSource('/stream').onmessage = () => LATE",
    "a style": """document.head.innerHTML = '<style>@keyframes a {} p { animation: a 1s }</style>';
        document.body.append(Object.assign(document.createElement('p'), { onanimationend: () => LATE }))""",
    "databases after a timer": """setTimeout(() => {
        let count = 0;
        (function next() {
            if (++count == 30) return LATE;
            const opening = indexedDB.open('x' + count);
            opening.onupgradeneeded = () => opening.result.createObjectStore('s');
            opening.onsuccess = next;
        })();
    }, 300)""",
}
#: Those that would hang if their clock stood still.
WAITING_IN_LOOPS = {
    "a loop until a time": """setTimeout(() => {
        for (const ends = Date.now() + 100; Date.now() < ends;);
        LATE;
    }, 300)""",
    "a loop until the clock goes on": """setTimeout(() => {
        for (const before = performance.now(); performance.now() == before;);
        LATE;
    }, 300)""",
}
LIMITS = ServiceLimits(settle=3)
#: So long that the machine's speed does not matter.
LONG_LIMITS = ServiceLimits(quiet=3, settle=8)


@pytest.fixture(scope="module")
def late_site(site: Target) -> Target:
    """The site, with what its pages load."""

    async def answer(writer: asyncio.StreamWriter, seconds: float, body: bytes = b"{}") -> None:
        await asyncio.sleep(seconds)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def parts(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        for _number in range(4):
            await asyncio.sleep(0.2)
            writer.write(b"x")

    async def stream(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        await asyncio.sleep(1)
        writer.write(b"data: 1\n\n")
        await asyncio.sleep(30)

    async def socket(call: Call, writer: asyncio.StreamWriter) -> None:
        key = (call.header("sec-websocket-key") or "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accepted = base64.b64encode(hashlib.sha1(key.encode(), usedforsecurity=False).digest())
        writer.write(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        writer.write(b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n")
        await asyncio.sleep(1)
        writer.write(b"\x81\x01x")
        await asyncio.sleep(30)

    site.handle("/data", lambda _, writer: answer(writer, 0))
    site.handle("/slow", lambda _, writer: answer(writer, 1))
    site.handle("/never", lambda _, writer: answer(writer, 60))
    site.handle("/parts", parts)
    site.handle("/stream", stream)
    site.handle("/socket", socket)
    javascript = {"Content_Type": "text/javascript"}
    site.page("/timer.js", f"setTimeout(() => {_LATE}, 300)", **javascript)
    site.page("/delayed.js", "setTimeout(() => postMessage(1), 1000)", **javascript)
    site.page("/shared.js", "onconnect = event => setTimeout(() => event.ports[0].postMessage(1), 1000)", **javascript)
    site.page("/moved", f"<body><script>setTimeout(() => {_LATE}, 300)</script>")
    site.page("/frame", "<script>setTimeout(() => parent.postMessage(1, '*'), 300)</script>")
    return site


def _read(site: Target, limits: ServiceLimits, scripts: dict[str, str]) -> dict[str, str]:
    """Return the HTML of pages with these scripts, which are loaded at the same time."""

    def read(service: Service, script: str) -> str:
        page = f"<body><script>addEventListener('load', () => {{ {script.replace('LATE', _LATE)} }})</script>"
        path = f"/late/{hashlib.sha256(script.encode()).hexdigest()}"
        return str(service.result(url=site.page(path, page), browserHtml=True)["browserHtml"])

    with serving(site, limits) as service, ThreadPoolExecutor(len(scripts)) as threads:
        found = threads.map(lambda script: read(service, script), scripts.values())
        return dict(zip(scripts, found, strict=True))


@pytest.fixture(scope="module")
def pages(late_site: Target) -> dict[str, str]:
    return _read(late_site, LIMITS, CONTENT)


@pytest.mark.parametrize("name", CONTENT)
def test_content_that_waits_for_something_is_in_the_page(pages: dict[str, str], name: str) -> None:
    assert "late" in pages[name]


@pytest.mark.long
def test_content_that_takes_real_time_is_in_the_page(late_site: Target) -> None:
    assert [name for name, html in _read(late_site, LONG_LIMITS, IN_REAL_TIME).items() if "late" not in html] == []


@pytest.mark.long
def test_content_that_waits_in_a_loop_is_in_the_page(late_site: Target) -> None:
    assert [name for name, html in _read(late_site, LIMITS, WAITING_IN_LOOPS).items() if "late" not in html] == []


@pytest.mark.long
def test_the_same_is_in_a_page_whose_clock_is_the_real_one(late_site: Target) -> None:
    found = _read(late_site, ServiceLimits(settle=3, observe=LIMITS.quiet), {**CONTENT, **WAITING_IN_LOOPS})
    found |= _read(late_site, ServiceLimits(quiet=3, settle=8, observe=LONG_LIMITS.quiet), IN_REAL_TIME)
    assert [name for name, html in found.items() if "late" not in html] == []


def test_a_timer_beyond_the_quiet_time_is_not_waited_for(late_site: Target) -> None:
    html = _read(late_site, LIMITS, {"beyond": "document.body.append('loaded'); setTimeout(() => LATE, 30000)"})
    assert "loaded</body>" in html["beyond"]


def test_a_page_that_does_nothing_but_wait_for_timers_is_not_waited_for(late_site: Target) -> None:
    limits = ServiceLimits(quiet=60, settle=100)
    begun = time.monotonic()
    html = _read(late_site, limits, {"long": "setTimeout(() => fetch('/data').then(() => LATE), 50000)"})
    assert "late" in html["long"]
    assert time.monotonic() - begun < limits.quiet
