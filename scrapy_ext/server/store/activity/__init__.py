"""Activity messages, and those that wait for webhooks."""
