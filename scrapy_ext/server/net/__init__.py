"""Outgoing connections: the guard of addresses, proxies, and blocked domains."""
