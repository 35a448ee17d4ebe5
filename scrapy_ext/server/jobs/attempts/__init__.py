"""Attempts at jobs: plan, process, output and end."""
