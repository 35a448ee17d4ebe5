"""State and logic that the components of one crawl share; the components are the modules beside this package."""

from scrapy_ext.compatibility.required import require_scrapy

# Before any import of a name that an old version lacks: every component imports this package.
require_scrapy()
