"""Copies of projects from another platform (``scrapy platform import``).

All progress is stored in the target, in the transaction of the data that it describes, so that an import that is killed
at any moment continues where it was, from any machine.
"""
