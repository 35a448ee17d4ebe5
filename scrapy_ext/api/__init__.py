"""The two API contracts, as data and pure functions shared by client and server.

Records, tables of fields, rules, limits and error types. No I/O, no Scrapy.

- :mod:`scrapy_ext.api.extraction`: ``POST /extract``, see ``extraction-api.md``.
- :mod:`scrapy_ext.api.platform`: jobs and storage, see ``platform-api.md``.
"""
