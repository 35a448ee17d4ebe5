"""Settings of the example project."""

import os
from urllib.parse import urlsplit

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
NEWSPIDER_MODULE = "example.spiders"

# The one line that an existing project needs: requests go through the extraction API; items, request records,
# logs and the job record go to the platform; the queue is the platform's frontier. Without any address, both
# services run on this machine for as long as the crawl does, and keep their data in .scrapy/platform.
ADDONS = {"scrapy_ext.Addon": 500}

# For remote services set these here or in the environment, and nothing else changes:
# EXTRACT_API_URL = "https://extract.example.com/v1"
# EXTRACT_API_KEY = ...
# PLATFORM_URL = "https://platform.example.com"
# PLATFORM_API_KEY = ...
# PLATFORM_PROJECT = 123

ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 8

# The site of this project: run `python -m example_project.site` in the folder above it.
SITE_URL = os.environ.get("SITE_URL", "http://localhost:8600")
# It runs on this machine, from which the extraction service fetches only permitted hosts.
SERVER_ALLOW_HOSTS = [urlsplit(SITE_URL).netloc]
