"""Differences of the versions of Python and of Scrapy that are supported, each in one place.

- :mod:`scrapy_ext.compatibility.python`: names of the standard library that Python 3.10 lacks.
- :mod:`scrapy_ext.compatibility.scrapy`: all that differs between Scrapy 2.14 and the newest version.
- :mod:`scrapy_ext.compatibility.required`: the refusal of a version that is too old.
"""
