"""API keys, tokens of attempts, and the bounds for wrong ones."""
