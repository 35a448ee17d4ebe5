"""Limits of the extraction service, in seconds and bytes unless noted; tests lower them.

The values are for a server that shares a small machine with a crawl: a crawl is usually better off without a page that
needs more.
"""

from __future__ import annotations

import msgspec

MIB = 1024 * 1024


class ServiceLimits(msgspec.Struct, frozen=True, kw_only=True):
    # ── the caller's request ──
    #: From the first byte of a request to its answer; more gives 500 ``/server/timed-out``. Less than Scrapy's default
    #: of DOWNLOAD_TIMEOUT, 180 seconds, so that a crawl gets the answer; more than ``fetch`` and ``domain_patience``.
    request: float = 170.0
    #: The arrival of a request's body.
    request_body: float = 30.0
    #: The transfer of an answer; then the connection is closed.
    answer: float = 600.0
    #: Requests under way at once; one more gets 503.
    requests: int = 512
    #: Of these, requests to one domain (default of ``--domain-requests``).
    domain_requests: int = 32
    #: Requests that wait for their domain; one more gets 429.
    domain_waiting: int = 64
    #: The longest wait for a domain; then 429.
    domain_patience: float = 20.0

    # ── HTTP fetches, and every connection that the browser opens ──
    resolve: float = 10.0
    #: Validity of a lookup. Connections always use the checked addresses only.
    resolve_cache: float = 30.0
    #: Maximum delay until a change of the block list takes effect.
    block_list: float = 2.0
    connect: float = 10.0
    #: A fetch with all redirects. As in Scrapy, the wait for the first byte and pauses have no limit of their own:
    #: reports and exports are made before their first byte is sent.
    fetch: float = 150.0
    redirects: int = 10
    body_bytes: int = 32 * MIB

    # ── browser pages ──
    #: Requests that wait for a free page; one more gets 503.
    pages_waiting: int = 64
    #: The longest wait for a free page; then 503.
    page_patience: float = 60.0
    launch: float = 30.0
    #: From a navigation to the first byte of its answer.
    navigate: float = 90.0
    #: From there to the page's load event; later resources are not waited for.
    load: float = 15.0
    #: Pages of one browser that are opened ahead of their requests, and seconds without one until they are closed.
    spare_pages: int = 3
    spare_idle: float = 5.0
    #: Quiet time of the network after which a page is settled, and the longest wait for it.
    quiet: float = 0.5
    settle: float = 5.0
    #: The longest wait for the page behind a challenge that its scripts pass.
    challenge: float = 20.0
    #: One read of the page: its HTML, a screenshot, a frame.
    read_page: float = 15.0
    #: All actions of a request.
    actions: float = 60.0
    #: Opening or closing of a browser context, and the answer to a liveness check. A slower browser is ended, and the
    #: next page gets a new one. On a busy machine, sound browsers took over 5 seconds.
    respond: float = 15.0
    #: The end of a browser; then its processes are killed.
    close: float = 5.0
    #: Bytes that one page may receive and send.
    page_bytes: int = 128 * MIB
    html_bytes: int = 32 * MIB
    frames: int = 50
    #: Open connections of one page.
    page_connections: int = 64
    #: JavaScript heap of a page, in MiB; a larger one crashes the page only.
    page_heap_mib: int = 512
    #: Memory of a page's process (heap, document, images, buffers), in MiB; a larger process is ended.
    page_memory_mib: int = 768
    #: Pages, age, and memory (MiB) of all its processes after which a browser is replaced; its pages finish. A browser
    #: with twice the memory is ended at once.
    pages_per_browser: int = 500
    browser_age: float = 3600.0
    browser_memory_mib: int = 1024
    #: Intervals between reads of the memory, and between liveness checks (see ``respond``) of a browser with pages.
    look: float = 0.25
    ask: float = 2.0

    #: Bytes of all headers and bodies that ``networkCapture`` returns.
    capture_bytes: int = 16 * MIB

    # ── sessions ──
    #: Open sessions, of all keys and of one. Beyond it, idle ones make room for a new one, or it gets 422.
    sessions: int = 1000
    sessions_of_key: int = 500
    #: A session that no request has used for this long expires; its identifier is refused for as long again.
    session_idle: float = 900.0
    #: State of one session (cookies, storage of its pages), and of all of them together. Storage goes before cookies.
    session_bytes: int = 512 * 1024
    sessions_bytes: int = 64 * MIB

    # ── automatic extraction ──
    #: Extraction from one page; then its process is ended.
    extract: float = 30.0

    # ── custom attributes by a language model ──
    #: One answer, with the wait for a permit.
    attributes: float = 60.0
    attribute_requests: int = 8
    #: Characters of a page's text that are sent.
    attribute_text: int = 40_000
    attribute_answer: int = MIB
