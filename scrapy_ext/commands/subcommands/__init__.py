"""Subcommands of ``scrapy platform``."""
