"""Frontiers: batches of requests by slot, and the fingerprints that each slot has seen."""
