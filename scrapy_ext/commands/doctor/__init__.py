"""Checks of ``scrapy platform doctor``, by subject. ``store`` and ``browser`` need the server's libraries."""
