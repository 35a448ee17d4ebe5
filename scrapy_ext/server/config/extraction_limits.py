"""Every bound of the extraction service, in one place: what waits has a timeout, what grows has an end.

Seconds and bytes unless said. The values are for a server that shares a small machine with a crawl: a page
that needs more than these is one that most crawls are better off without. Tests lower them.
"""

from __future__ import annotations

import msgspec

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one service."""

    # ── the caller's request ──
    #: From the first byte of a request to its answer; then 500 ``/server/timed-out``.
    request: float = 120.0
    #: For the request's body to arrive.
    request_body: float = 30.0
    #: For the caller to read the answer; then the connection is closed.
    answer: float = 600.0
    #: Requests under way at once; one more gets 503.
    requests: int = 512
    #: Of these, to one domain; a server's option may say otherwise.
    domain_requests: int = 32
    #: Requests that wait for their domain; one more gets 429.
    domain_waiting: int = 64
    #: The longest wait for a domain; then 429.
    domain_patience: float = 20.0

    # ── HTTP fetches, and every connection that the browser opens ──
    resolve: float = 10.0
    #: Lookups are trusted this long. Connections are made to the checked addresses only, however long it is.
    resolve_cache: float = 30.0
    #: How long a change of the block list may go unnoticed.
    block_list: float = 2.0
    connect: float = 10.0
    #: Silence of a target in the middle of an answer.
    read: float = 30.0
    #: A whole fetch with its redirects.
    fetch: float = 90.0
    redirects: int = 10
    body_bytes: int = 32 * MIB

    # ── browser pages ──
    #: Requests that wait for a free page; one more gets 503.
    pages_waiting: int = 64
    #: The longest wait for a free page; then 503.
    page_patience: float = 60.0
    launch: float = 30.0
    #: Until a target begins to answer a navigation.
    navigate: float = 30.0
    #: From there to the page's load event; what has arrived by then is the page.
    load: float = 15.0
    #: How long the network must be quiet for a page to count as settled, and how long that is waited for.
    quiet: float = 0.5
    settle: float = 5.0
    #: For one reading of the page: its HTML, a screenshot, a frame.
    read_page: float = 15.0
    #: For all actions of a request.
    actions: float = 60.0
    #: For a browser to open or close a context, or to say that it is there; then it hangs, is ended, and the next page
    #: gets a new one. On a busy machine a sound one has taken over 5.
    respond: float = 15.0
    #: For a browser to end; then its processes are killed.
    close: float = 5.0
    #: All that one page may receive and send.
    page_bytes: int = 128 * MIB
    html_bytes: int = 32 * MIB
    frames: int = 50
    #: Connections that one page may hold open.
    page_connections: int = 64
    #: JavaScript heap of a page, in MiB; a page over it crashes alone.
    page_heap_mib: int = 512
    #: What the process of a page may hold in all (heap, document, images, buffers), in MiB; one over it is ended.
    page_memory_mib: int = 768
    #: A browser is replaced by a new one after so many pages, at this age, and when its processes hold so many MiB
    #: together; the pages in it finish. One that holds twice as much is ended at once.
    pages_per_browser: int = 500
    browser_age: float = 3600.0
    browser_memory_mib: int = 1024
    #: How often memory is looked at, and how often a browser is asked whether it still answers, while it has pages.
    #: It has ``respond`` for that.
    look: float = 0.25
    ask: float = 2.0

    # ── automatic extraction ──
    extractors: int = 2
    #: For one page; then its process is ended.
    extract: float = 30.0

    # ── custom attributes by a language model ──
    #: For one answer, the wait for its turn with it.
    attributes: float = 60.0
    attribute_requests: int = 8
    #: Characters of a page's text that are sent.
    attribute_text: int = 40_000
    attribute_answer: int = MIB
