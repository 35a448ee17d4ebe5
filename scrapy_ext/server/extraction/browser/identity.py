"""What the browser tells sites of itself: the same as the service's HTTP requests do.

Playwright sets the language and the User-Agent of a context. What it leaves out is said here, for each page:

* The languages beside the first one (``de-AT,de``), as browsers have them. Of the headers it is that of the page and
  of its frames; what these load in turn is asked for in the first language alone.
* The brands of client hints (``Sec-CH-UA``), which else say that the browser is headless. With a User-Agent of the
  caller's there are no client hints at all, since nobody knows which ones would go with it.
"""

from __future__ import annotations

from typing import Any, Final

from playwright.async_api import CDPSession

from scrapy_ext.server.extraction.outgoing import user_agent

#: The brand that is none, by which browsers keep sites from relying on the list.
_NO_BRAND: Final = {"brand": "Not:A-Brand", "version": "8"}


async def introduce(session: CDPSession, version: str, agent: str | None, language: str) -> None:
    """Set languages and brands of a page that was not navigated yet; ``agent`` is a User-Agent of the caller's.

    They hold as long as the session, which is one of the page.
    """
    override: dict[str, Any] = {
        "userAgent": agent or user_agent(version),
        "acceptLanguage": ",".join(dict.fromkeys((language, language.partition("-")[0]))),
    }
    if agent is None:
        override["userAgentMetadata"] = _hints(version)
    await session.send("Emulation.setUserAgentOverride", override)


def _hints(version: str) -> dict[str, Any]:
    major = version.partition(".")[0]
    return {
        "brands": [_NO_BRAND, {"brand": "Chromium", "version": major}],
        "fullVersionList": [
            {**_NO_BRAND, "version": f"{_NO_BRAND['version']}.0.0.0"},
            {"brand": "Chromium", "version": version},
        ],
        "platform": "Linux",
        "platformVersion": "",
        "architecture": "x86",
        "bitness": "64",
        "model": "",
        "mobile": False,
        "wow64": False,
    }
