"""Two halves of the labelled sites, fixed by a hash of the site's name: rules are made with the pages of one in sight.

A site has one name in every country, so that no site is in both halves.
"""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

#: Names under which countries have their sites: ``co.uk``, ``com.br``.
_SECOND_LEVELS = {"ac", "co", "com", "edu", "go", "gob", "gov", "gouv", "ltd", "me", "ne", "net", "nom", "or", "org"}


def site_name(url: str) -> str:
    """Return ``zalando`` for ``https://www.zalando.co.uk/…``."""
    labels = (urlsplit(url).hostname or "").split(".")
    below_country = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVELS
    return labels[-3 if below_country else -2] if len(labels) > 1 else labels[0]


def half_of(url: str) -> str:
    """Return ``tuned`` or ``held out``."""
    return "held out" if hashlib.sha256(site_name(url).encode()).digest()[0] % 2 else "tuned"
