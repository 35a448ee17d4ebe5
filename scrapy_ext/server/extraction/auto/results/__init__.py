"""Results of searches: the targets of their links, their blocks, and the texts in these."""
