"""Monitors: facts about jobs, results, and the alerts about them."""
