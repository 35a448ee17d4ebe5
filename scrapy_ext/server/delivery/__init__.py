"""Delivery of finished jobs to a folder or an object store, and restores from there."""
