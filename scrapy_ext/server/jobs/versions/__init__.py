"""Deployed versions: archives, environments and spiders."""
