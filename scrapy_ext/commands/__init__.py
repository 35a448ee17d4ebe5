"""What the package adds to the ``scrapy`` command: ``scrapy platform …``, a module for each subcommand."""
