"""Pages a second of a whole crawl: plain Scrapy, and the same with the frontier, items, request records and log on
the embedded platform.

``python benchmarks/crawl_rate.py [PAGES] [ROUNDS]`` crawls a site in a process of its own, in turns, and prints one
JSON line: the median rate of each, and the ratio. Requests go direct in both, so that what is compared is the
scheduler and the storage.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SITE = """
import sys
from uvicorn import run
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

PAGES, LINKS = int(sys.argv[1]), 20

async def page(request):
    number = int(request.path_params.get("number", 0))
    links = "".join(f'<a href="/page/{(number * LINKS + step) % PAGES}">x</a>' for step in range(1, LINKS + 1))
    return HTMLResponse(f"<h1>{number}</h1>{links}")

app = Starlette(routes=[Route("/", page), Route("/page/{number:int}", page)])
import socket
taken = socket.create_server(("127.0.0.1", 0))
print(taken.getsockname()[1], flush=True)
run(app, fd=taken.fileno(), log_level="error")
"""
SPIDER = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        yield scrapy.Request(self.site)

    def parse(self, response):
        yield {"url": response.url, "number": response.css("h1::text").get()}
        yield from response.follow_all(css="a")
"""
COMMON = {
    "LOG_LEVEL": "INFO",
    "ROBOTSTXT_OBEY": "0",
    "CONCURRENT_REQUESTS": "32",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "32",
    "TELNETCONSOLE_ENABLED": "0",
    "EXTRACT_API_ENABLED": "0",
}
RUNS = {"scrapy": {"ADDONS": "{}"}, "scrapy_ext": {"ADDONS": '{"scrapy_ext.Addon": 500}'}}


def crawl(folder: Path, site: str, settings: dict[str, str], pages: int) -> float:
    options = [option for name, value in {**COMMON, **settings}.items() for option in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "runspider", "pages.py", "-a", f"site={site}", *options]
    log = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=900).stderr
    found = re.search(r"'elapsed_time_seconds': ([\d.]+)", log)
    items = re.search(r"'item_scraped_count': (\d+)", log)
    if found is None or items is None or int(items[1]) != pages + 1:
        raise SystemExit(f"the crawl did not get every page:\n{log[-3000:]}")
    return pages / float(found[1])


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rates: dict[str, list[float]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pages.py").write_text(SPIDER)
        (folder / "site.py").write_text(SITE)
        site = subprocess.Popen([sys.executable, "site.py", str(pages)], cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            assert site.stdout is not None
            address = f"http://127.0.0.1:{site.stdout.readline().strip()}/"
            for _ in range(rounds):
                for run, settings in RUNS.items():
                    rates[run].append(crawl(folder, address, settings, pages))
        finally:
            site.terminate()
            site.wait()
    medians = {run: statistics.median(values) for run, values in rates.items()}
    print(
        json.dumps(
            {
                "benchmark": "crawl_rate",
                "pages": pages,
                "rounds": rounds,
                **{f"{run}_pages_per_second": round(rate) for run, rate in medians.items()},
                "ratio": round(medians["scrapy_ext"] / medians["scrapy"], 2),
            }
        )
    )


if __name__ == "__main__":
    main()
