"""API keys, tokens of attempts, and limits of wrong keys."""
