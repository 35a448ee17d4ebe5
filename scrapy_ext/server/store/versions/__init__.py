"""Deployed versions of projects."""
