"""Deployed versions: what is in an archive, the environment of a version, the spiders that it has."""
