"""The subcommands of ``scrapy platform``, a module for each, named as it is."""
