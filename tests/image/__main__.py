"""``python -m tests.image``: build the image with and without Chromium, run a server, workers and crawls in it, and end
and kill them. Prints each step with its figures; returns 0 if all hold.

``--keep-images`` uses those of the last run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# The modules of the tests are imported as pytest does it.
sys.path[:0] = [str(Path(__file__).parents[2])]

from tests.image.engine import FOLDER, ROOT, Engine, MissingError, prepare  # noqa: E402
from tests.image.running import check_runs  # noqa: E402

BASE, PLAIN, FULL = (f"localhost/scrapy-ext{name}" for name in ("-base", ":plain", ":full"))
MB = 1_000_000


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    print(f"── {name}", flush=True)
    began = time.monotonic()
    yield
    print(f"   {time.monotonic() - began:.0f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.image", description="Build and try the container image.")
    parser.add_argument("--keep-images", action="store_true", help="use the images of the last run")
    options = parser.parse_args()
    logs = Path(tempfile.mkdtemp(prefix="scrapy-ext-image-"))
    try:
        prepare()
        engine = Engine(logs)
        if not options.keep_images:
            _build(engine)
        with step("What the image is made of"):
            _check_image(engine)
        with step("Units of systemd"):
            _check_units(logs)
        if promtool := shutil.which("promtool"):
            with step("Alerts"):
                _check_alerts(promtool)
        else:
            print("── Alerts: not checked by promtool, which is not installed (apt-get install prometheus)")
        asyncio.run(check_runs(engine, FULL, PLAIN, logs, step))
    except MissingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except AssertionError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    finally:
        with contextlib.suppress(NameError):
            engine.remove_containers()
        shutil.rmtree(logs, ignore_errors=True)
    print("All of it works. The images stay in build/image.")
    return 0


def _build(engine: Engine) -> None:
    if not engine.has(BASE):
        with step("A base image of Debian's packages"):
            engine.make_base(BASE)
    for image, arguments in ((FULL, ()), (PLAIN, ("CHROMIUM=",))):
        with step(f"Building {image} {' '.join(arguments)}"):
            engine.build(image, BASE, *arguments)


def _check_image(engine: Engine) -> None:
    sizes = {image: engine.inspect(image)["Size"] / MB for image in (BASE, PLAIN, FULL)}
    for image, size in sizes.items():
        print(f"   {image}: {size:.0f} MB", flush=True)
    assert sizes[PLAIN] < 0.6 * sizes[FULL]
    config = engine.inspect(FULL)["Config"]
    assert config["User"] == "10001:10001"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "BSD-3-Clause"
    assert config["Entrypoint"] == ["tini", "--", "scrapy", "platform"]
    assert config["StopSignal"] == "SIGTERM"
    assert not [text for text in config["Env"] if "KEY" in text or "PASSWORD" in text]
    # Neither pip's configuration of this machine, nor caches, nor what the package does not need.
    unwanted = "find / -xdev \\( -path '*/.cache/*' -o -name '*.whl' -o -path '/var/lib/apt/lists/*_*' \\) -size +0"
    for image in (FULL, PLAIN):
        installed = engine.podman(
            "run", "--rm", "--network=none", "--entrypoint=python3", *_limits(), image, "-c", _INSTALLED
        ).stdout.split()
        assert sorted(installed) == sorted(_modules()), "the image has other modules than the clone"
        words = ["run", "--rm", "--network=none", "--user=0", "--entrypoint=sh", *_limits(), image, "-c"]
        found = engine.podman(
            *words, f"cat /etc/pip.conf 2>/dev/null; {unwanted}; ls -d /build 2>/dev/null; true"
        ).stdout
        assert [line for line in found.split() if "ensurepip" not in line and "python-wheels" not in line] == []


#: Prints the modules of the package with their sizes.
_INSTALLED = (
    "import pathlib, scrapy_ext; root = pathlib.Path(scrapy_ext.__path__[0]); "
    "print(*(f'{each.relative_to(root)}:{each.stat().st_size}' for each in root.rglob('*.py')))"
)


def _modules() -> list[str]:
    root = ROOT / "scrapy_ext"
    return [f"{each.relative_to(root)}:{each.stat().st_size}" for each in root.rglob("*.py")]


def _limits() -> list[str]:
    return ["--ulimit=nofile=1024", "--ulimit=nproc=1024"]


def _check_alerts(promtool: str) -> None:
    for kind, name in (("rules", "alerts.yml"), ("config", "scrape.yml")):
        file = ROOT / "deploy" / "prometheus" / name
        done = subprocess.run([promtool, "check", kind, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _check_units(logs: Path) -> None:
    """Verify the units with the scrapy of this environment as their program."""
    program = shutil.which("systemd-analyze")
    if program is None:
        raise MissingError("systemd-analyze is needed: apt-get install systemd.")
    scrapy = Path(sys.executable).with_name("scrapy")
    for path in sorted((ROOT / "deploy" / "systemd").glob("*.service")):
        copy = logs / path.name
        copy.write_text(path.read_text().replace("/opt/scrapy-ext/bin/scrapy", str(scrapy)))
        done = subprocess.run([program, "verify", str(copy)], capture_output=True, text=True, check=False)
        assert (done.returncode, [line for line in done.stderr.splitlines() if path.name in line]) == (0, []), (
            done.stderr
        )
        rated = subprocess.run(
            [program, "security", "--offline=yes", str(copy)], capture_output=True, text=True, check=False
        )
        level = rated.stdout.rpartition("service: ")[2].split()[0]
        print(f"   {path.name}: exposure {level}", flush=True)
        assert float(level) < 3


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    sys.exit(main())
