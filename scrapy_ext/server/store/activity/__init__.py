"""Activity messages, and the outbox of webhook deliveries."""
