"""Outgoing connections: the guard of addresses, its resolver, proxies, and blocked domains."""
