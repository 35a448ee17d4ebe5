"""Lists of a page: repeated blocks, the contents of each entry, and the kind of thing that they list."""
