"""A small web site to crawl: a shop and a newspaper, generated in memory, the same at every start."""
