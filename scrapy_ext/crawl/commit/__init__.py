"""Exactly once: what finished requests have led to is stored once, whatever dies when."""
