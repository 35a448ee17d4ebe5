"""Test of the wheel: builds it, installs it in an empty virtual environment, and crawls with it there.

Nothing of the extra ``server`` may be built from source, on any Python that pyproject.toml names.
"""

import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import venv
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[1]
SPIDER = """
import scrapy

class Page(scrapy.Spider):
    name = "page"

    async def start(self):
        yield scrapy.Request(self.url, meta={"extract_api": {"product": True, "screenshot": True}})

    def parse(self, response):
        yield {"name": response.extract_result["product"]["name"], "screenshot": len(response.screenshot)}
"""
PAGE = b"""<!doctype html><title>Cup</title><script type="application/ld+json">
{"@context": "https://schema.org", "@type": "Product", "name": "Blue cup",
 "offers": {"price": "5", "priceCurrency": "EUR"}}
</script><h1>Blue cup</h1>"""


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *arguments: object) -> None:
        pass


def run(*command: object, cwd: Path) -> str:
    print("──", *command)
    done = subprocess.run(
        [str(part) for part in command], check=False, cwd=cwd, capture_output=True, text=True, timeout=1200
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=ROOT)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip", cwd=folder)
        install = (python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"{wheel}[server]")
        for version in re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text()):
            found = ("--dry-run", "--ignore-installed", "--target", folder / "none", "--python-version", version)
            run(*install, *found, cwd=folder)
        run(*install, cwd=folder)
        (folder / "page.py").write_text(textwrap.dedent(SPIDER))
        site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        host = f"localhost:{site.server_address[1]}"
        options = ["-s", 'ADDONS={"scrapy_ext.Addon": 500}', "-s", f"SERVER_ALLOW_HOSTS={host}"]
        run(python, "-m", "scrapy", "runspider", "page.py", "-a", f"url=http://{host}/", *options, cwd=folder)
        items = run(python, "-m", "scrapy", "platform", "items", "last", cwd=folder)
        print(items, end="")
        if "Blue cup" not in items:
            sys.exit("the item was not stored")


if __name__ == "__main__":
    main()
