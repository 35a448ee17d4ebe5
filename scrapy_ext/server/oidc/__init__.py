"""Login of people to the pages by OpenID Connect: the provider over HTTP, its ID tokens, and the steps of a login."""
