"""Telling webhooks of a project's activity. What they are to be told is in the store (``store.outbox``)."""
