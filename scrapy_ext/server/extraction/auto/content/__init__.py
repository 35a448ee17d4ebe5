"""The main content of any page: its blocks of text, and a model that tells content from what stands around it."""
