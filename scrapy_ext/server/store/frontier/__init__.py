"""Frontiers: batches of requests by slot, and the fingerprints that a slot knows."""
