"""Bans: answers of a site that refuse the request instead of returning the page, and the further tries after one."""
