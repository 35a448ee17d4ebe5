"""The clients of the two services, which are independent of each other, and the HTTP and retries of both.

- :mod:`scrapy_ext.client.extraction`: ``POST /extract``.
- :mod:`scrapy_ext.client.platform`: jobs and storage.
"""
