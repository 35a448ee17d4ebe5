"""Periodic jobs and their runs."""
