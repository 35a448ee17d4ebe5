"""Work on stored data beside the service: removal of deleted data, and of old data."""
