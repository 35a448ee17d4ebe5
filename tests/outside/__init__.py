"""Ordinary pages, spiders, client calls and steps of operation, made from public reports about tools of this kind.

A case is data: an input, a request and the right value. ``first`` records the result of this package when the case was
tried for the first time, so that the share of wrong values on untried input is known (:mod:`tests.outside.rates`).

* ``pages``: a page, served by a site on loopback, and a request to the extraction service (``test_pages``)
* ``crawls``: a spider with its settings, alone or compared with Scrapy without the add-on (``test_crawls``)
* ``calls``: calls of the client of the hosted platform, or over HTTP (``test_calls``)
* ``operation``: command lines, with their exit codes and output (``test_operation``)
"""
