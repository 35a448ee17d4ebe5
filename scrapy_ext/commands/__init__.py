"""The package's commands of Scrapy: ``scrapy platform`` and ``scrapy extract``."""
