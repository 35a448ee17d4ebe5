"""Both services, self-hosted."""
