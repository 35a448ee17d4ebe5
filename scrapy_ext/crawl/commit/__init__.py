"""Exactly once: the results of finished requests are stored once, whichever process dies at whichever moment."""
