"""Where a page leads: around its site, and from page to page of a list."""
