"""Collections: records by key."""
