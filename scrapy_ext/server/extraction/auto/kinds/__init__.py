"""The kinds of items: a module for each, of which ``extract`` takes a page and returns the item."""
