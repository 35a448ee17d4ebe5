"""Retention: removal of the jobs and records that rules cover, in steps."""
