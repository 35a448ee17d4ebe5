"""Stores of earlier versions: dumps as SQL, with the answers that their own server gave to each read."""
