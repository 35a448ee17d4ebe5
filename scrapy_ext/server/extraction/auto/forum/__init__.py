"""Posts of a thread, in the structured data of a page and on the page itself."""
