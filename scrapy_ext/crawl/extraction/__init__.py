"""Scrapy and the extraction API: requests become fields, results become responses."""
