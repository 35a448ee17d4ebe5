"""What the components of one crawl share: its services, its job, and the life of its requests."""
