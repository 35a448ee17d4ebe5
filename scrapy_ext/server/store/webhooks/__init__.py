"""Webhooks and their pending deliveries."""
