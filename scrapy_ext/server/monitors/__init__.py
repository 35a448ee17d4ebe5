"""Monitors: checks of finished jobs and expected runs, and alerts about them."""
