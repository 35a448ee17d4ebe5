"""Targets and archives of ``scrapy platform deploy``."""
