"""``scrapy extract``, in parts: lines in, the run, records out, and what a later run knows of an earlier one."""
