"""State and logic that the components of one crawl share; the components are the modules beside this package.

Three words mean one thing each here:

- *host*: key of a request for limits and delays: ``download_slot`` of its meta, else the host of its URL
  (:func:`~scrapy_ext.crawl.frontier.identity.host_of`). The extraction service and its client call it *domain*.
- *slot*: part of a queue of the frontier (HCF), as the platform calls it.
- *download slot*: Scrapy's object with the limits and delays of a host.
"""

from scrapy_ext.compatibility.required import require_scrapy

# Before any import of a name that an old version lacks: every component imports this package.
require_scrapy()
