"""Delivery of webhooks from the store's outbox (``store.outbox``)."""
