"""Outgoing connections: the guard that checks every address, proxies, and blocked domains."""
