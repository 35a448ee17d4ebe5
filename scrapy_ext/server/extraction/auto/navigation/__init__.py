"""Links of a page: around its site, and from page to page of a list."""
