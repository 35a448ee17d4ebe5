"""Pages that are fetched over HTTP, without a browser."""
