"""Scrapy's own tests, with the add-on switched on by default: ``python -m tests.scrapy_suite``."""
