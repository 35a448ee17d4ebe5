"""HTTP fetches without a browser."""
