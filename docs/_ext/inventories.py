"""Extension that lets the documentation build without a network.

It downloads the inventories of other projects' documentation before intersphinx does, and stores them in the build
folder. An inventory that cannot be downloaded is left out with a message: links to that project become plain text, and
the build does not fail.
"""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

#: Seconds for one inventory.
TIMEOUT = 5


def use_available_inventories(app: Sphinx, config: Config) -> None:
    """Replace the mapping by the inventories that are available."""
    folder = Path(app.doctreedir).parent / "inventories"
    found = {}
    for name, (address, _) in config.intersphinx_mapping.items():
        kept = folder / f"{name}.inv"
        if _fetched(address, kept):
            found[name] = (address, str(kept))
        else:
            # Not a warning of Sphinx, which would fail the build.
            sys.stderr.write(f"No links into the documentation of {name}: {address} cannot be reached.\n")
    config.intersphinx_mapping = found


def _fetched(address: str, kept: Path) -> bool:
    try:
        inventory = f"{address.rstrip('/')}/objects.inv"
        with urllib.request.urlopen(inventory, timeout=TIMEOUT) as answer:  # noqa: S310  # an address of conf.py
            content = answer.read()
    except (OSError, ValueError):
        return kept.exists()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    return True


def setup(app: Sphinx) -> dict[str, Any]:
    # intersphinx reads the mapping at priority 800.
    app.connect("config-inited", use_available_inventories, priority=700)
    return {"parallel_read_safe": True}
