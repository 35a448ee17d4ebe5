"""Page objects: the provider, and the middleware that gathers what they depend on into one request."""
