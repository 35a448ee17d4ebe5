"""Recording of the README's picture of the pages: a crawl of a small site, in the page of its job.

    .venv/bin/python tools/record_pages.py

writes docs/_static/pages.png. Everything runs on this machine, on free ports and in a temporary folder.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from scrapy_ext.server.extraction.browser import find_browser

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "_static" / "pages.png"
#: Pages of the site, and seconds between two requests: long enough for a chart.
PAGES, DELAY = 240, 0.08
#: Timeout of the crawl in seconds.
_TIMEOUT = 180
_KEYS = {"PLATFORM_API_KEY": "picture-platform", "EXTRACT_API_KEY": "picture-extraction"}

SETTINGS = f"""
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.kettles"]
DOWNLOAD_DELAY = {DELAY}
CONCURRENT_REQUESTS_PER_DOMAIN = 1
"""
SPIDER = """
import scrapy


class KettlesSpider(scrapy.Spider):
    name = "kettles"

    def __init__(self, site, colour="all", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [site]

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_product)

    def parse_product(self, response):
        yield {"name": response.css("h1::text").get(), "price": response.css("p::text").get(), "url": response.url}
"""


class Site(http.server.SimpleHTTPRequestHandler):
    """A page of links, and the pages behind them."""

    def do_GET(self) -> None:
        number = re.fullmatch(r"/(\d+)", self.path)
        links = "".join(f'<a href="/{each}">{each}</a>' for each in range(PAGES))
        page = f"<h1>Kettle {number[1]}</h1><p>{number[1]}.50</p>" if number else links
        self.send_response(200 if number or self.path == "/" else 404)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        project = Path(folder)
        for name, text in {
            "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
            "shop/__init__.py": "",
            "shop/settings.py": SETTINGS,
            "shop/kettles.py": SPIDER,
        }.items():
            (project / name).parent.mkdir(exist_ok=True)
            (project / name).write_text(text)
        command = [sys.executable, "-m", "scrapy", "platform", "serve", "--port", "0", "--exit-with-stdin"]
        environment = {**os.environ, **_KEYS}
        started = functools.partial(subprocess.Popen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with started(command, cwd=project, env=environment) as server:
            if server.stdout is None or server.stdin is None:
                raise AssertionError("it has pipes")
            url = server.stdout.readline().removeprefix("ready ").strip()
            run(url, f"http://127.0.0.1:{site.server_port}/", project, environment)
            draw(url)
            server.stdin.close()
        site.shutdown()
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size // 1024} kB")


def run(url: str, site: str, project: Path, environment: dict[str, str]) -> None:
    """Run the spider to its end."""
    options = ["kettles", "-a", f"site={site}", "-a", "colour=red", "--tag", "nightly", "--follow"]
    subprocess.run(
        [sys.executable, "-m", "scrapy", "platform", "run", *options],
        cwd=project,
        env={**environment, "PLATFORM_URL": url},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=_TIMEOUT,
    )


def draw(url: str) -> None:
    """Take a screenshot of the job's page after login."""
    with sync_playwright() as playwright:
        path = find_browser(None, os.environ, Path(playwright.chromium.executable_path))
        browser = playwright.chromium.launch(executable_path=str(path))
        page: Page = browser.new_page(viewport={"width": 1120, "height": 600})
        page.goto(url)
        page.get_by_label("API key").fill(_KEYS["PLATFORM_API_KEY"])
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="1/1/1").click()
        page.get_by_text("Memory").first.wait_for()
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
