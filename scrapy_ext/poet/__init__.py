"""Page objects: the provider, and the middleware that merges their dependencies into one request."""
