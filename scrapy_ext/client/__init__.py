"""The clients of the two services. They do not know each other; what both need stands beside them here.

- :mod:`scrapy_ext.client.extraction`: ``POST /extract``.
- :mod:`scrapy_ext.client.platform`: jobs and storage.
"""
