"""Removal of rows that are older than the operator keeps them, in steps."""
