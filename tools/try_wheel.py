"""Test of the wheel: builds it, installs it in an empty environment of this Python, and crawls the example with it.

``make wheel``. The quick one: ``make release-check`` does more, on more versions of Python. Nothing of the extra
``server`` may be built from source, on any Python that pyproject.toml names.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from distributions import DistributionError, build, check_contents
from empty_environment import CommandError, EmptyEnvironment
from metadata_check import minor_versions
from package_index import PackageIndex, usual_index


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("── Building", flush=True)
        built = build(folder)
        print(f"── {check_contents(built)}", flush=True)
        environment = EmptyEnvironment(sys.executable, folder / "environment")
        environment.create()
        print(f"── Installing {built.wheel.name} with [server]", flush=True)
        package = f"scrapy-ext[server]=={built.version}"
        with PackageIndex(built, others=usual_index()) as index:
            environment.install(package, index=index.url)
            for minor in minor_versions():
                environment.find_wheels(package, index=index.url, python=f"3.{minor}")
        environment.check_commands()
        print("── Crawling the example", flush=True)
        print(environment.crawl_example())


if __name__ == "__main__":
    try:
        main()
    except (CommandError, DistributionError, subprocess.SubprocessError) as error:
        sys.exit(str(error))
