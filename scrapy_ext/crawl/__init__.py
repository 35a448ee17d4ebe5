"""State and logic that the components of one crawl share; the components are the modules beside this package."""
