"""Cleaning of parts of pages: the tags and attributes of structure, links, images and embedded content stay."""
