"""The two contracts, as data and pure functions.

Everything that both an API's client and its server must agree on lives here and nowhere else: typed
records, tables of fields, rules, limits and error types. Nothing here does I/O or imports Scrapy.

- :mod:`scrapy_ext.api.extraction`: ``POST /extract``, see ``extraction-api.md``.
- :mod:`scrapy_ext.api.platform`: jobs and storage, see ``platform-api.md``.
"""
