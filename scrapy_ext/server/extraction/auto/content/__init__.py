"""Main content of any page: its blocks of text, and a model that separates content from what surrounds it."""
