"""The clients of the two services, which are independent of each other, and the HTTP and retry loop of both.

- :mod:`scrapy_ext.client.extraction`: ``POST /extract``.
- :mod:`scrapy_ext.client.platform`: jobs and storage.
"""
